"""`kubectl slurm cluster`, `why` and `doctor` about a Slurm in pods, on a real API server."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sandbox.client import Sandbox
from slurmcli import plugin, why
from slurmoperator.objects.kinds import KINDS, SLURM_CLUSTER
from slurmoperator.objects.labels import MANAGER
from tests.slurmoperator.examples import BY_NAME, manifest, path
from tests.slurmoperator.served import DEFINITIONS

TOLD = {"observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}
WELL = {"Accepted": ("True", "Accepted", ""), "Ready": ("True", "AllReady", "")}
PLAIN = {"volumeClaimTemplates": ..., "template": None}
Ask = Callable[..., Result]


@pytest.fixture
def ask(served: Sandbox, namespace: str) -> Ask:
    def run(*words: str) -> Result:
        env = {**served.env, "SLURM_JWT": None, "KUBECONFIG": str(served.kubeconfig)}
        release = ("--release-namespace", namespace) if words[0] in ("cluster", "doctor") else ()
        return CliRunner().invoke(plugin.app(), [*words, *release], env=env)

    return run


@pytest.fixture
def slurm(served: Sandbox, namespace: str) -> Callable[..., None]:
    """Makes an object, and tells it conditions; one kind after the other."""

    def make(kind: str, name: str, spec: dict[str, Any], **told: tuple[str, str, str]) -> None:
        made = manifest(kind, name, **spec)
        made["metadata"]["namespace"] = namespace
        served.admin.create(path(BY_NAME[kind], namespace), made)
        conditions = [
            {"type": each, "status": status, "reason": reason, "message": message, **TOLD}
            for each, (status, reason, message) in {**WELL, **told}.items()
        ]
        status: dict[str, Any] = {"conditions": conditions}
        if kind == "NodeSet":
            status |= {"desired": 2, "readyReplicas": 1}
        where = f"{path(BY_NAME[kind], namespace, name)}/status"
        served.admin.patch(where, {"status": status})

    return make


def worker(served: Sandbox, namespace: str, name: str, *states: str, reason: str = "") -> None:
    """Make a worker's pod that its kubelet and slurm-operator have told something."""
    where = f"/api/v1/namespaces/{namespace}/pods"
    owner = served.admin.get(path(BY_NAME["NodeSet"], namespace, "gpu"))
    metadata = {
        "name": name,
        "labels": {
            "app.kubernetes.io/name": "slurmd",
            "app.kubernetes.io/instance": "gpu",
            "slinky.slurm.net/cluster": "site",
        },
        "ownerReferences": [
            {
                "apiVersion": owner["apiVersion"],
                "kind": "NodeSet",
                "name": "gpu",
                "uid": owner["metadata"]["uid"],
                "controller": True,
            }
        ],
    }
    spec = {"containers": [{"name": "slurmd", "image": "none"}], "nodeName": "machine"}
    served.admin.create(where, {"metadata": metadata, "spec": spec})
    conditions = [{"type": "Ready", "status": "True"}]
    conditions += [
        {"type": f"SlurmNodeState{state}", "status": "True", "message": reason} for state in states
    ]
    served.admin.patch(
        f"{where}/{name}/status", {"status": {"phase": "Running", "conditions": conditions}}
    )


