"""`doctor` before servers that are another in one point: an old release, a clock that is wrong, a slurm.conf no sandbox can have.

The servers are real, and so is everything else they say: a proxy changes that one point in their answers.
"""

import asyncio
import base64
import json
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.faults import Proxy, answers, lie
from tests.slurmcli.conftest import Run

Findings = Mapping[str, dict[str, str]]
Change = Callable[[Any], Any]
Expected = tuple[str, str, str, str]
"""The check, its verdict, and words of what was found and of the fix."""
_START_TIMEOUT_S = 60.0
_MANY = 100
"""As often as it is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """The doctor's way to the servers."""

    run: Run
    slurmrestd: Proxy
    apiserver: Proxy
    environment: Mapping[str, str]

    def doctor(self) -> Findings:
        """What it says, by check."""
        done = self.run("doctor", "-o", "json", environment=self.environment)
        return {finding["check"]: finding for finding in json.loads(done.stdout)}


@pytest.fixture
def elsewhere(full_sandbox: Sandbox, run: Run, tmp_path: Path) -> Iterator[Elsewhere]:
    with proxies(full_sandbox) as (slurmrestd, apiserver):
        config = json.loads(full_sandbox.kubeconfig.read_text())
        config["clusters"][0]["cluster"] = {"server": apiserver.url}
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        environment = {"SLURMRESTD_URL": slurmrestd.url, "KUBECONFIG": str(kubeconfig)}
        yield Elsewhere(
            run=run, slurmrestd=slurmrestd, apiserver=apiserver, environment=environment
        )


@contextmanager
def proxies(sandbox: Sandbox) -> Iterator[tuple[Proxy, Proxy]]:
    """One to each side, in a thread: the doctor has an event loop of its own."""
    ready, stop = threading.Event(), threading.Event()
    found: list[Proxy] = []

    async def serve() -> None:
        instance = sandbox.instance
        async with (
            Proxy.to(instance.url("slurmrestd")) as slurmrestd,
            Proxy.to(
                instance.url("apiserver"), upstream_tls=administrator(sandbox.kubeconfig)
            ) as apiserver,
        ):
            found.extend((slurmrestd, apiserver))
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(_START_TIMEOUT_S)
        yield found[0], found[1]
    finally:
        stop.set()
        thread.join()


def administrator(kubeconfig: Path) -> ssl.SSLContext:
    """Trusts the cluster's CA, and shows the certificate of the kubeconfig: to the API server the proxy is who asks."""
    content = json.loads(kubeconfig.read_text())
    user = content["users"][0]["user"]
    ca = base64.b64decode(content["clusters"][0]["cluster"]["certificate-authority-data"])
    context = ssl.create_default_context(cadata=ca.decode())
    with tempfile.NamedTemporaryFile() as pair:
        for key in ("client-certificate-data", "client-key-data"):
            pair.write(base64.b64decode(user[key]))
        pair.flush()
        context.load_cert_chain(pair.name)
    return context


def test_nothing_is_wrong_through_proxies_that_change_nothing(elsewhere: Elsewhere) -> None:
    found = elsewhere.doctor()

    assert elsewhere.apiserver.count("GET", "/version")
    assert elsewhere.slurmrestd.count("GET", "/diag/")
    seen = ("Kubernetes", "Kubernetes clock", "slurmrestd", "Slurm release", "Slurm clock")
    assert ["ok"] * 5 == [found[check]["verdict"] for check in seen], found


def in_version(minor: str) -> Change:
    return lambda said: {**said, "minor": minor}


def at_creation(shift: timedelta) -> Change:
    def change(said: Any) -> Any:
        at = datetime.fromisoformat(said["metadata"]["creationTimestamp"]) + shift
        said["metadata"]["creationTimestamp"] = at.isoformat().replace("+00:00", "Z")
        return said

    return change


def without_labels(said: Any) -> Any:
    for node in said["items"]:
        node["metadata"]["labels"].pop(names.EXTERNAL_NODE_LABEL, None)
    return said


