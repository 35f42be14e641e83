"""Published manifests of Sylabs' operators on real slurmds, where pretended programs stand for what they call."""

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from sandbox.api import ApiError
from sandbox.chart import BATCH_USER
from sandbox.client import Sandbox
from slurmcli import plugin
from slurmjobs.companions import collector
from slurmjobs.companions.collector import Copier
from slurmjobs.sylabs.job import KINDS
from tests.servers import wait_until
from tests.slurmjobs.sylabs.published import PUBLISHED, Published

CLUSTER = Path(tempfile.gettempdir())
"""What the claim is said to hold: the sandbox lies in it."""
VOLUMES = {"/home/vagrant/job-results": "kept/cows", "192.168.1.41:/var/nfsshare": "kept"}
SETTINGS = (
    "sylabs.enabled=true",
    'sylabs.ssh_rules={"vagrant": "administrators"}',
    "sylabs.output_claim=scratch",
    f"sylabs.output_path={CLUSTER}",
    f"sylabs.volumes={json.dumps(VOLUMES)}",
)
"""The rule is the sandbox's own."""

_SINGULARITY = """\
for last; do :; done
case $1 in
run) exec cat "$last" ;;
exec) exit 0 ;;
esac
shift
while [ "${1#-}" != "$1" ]; do shift; done
[ $# -eq 2 ] && file=$1 || file=lolcow_latest.sif
case $file in *://*) file=$2 ;; esac
echo "$last" > "$file"
"""
"""`pull [options] [FILE] URI`, `run [options] FILE` and `exec`."""

_PROGRAMS = {
    "singularity": _SINGULARITY,
    "git": "mkdir fox && cd fox && touch A.txt B.txt C.txt log1\n",
    "mpirun": "test $SLURM_JOB_NUM_NODES = 2\n",
}


def run_published(sandbox: Sandbox, namespace: str, patience_s: float) -> None:
    """Run every manifest as it stands, and see each end as it should; of those with one name, one after another."""
    for name, text in _PROGRAMS.items():
        program = sandbox.instance.slurm / "slurmd" / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}")
        program.chmod(0o755)
    home = sandbox.instance.shared / BATCH_USER.name
    fourth = home / "slurm-4.out"  # which one names, whatever the job's id will be
    fourth.touch()
    os.chown(fourth, BATCH_USER.uid, BATCH_USER.gid)
    rounds: defaultdict[int, list[Published]] = defaultdict(list)
    seen: defaultdict[str, int] = defaultdict(int)
    for published in PUBLISHED.values():
        name = published.manifest["metadata"]["name"]
        rounds[seen[name]].append(published)
        seen[name] += 1
    for together in rounds.values():
        _run(sandbox, namespace, together, patience_s)


def _run(
    sandbox: Sandbox, namespace: str, together: Sequence[Published], patience_s: float
) -> None:
    paths = []
    for published in together:
        manifest = published.manifest
        path = _path(namespace, manifest)
        if published.fault:
            with pytest.raises(ApiError, match=published.fault):
                sandbox.admin.create(path, manifest)
        else:
            sandbox.admin.create(path, manifest)
            paths.append(f"{path}/{manifest['metadata']['name']}")

    def statuses() -> dict[str, dict[str, Any]]:
        return {path: sandbox.admin.get(path).get("status", {}) for path in paths}

    over = {"Succeeded", "Failed"}
    kept = sandbox.instance.shared / f"kept-{namespace}"

    def are_over() -> bool:
        _copy(sandbox, namespace, kept)
        return all(status.get("status") in over for status in statuses().values())

    wait_until(
        are_over,
        patience_s,
        sandbox=sandbox,
    )
    for path, status in statuses().items():
        found = status["status"], status["phase"], status["exitCode"]
        assert ("Succeeded", "Succeeded", 0) == found, (path, status, _output(status))
        assert "Complete" in {condition["type"] for condition in status["conditions"]}
        assert "Succeeded" in _asked(sandbox, "why", namespace, path)
        assert _exists(sandbox, f"{_pods(namespace)}/{path.rpartition('/')[2]}-job")
        sandbox.admin.delete(path)
    wait_until(lambda: not any(_exists(sandbox, path) for path in paths), patience_s)
    # Names are used again, and so are the companions'.
    wait_until(lambda: not sandbox.admin.get(_pods(namespace))["items"], patience_s)
    for published in together:
        results = published.manifest["spec"].get("results")
        if results and not published.fault:
            source = results.get("from", "slurm-*.out")
            folder = kept / ("results" if "nfs" in results["mount"] else "cows")
            assert list(folder.glob(source)), (published.text, list(kept.rglob("*")))


