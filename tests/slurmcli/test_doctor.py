"""`doctor` finds faults that were sown on a real cluster, says the fix, and gives a healthy one a clean bill."""

import base64
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from sandbox.api import Api
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmcli import plugin
from slurmruntime.process.clock import SystemClock
from slurmruntime.values import names
from tests.integration.tampering import BREAK_GLASS
from tests.servers import running_sandbox
from tests.slurmcli import sowing
from tests.slurmcli.sowing import OURS, Doctor, again, config_map, merged, taken_away, until_faulty


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One to break."""
    with running_sandbox(Options()) as own:
        own.kubectl("create", "namespace", "research")
        own.kubectl("label", "namespace", "research", f"{names.ENABLED_LABEL}=true")
        yield own


@pytest.fixture
def doctor(sandbox: Sandbox) -> Doctor:
    """What it says, by check."""
    return lambda *given, **env: sowing.examined({**sandbox.env, **env}, *given)


def test_a_healthy_sandbox_gets_a_clean_bill(doctor: Doctor, sandbox: Sandbox) -> None:
    found = doctor()

    assert {"ok"} == {finding["verdict"] for finding in found.values()}, found
    told = CliRunner().invoke(plugin.app(), ("doctor",), env=sandbox.env)
    assert f"{len(found)} checks, 0 faults, 0 warnings" in told.stdout


@pytest.mark.parametrize(
    ("age", "slurmrestd", "token"),
    [
        pytest.param(timedelta(days=365, hours=-5), "ok", "warning", id="expires soon"),
        pytest.param(timedelta(days=366), "fault", "fault", id="has expired"),
    ],
)
def test_tokens(
    doctor: Doctor, sandbox: Sandbox, age: timedelta, slurmrestd: str, token: str
) -> None:
    found = doctor(SLURM_JWT=sandbox.token(now=SystemClock().now() - age))

    assert (slurmrestd, token) == (found["slurmrestd"]["verdict"], found["Slurm token"]["verdict"])
    assert "scontrol token" in found["Slurm token"]["fix"]


def test_another_clusters_token(doctor: Doctor) -> None:
    claims = base64.urlsafe_b64encode(b'{"sun":"root"}').decode().rstrip("=")

    found = doctor(SLURM_JWT=f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{claims}.c2lnbmF0dXJl")

    assert "refuses the token" in found["slurmrestd"]["found"]


def test_no_slurmrestd(doctor: Doctor) -> None:
    found = doctor(SLURMRESTD_URL="http://127.0.0.1:1")

    assert "does not answer" in found["slurmrestd"]["found"]
    assert "not checked" == found["partition"]["verdict"]


def test_no_slurmctld(doctor: Doctor, sandbox: Sandbox) -> None:
    sandbox.stop("slurmctld")
    try:
        found = doctor()
    finally:
        sandbox.start("slurmctld")

    assert "scontrol ping" in found["slurmctld"]["fix"]


@pytest.mark.parametrize(
    ("config", "check", "words"),
    [
        ({"slurm": {"partition": "nosuch"}}, "partition", "there is no partition nosuch"),
        ({"slurm": {"partition": "hollow"}}, "partition's nodes", "hollow has no nodes"),
        ({"slurm": {"urll": "x"}}, "settings", "urll"),
        ({"cluster_id": "someone-else"}, "whose nodes", "another cluster registered"),
    ],
)
def test_settings(
    doctor: Doctor, sandbox: Sandbox, config: dict[str, Any], check: str, words: str
) -> None:
    sandbox.run("scontrol", "create", "partition=hollow", "state=UP")
    try:
        with config_map(sandbox, "slurm-bridge-config", "config.yaml") as change:
            change(lambda old: merged(old, config))
            found = doctor()
    finally:
        sandbox.run("scontrol", "delete", "partition=hollow")

    assert "fault" == found[check]["verdict"]
    assert words in found[check]["found"]
    assert found[check]["fix"]


def test_a_host_that_nobody_knows(doctor: Doctor, sandbox: Sandbox) -> None:
    hosts = {"slurm": {"controller_host": "127.0.0.1,nowhere.invalid"}}
    with config_map(sandbox, "slurm-bridge-config", "config.yaml") as change:
        change(lambda old: merged(old, hosts))
        found = doctor()["hosts of Slurm"]

    assert "warning" == found["verdict"]
    assert "do not resolve from here: nowhere.invalid (slurm.controller_host)" in found["found"]


def test_not_installed_there(doctor: Doctor) -> None:
    found = doctor("--release-namespace", "default")

    assert "no ConfigMap with settings in namespace default" in found["settings"]["found"]
    assert "the extender has no leader" in found["leaders"]["found"]
    assert "controllers: delete pods" in found["rights"]["found"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda conf: conf["profiles"][0]["plugins"]["multiPoint"]["disabled"].append(
                {"name": "SchedulingGates"}
            ),
            "disables SchedulingGates",
        ),
        (lambda conf: conf["profiles"].clear(), "has no profile slurm-bridge-scheduler"),
        (lambda conf: conf["extenders"][0].update(ignorable=True), "the extender is ignorable"),
        (lambda conf: conf["extenders"][0].pop("bindVerb"), "no extender filters and binds"),
    ],
)
def test_scheduler_profile(
    doctor: Doctor, sandbox: Sandbox, change: Callable[[Any], None], words: str
) -> None:
    def changed(old: Any) -> Any:
        change(old)
        return old

    with config_map(sandbox, "slurm-bridge-scheduler", "scheduler.yaml") as rewrite:
        rewrite(changed)
        found = doctor()

    assert "fault" == found["scheduler profile"]["verdict"]
    assert words in found["scheduler profile"]["found"]


@pytest.mark.parametrize(
    ("path", "check", "words"),
    [
        (
            f"{sowing.ADMISSION}/validatingwebhookconfigurations/slurm-bridge",
            "webhook configurations",
            "no validating",
        ),
        (
            f"{sowing.ADMISSION}/mutatingwebhookconfigurations/slurm-bridge",
            "webhook configurations",
            "no mutating",
        ),
        (f"{sowing.ADMISSION}/validatingadmissionpolicies/slurm-bridge-keys", "policies", "keys"),
        *(
            (sowing.policy_binding(name), "policies", f"not bound: {name}")
            for name in ("binding", "keys-unlabelled", "elsewhere", "daemonsets")
        ),
        (f"{sowing.RBAC}/clusterrolebindings/slurm-bridge-controllers", "rights", "delete pods"),
        (f"{sowing.RBAC}/clusterroles/slurm-bridge-extender", "rights", "create pods/binding"),
    ],
)
def test_what_is_missing_of_the_chart(
    doctor: Doctor, sandbox: Sandbox, path: str, check: str, words: str
) -> None:
    with taken_away(sandbox, path):
        found = until_faulty(doctor, check, sandbox)

    assert words in found[check]["found"]
    assert "helm upgrade" in found[check]["fix"]


def test_webhook_that_does_not_run(doctor: Doctor, sandbox: Sandbox) -> None:
    sandbox.stop("webhook")
    try:
        found = doctor()
    finally:
        sandbox.start("webhook")

    assert "the dry run of a test pod failed" in found["webhook"]["found"]


def test_webhook_whose_certificate_nobody_trusts(doctor: Doctor, sandbox: Sandbox) -> None:
    path = f"{sowing.ADMISSION}/mutatingwebhookconfigurations/slurm-bridge"
    before = sandbox.admin.get(path)
    other = sandbox.admin.get(f"{OURS}/configmaps/kube-root-ca.crt")["data"]["ca.crt"]
    value = base64.b64encode(other.encode()).decode()
    sandbox.kubectl(
        "patch",
        "mutatingwebhookconfiguration",
        "slurm-bridge",
        "--type=json",
        "-p",
        json.dumps(
            [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": value}]
        ),
    )
    try:
        found = until_faulty(doctor, "webhook", sandbox)
    finally:
        sandbox.kubectl("replace", "-f", "-", stdin=again(before))

    assert "x509" in found["webhook"]["found"]
    assert "caBundle" in found["webhook"]["fix"]


def test_a_leader_that_is_silent(doctor: Doctor, sandbox: Sandbox) -> None:
    sandbox.pause("extender")
    try:
        found = until_faulty(doctor, "leaders", sandbox)
    finally:
        sandbox.resume("extender")

    assert "the leader of the extender has been silent" in found["leaders"]["found"]


def test_no_namespace(doctor: Doctor, sandbox: Sandbox) -> None:
    sandbox.kubectl("label", "namespace", "research", f"{names.ENABLED_LABEL}-")
    try:
        found = doctor()
    finally:
        sandbox.kubectl("label", "namespace", "research", f"{names.ENABLED_LABEL}=true")

    assert "warning" == found["namespaces"]["verdict"]
    assert "not checked" == found["webhook"]["verdict"]


def test_a_label_without_effect(sandbox: Sandbox, doctor: Doctor) -> None:
    """Whoever sets it is warned at once; the doctor, `why` and `explain` say it later."""
    kubectl = ("kubectl", "label", "namespace", "kube-system")
    done = subprocess.run(
        (*kubectl, f"{names.ENABLED_LABEL}=true"),
        env=sandbox.env,
        capture_output=True,
        text=True,
        check=True,
    )
    try:
        found = doctor()
        told = CliRunner().invoke(
            plugin.app(), ("explain", "-", "-n", "kube-system"), env=sandbox.env, input=sowing.PLAIN
        )
    finally:
        sandbox.run(*kubectl, f"{names.ENABLED_LABEL}-")

    no_effect = "namespace kube-system is excluded (excludedNamespaces): its label has no effect"
    assert "the label has no effect, and Slurm places no pods here" in done.stderr
    assert ("warning", no_effect) == (
        found["namespaces"]["verdict"],
        found["namespaces"]["found"],
    )
    assert no_effect in told.stdout


def test_daemon_sets_that_are_kept_off(sandbox: Sandbox, doctor: Doctor) -> None:
    """One that was there before the policy is not refused itself: its next pods are."""
    labels = {"app": "collector"}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "none"}],
        },
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "collector"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    path = "/apis/apps/v1/namespaces/default/daemonsets"
    with Api(sandbox.user_kubeconfig("root", "system:masters", BREAK_GLASS)) as root:
        root.create(path, body)
    try:
        found = doctor()
    finally:
        sandbox.admin.delete(f"{path}/collector")

    assert "default/collector" in found["DaemonSets"]["found"]
    assert "policies.direct.namespaces" in found["DaemonSets"]["fix"]


@pytest.mark.parametrize(
    ("name", "check", "words"),
    [
        ("no-such-node", "nodes on both sides", "Slurm has no such node"),
        ("node-1", "node names", "claim one Slurm node: node-1"),
    ],
)
def test_nodes(doctor: Doctor, sandbox: Sandbox, name: str, check: str, words: str) -> None:
    labels = {names.SLURM_NODE_NAME_LABEL: name, names.HYBRID_NODE_LABEL: "true"}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "wrong", "labels": labels}}
    sandbox.admin.create("/api/v1/nodes", body)
    try:
        found = doctor()
    finally:
        sandbox.admin.delete("/api/v1/nodes/wrong")

    assert "fault" == found[check]["verdict"]
    assert words in found[check]["found"]


def test_drained_nodes_and_closed_partitions(doctor: Doctor, sandbox: Sandbox) -> None:
    sandbox.run("scontrol", "update", "nodename=node-0", "state=drain", "reason=bad memory")
    sandbox.run("scontrol", "update", "partition=slurm-bridge", "state=down")
    try:
        found = doctor()
    finally:
        sandbox.run("scontrol", "update", "nodename=node-0", "state=undrain")
        sandbox.run("scontrol", "update", "partition=slurm-bridge", "state=up")

    assert "node-0 (bad memory)" in found["drained nodes"]["found"]
    assert "state=up" in found["partition's state"]["fix"]


def test_a_grace_time_that_takes_nodes_out_of_service(doctor: Doctor, sandbox: Sandbox) -> None:
    change = ("scontrol", "update", "partition=slurm-bridge")
    sandbox.run(*change, "GraceTime=60")
    try:
        found = doctor()
    finally:
        sandbox.run(*change, "GraceTime=0")

    assert "warning" == found["GraceTime"]["verdict"]
    assert "partition slurm-bridge has GraceTime=60" in found["GraceTime"]["found"]


def test_slurm_conf_that_makes_it_slow_or_untrue(doctor: Doctor, sandbox: Sandbox) -> None:
    before = sandbox.slurm_conf.read_text()
    wrong = {
        "SchedulerParameters": "bf_interval=1",
        "EnforcePartLimits": "NO",
        "MinJobAge": "10",
        "MaxNodeCount": "4",
    }
    text = before
    for key, value in wrong.items():
        text, count = re.subn(rf"(?m)^{key}=.*$", f"{key}={value}", text)
        assert 1 == count
    sandbox.slurm_conf.write_text(text)
    try:
        sandbox.restart("slurmctld")
        found = doctor()
    finally:
        sandbox.slurm_conf.write_text(before)
        sandbox.restart("slurmctld")

    verdicts = {key: found[key]["verdict"] for key in wrong}
    assert verdicts == {
        "SchedulerParameters": "warning",
        "EnforcePartLimits": "warning",
        "MinJobAge": "fault",
        "MaxNodeCount": "fault",
    }
    assert "batch_sched_delay, sched_interval" in found["SchedulerParameters"]["found"]


def test_somebody_who_may_not_look(sandbox: Sandbox) -> None:
    alice = str(sandbox.user_kubeconfig("alice", "team-a"))

    done = CliRunner().invoke(
        plugin.app(), ("doctor",), env={**sandbox.env, "KUBECONFIG": alice, "SLURM_JWT": ""}
    )

    assert 1 == done.exit_code
    assert "error: " in done.stderr
    assert "Traceback" not in done.output