@pytest.mark.parametrize(
    ("asked", "change", "expected"),
    [
        pytest.param(
            *(("GET", "/version"), in_version("29")),
            ("Kubernetes", "fault", "1.29 has no admission policies", "upgrade to 1.30"),
            id="old Kubernetes",
        ),
        pytest.param(
            *(("POST", "/configmaps"), at_creation(timedelta(seconds=-90))),
            ("Kubernetes clock", "fault", "clock is -", "chrony"),
            id="clock of the API server",
        ),
        pytest.param(
            *(("GET", "/api/v1/nodes"), without_labels),
            ("nodes", "warning", "no node is handed to Slurm", "kubectl label node"),
            id="no nodes",
        ),
    ],
)
def test_another_kubernetes(
    elsewhere: Elsewhere, asked: tuple[str, str], change: Change, expected: Expected
) -> None:
    elsewhere.apiserver.inject(lie(change), *asked, times=_MANY)

    check, verdict, words, fix = expected
    finding = elsewhere.doctor()[check]
    assert verdict == finding["verdict"]
    assert words in finding["found"]
    assert fix in finding["fix"]


def in_release(major: str, minor: str) -> Change:
    def change(said: Any) -> Any:
        said["meta"]["slurm"]["version"] |= {"major": major, "minor": minor}
        return said

    return change


def in_diagnosis(shift_s: int) -> Change:
    def change(said: Any) -> Any:
        said["statistics"]["req_time"]["number"] += shift_s
        return said

    return change


def in_conf(**changes: Any) -> Change:
    return lambda said: {**said, "slurm_conf": {**said["slurm_conf"], **changes}}


def no_default(said: Any) -> Any:
    for partition in said["partitions"]:
        partition["name"] = "batch"
    return said


@pytest.mark.parametrize(
    ("path", "change", "expected"),
    [
        pytest.param(
            *("/ping/", in_release("25", "05")),
            ("Slurm release", "warning", "Slurm 25.05 cannot create nodes", "25.11"),
            id="old release",
        ),
        pytest.param(
            *("/diag/", in_diagnosis(90)),
            ("Slurm clock", "fault", "clock is +", "chrony"),
            id="clock of slurmctld",
        ),
        pytest.param(
            *("/conf", in_conf(GresTypes=[])),
            ("GresTypes", "fault", "silently forgets the GPUs", "GresTypes=gpu"),
            id="no GresTypes",
        ),
        pytest.param(
            *("/conf", in_conf(SelectType="select/linear")),
            ("SelectType", "fault", "nodes are not shared", "select/cons_tres"),
            id="whole nodes only",
        ),
        pytest.param(
            *("/partitions/", no_default),
            ("partition", "fault", "there are: batch", "slurm.partition"),
            id="other partitions",
        ),
    ],
)
def test_another_slurm(elsewhere: Elsewhere, path: str, change: Change, expected: Expected) -> None:
    elsewhere.slurmrestd.inject(lie(change), "GET", path, times=_MANY)

    check, verdict, words, fix = expected
    finding = elsewhere.doctor()[check]
    assert verdict == finding["verdict"]
    assert words in finding["found"]
    assert fix in finding["fix"]


def test_a_slurm_that_speaks_none_of_our_versions(elsewhere: Elsewhere) -> None:
    unknown = answers(404, "Unable to find requested URL endpoint.", content_type="text/plain")
    elsewhere.slurmrestd.inject(unknown, "GET", "/slurm/v0.0.4", times=_MANY)
    elsewhere.slurmrestd.inject(
        lie(lambda said: {**said, "paths": {"/slurm/v0.0.41/ping/": {}}}), "GET", "/openapi/v3"
    )

    found = elsewhere.doctor()

    assert "fault" == found["slurmrestd"]["verdict"]
    assert "offers v0.0.41" in found["slurmrestd"]["found"]
    assert "upgrade Slurm" in found["slurmrestd"]["fix"]
    assert "not checked" == found["Slurm release"]["verdict"]


def test_a_slurm_too_old_to_tell_its_configuration(elsewhere: Elsewhere) -> None:
    unknown = answers(404, "Unable to find requested URL endpoint.", content_type="text/plain")
    elsewhere.slurmrestd.inject(unknown, "GET", "/conf", times=_MANY)

    found = elsewhere.doctor()

    untold = ("MaxNodeCount", "SchedulerParameters", "GresTypes", "MinJobAge", "SelectType")
    assert {"not checked"} == {found[check]["verdict"] for check in untold}
    assert "ok" == found["partition"]["verdict"]