def _copy(sandbox: Sandbox, namespace: str, kept: Path) -> None:
    """Play the kubelet to pods that copy results: the program is the real one, and so are the files."""
    for pod in sandbox.admin.get(_pods(namespace))["items"]:
        name, phase = pod["metadata"]["name"], pod["status"]["phase"]
        if "-collect-" in name and phase == "Pending":
            part, order = pod["spec"]["containers"][0]["command"][-2:]
            here = order.replace("/volume/", f"{CLUSTER}/").replace("/results/0", str(kept))
            code, said = collector.run(json.loads(here), Copier(part))
            terminated = {"exitCode": code, "message": said, "finishedAt": "2026-01-01T00:00:00Z"}
            container = {"name": "collect", "state": {"terminated": terminated}}
            played = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container]}
            sandbox.admin.patch(f"{_pods(namespace)}/{name}/status", {"status": played})


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


@contextmanager
def without_a_definition(sandbox: Sandbox) -> Iterator[None]:
    """The controllers start while one of Sylabs' definitions is not there; it comes back in the end, and is taken up."""
    kind = KINDS[-1]
    served, name = f"/apis/{kind.api_version}/{kind.plural}", f"{kind.plural}.{kind.group}"
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    definition = sandbox.admin.get(f"{path}/{name}")
    sandbox.admin.delete(f"{path}/{name}")
    try:
        wait_until(lambda: not _exists(sandbox, served), 30)
        sandbox.restart("controllers")
        wait_until(lambda: f"[-] {name}: {served}: not listed yet" in _readiness(sandbox), 30)
        yield
    finally:
        metadata = {"name": name, "annotations": definition["metadata"].get("annotations", {})}
        spec = {"metadata": metadata, "spec": definition["spec"]}
        sandbox.admin.create(path, spec)
        wait_until(lambda: f"[+] {name}: ok" in _readiness(sandbox), 60, sandbox=sandbox)


def _readiness(sandbox: Sandbox) -> str:
    """What the controllers answer while they are ready; "" while they are not."""
    url = f"{sandbox.instance.url('controllers-health')}/readyz"
    try:
        answer = httpx.get(url, trust_env=False)
    except httpx.TransportError:
        return ""
    return answer.text if answer.is_success else ""


def _asked(sandbox: Sandbox, command: str, namespace: str, path: str) -> str:
    """What `kubectl slurm why` or `logs` says of the object with that path."""
    name = path.rpartition("/")[2]
    done = CliRunner().invoke(
        plugin.app(),
        [command, name, f"--namespace={namespace}"],
        env={**sandbox.env, "COLUMNS": "400"},
    )
    return done.output


def _exists(sandbox: Sandbox, path: str) -> bool:
    try:
        return bool(sandbox.admin.get(path))
    except ApiError as error:
        if error.status == 404:
            return False
        raise


def _path(namespace: str, manifest: Mapping[str, Any]) -> str:
    wanted = manifest["apiVersion"], manifest["kind"]
    kind = next(each for each in KINDS if (each.api_version, each.kind) == wanted)
    return f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}"


def _output(status: Mapping[str, Any]) -> str:
    written = status.get("outputs", {}).get("stdout", "")
    if not os.path.exists(written):  # noqa: PTH110
        return ""
    with open(written) as file:  # noqa: PTH123
        return file.read()