def test_one_page_says_how_a_slurm_stands_and_what_it_waits_for(
    served: Sandbox, namespace: str, ask: Ask, slurm: Callable[..., None]
) -> None:
    waits = "gpu-1 is removed (scaled in) when its jobs have ended"
    slurm("Controller", "site", {})
    slurm("RestApi", "site", {})
    slurm("NodeSet", "gpu", PLAIN, Ready=("False", "ScalingIn", waits))
    worker(served, namespace, "gpu-0", "Idle")
    worker(served, namespace, "gpu-1", "Mixed", "Drain", reason="slurm-operator: scaled in")

    shown = ask("cluster", "-n", namespace)
    read = json.loads(ask("cluster", f"{namespace}/site", "-o", "json").stdout)

    assert 3 == shown.exit_code, shown.output
    assert f"{namespace}/site is not ready" in shown.stdout
    assert "1 draining, 1 idle" in shown.stdout
    assert f"NodeSet/gpu: {waits} (ScalingIn)" in shown.stdout
    assert "unknown: give --slurm-url and a token" in shown.stdout
    assert f"not running in namespace {namespace}" in shown.stdout
    assert [("gpu-0", "idle"), ("gpu-1", "draining")] == [
        (each["worker"], each["state"]) for each in read["workers"]
    ]

    pod = ask("why", f"{namespace}/gpu-1", "-o", "json")
    node_set = ask("why", "nodeset/gpu", "-n", namespace)
    assert (3, "is draining", "by slurm-operator: scaled in") == (
        pod.exit_code,
        *(json.loads(pod.stdout)[each] for each in ("state", "why")),
    )
    assert 3 == node_set.exit_code
    assert f"{namespace}/gpu is not ready" in node_set.stdout
    assert "worker gpu-1" in node_set.stdout
    missing = ask("why", "sc/nobody", "-n", namespace)
    assert 1 == missing.exit_code


def test_several_are_a_line_each_and_one_that_is_not_there_is_told(
    namespace: str, ask: Ask, slurm: Callable[..., None]
) -> None:
    empty = ask("cluster", "-n", namespace)
    assert (0, f"no Slurm in pods in namespace {namespace}") == (
        empty.exit_code,
        empty.stderr.strip(),
    )
    slurm("Controller", "site", {})
    slurm("Controller", "other", {})

    several = ask("cluster", "-n", namespace)
    typo = ask("cluster", "sito", "-n", namespace)

    assert [["other", "Ready"], ["site", "Ready"]] == [
        line.split()[1:3] for line in several.stdout.splitlines()[1:]
    ]
    assert 2 == typo.exit_code
    assert "it has: other, site" in " ".join(typo.stderr.replace("│", " ").split())


def test_the_doctor_knows_whether_slurm_operator_runs_and_its_definitions_fit(
    served: Sandbox, namespace: str, ask: Ask, slurm: Callable[..., None]
) -> None:
    slurm("Controller", "site", {})
    slurm("NodeSet", "gpu", PLAIN, SlurmKnown=("Unknown", "NotRead", "no answer"))

    def found() -> dict[str, tuple[str, str]]:
        told = json.loads(ask("doctor", "-o", "json").stdout)
        return {each["check"]: (each["verdict"], each["found"]) for each in told}

    without = found()
    lease = {
        "metadata": {"name": MANAGER},
        "spec": {
            "holderIdentity": "somebody",
            "leaseDurationSeconds": 60,
            "renewTime": "2099-01-01T00:00:00.000000Z",
        },
    }
    served.admin.create(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", lease)
    name = BY_NAME["Token"].definition_name
    with_leader = found()

    assert "fault" == without["slurm-operator"][0]
    assert ("ok", "slurm-operator has a leader") == with_leader["slurm-operator"]
    assert "ok" == with_leader["definitions of Slurm in pods"][0], with_leader
    assert "ok" == with_leader["other operators"][0]
    assert f"{namespace}/site: it has no RestApi" in with_leader["Slurms in pods"][1]
    changed = {"spec": {"versions": served.admin.get(f"{DEFINITIONS}/{name}")["spec"]["versions"]}}
    properties = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    before = dict(properties["spec"]["properties"])
    properties["spec"]["properties"]["later"] = {"type": "string"}
    served.admin.patch(f"{DEFINITIONS}/{name}", changed)
    try:
        other = found()["definitions of Slurm in pods"]
    finally:
        properties["spec"]["properties"] = before
        served.admin.patch(f"{DEFINITIONS}/{name}", changed)
    assert "warning" == other[0]
    assert "it has spec.later" in other[1]


def test_why_takes_the_names_that_kubectl_takes() -> None:
    names = {
        each
        for kind in (*KINDS, SLURM_CLUSTER)
        if kind.kind != "Token"
        for each in (kind.kind.lower(), kind.plural, *kind.short_names)
    }
    daemons = {"slurmctld", "slurmd", "sackd", "slurmrestd", "slurmdbd"}

    assert names - daemons == set(why.CLUSTER_KINDS)
