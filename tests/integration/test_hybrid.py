"""One machine, a kubelet and a real slurmd: pods and native batch jobs share it, and nobody is promised what is not there."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.domain.nodes import fillers
from sandbox.api import Api
from sandbox.options import Options
from slurmruntime.values import names, quantities
from tests.integration.machines import PATIENCE_S, Machine
from tests.integration.native_jobs import native, reason, state
from tests.integration.tampering import BREAK_GLASS
from tests.integration.worlds import Manifest, Worlds, container, played
from tests.servers import fresh_namespace, running_sandbox, wait_until

_CPUS = 16
_GPUS = 4
_SHARED_WITHIN_S = 120.0

pytestmark = pytest.mark.skipif(
    os.getuid() != 0,
    reason="NOT RUN: a real slurmd needs root (a /run of its own, jobs as other users); CI runs this as root",
)


@pytest.fixture(scope="module")
def hybrid() -> Iterator[Machine]:
    """The node with a slurmd, of 16 CPUs, and none besides."""
    with running_sandbox(
        Options(hybrid=True, hybrid_gpus=_GPUS, nodes=0, node_cpus=_CPUS)
    ) as sandbox:
        machine = Machine(sandbox, sandbox.instance.options.hybrid_name, sandbox)
        machine.await_in_service()
        yield machine


@pytest.fixture
def worlds(hybrid: Machine) -> Iterator[Worlds]:
    with fresh_namespace(hybrid.sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(hybrid.sandbox, name)
        yield worlds
        worlds.clear()


@pytest.fixture
def elsewhere(hybrid: Machine) -> Iterator[Worlds]:
    """A namespace that is none of Slurm's business."""
    with fresh_namespace(hybrid.sandbox, labels={}) as name:
        worlds = Worlds(hybrid.sandbox, name)
        yield worlds
        worlds.clear()


def test_pods_and_a_batch_job_share_the_machine(hybrid: Machine, worlds: Worlds) -> None:
    """16 pods of a sixteenth each and a job of four CPUs: not all fit at once, and never too many run."""
    proof = Path(hybrid.slurm.instance.slurm) / "spool" / "proof"
    batch = native(hybrid, 4, f"sleep 3; echo done > {proof}")
    for number in range(_CPUS):
        worlds.submit(f"pod-{number}", cpus="1", annotations=played(seconds=3))

    most = {"pods": 0, "together": 0}

    def over() -> bool:
        is_batch_running = state(hybrid, batch) == "RUNNING"
        pods = room_is_kept(hybrid, worlds)
        running = sum(pod["status"]["phase"] == "Running" for pod in pods)
        most["pods"] = max(most["pods"], running)
        if is_batch_running and state(hybrid, batch) == "RUNNING":
            most["together"] = max(most["together"], running)
            assert running + 4 <= _CPUS
        listed = worlds.sandbox.admin.get(f"{worlds.path}/pods")["items"]
        return all(pod["status"]["phase"] == "Succeeded" for pod in listed)

    wait_until(over, _SHARED_WITHIN_S, sandbox=hybrid.sandbox)

    wait_until(lambda: state(hybrid, batch) == "COMPLETED", PATIENCE_S, sandbox=hybrid.sandbox)
    assert "done" == proof.read_text().strip(), "slurmd has not run the job"
    assert most["together"] > 0
    assert [] == [job for job in worlds.queue() if job.state in ("PENDING", "RUNNING")]


def test_what_pods_of_others_take_is_held_back_from_slurm(
    hybrid: Machine, elsewhere: Worlds
) -> None:
    foreign(elsewhere, hybrid, "first", "1500m")
    wait_until(lambda: [(2, "1G")] == held(hybrid), PATIENCE_S, sandbox=hybrid.sandbox)

    foreign(elsewhere, hybrid, "second", "2")
    wait_until(
        lambda: 4 == sum(cpus for cpus, _ in held(hybrid)), PATIENCE_S, sandbox=hybrid.sandbox
    )
    all_of_it = native(hybrid, _CPUS, "true")
    most_of_it = native(hybrid, _CPUS - 4, "true")
    wait_until(lambda: state(hybrid, most_of_it) == "COMPLETED", PATIENCE_S, sandbox=hybrid.sandbox)
    assert "PENDING" == state(hybrid, all_of_it)

    hybrid.sandbox.restart("controllers", signal="KILL")
    elsewhere.sandbox.admin.delete(f"{elsewhere.path}/pods/second", gracePeriodSeconds=0)
    wait_until(
        lambda: 2 == sum(cpus for cpus, _ in held(hybrid)), PATIENCE_S, sandbox=hybrid.sandbox
    )
    elsewhere.sandbox.admin.delete(f"{elsewhere.path}/pods/first", gracePeriodSeconds=0)
    wait_until(lambda: [] == held(hybrid), PATIENCE_S, sandbox=hybrid.sandbox)
    wait_until(lambda: state(hybrid, all_of_it) == "COMPLETED", PATIENCE_S, sandbox=hybrid.sandbox)


def test_a_pod_gets_devices_only_where_slurmd_can_give_none_of_them_to_a_job(
    hybrid: Machine, worlds: Worlds
) -> None:
    """Kubelet and slurmd each choose: only a pod that takes all four is safe."""
    some = worlds.submit("some", containers=[_with_gpus(_GPUS - 1)])
    assert "slurmd hands out devices of gpu there too" in worlds.await_event(
        "some", "SubmitRefused"
    )
    assert [] == worlds.jobs(some)

    worlds.submit("all", containers=[_with_gpus(_GPUS)])
    worlds.await_phase("all", "Running")
    job = native(hybrid, 1, "true", "--gres=gpu:1")
    wait_until(lambda: "Resources" in reason(hybrid, job), PATIENCE_S, sandbox=hybrid.sandbox)
    worlds.sandbox.admin.delete(f"{worlds.path}/pods/all")
    wait_until(lambda: state(hybrid, job) == "COMPLETED", PATIENCE_S, sandbox=hybrid.sandbox)


def test_drains_pass_both_ways_and_the_record_stays_the_slurmds(hybrid: Machine) -> None:
    hybrid.cordon(on=True)
    assert hybrid.await_drained().startswith("slurm-bridge: cordoned in Kubernetes")
    hybrid.cordon(on=False)
    hybrid.await_in_service()

    hybrid.update(state=["DRAIN"], reason="bad fan")
    assert hybrid.await_condition("Drained")[1].startswith("bad fan, by root, since 20")
    hybrid.update(state=["RESUME"])
    hybrid.await_in_service()

    hybrid.label(None, key=names.HYBRID_NODE_LABEL)
    node = hybrid.await_in_slurm(
        lambda node: names.BRIDGED_FEATURE not in node.get("AvailableFeatures", "")
    )
    assert "DRAIN" not in node["State"]
    wait_until(lambda: [] == hybrid.taints(), PATIENCE_S, sandbox=hybrid.sandbox)
    hybrid.label("true", key=names.HYBRID_NODE_LABEL)
    hybrid.await_in_slurm(lambda node: names.BRIDGED_FEATURE in node["AvailableFeatures"])
    hybrid.await_in_service()


def _with_gpus(count: int) -> Manifest:
    """A container with so many GPUs."""
    one = container()
    given = {"nvidia.com/gpu": str(count)}
    resources = {side: {**amounts, **given} for side, amounts in one["resources"].items()}
    return {**one, "resources": resources}


def foreign(elsewhere: Worlds, hybrid: Machine, name: str, cpus: str) -> None:
    """A pod that is there without asking Slurm, as an administrator may put it there."""
    tolerates = [{"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}]
    with Api(elsewhere.sandbox.user_kubeconfig("medic", "system:masters", BREAK_GLASS)) as medic:
        elsewhere.submit(
            name,
            cpus=cpus,
            memory="1Gi",
            by=medic,
            nodeName=hybrid.name,
            tolerations=tolerates,
        )


def held(hybrid: Machine) -> list[tuple[int, str]]:
    """CPUs and memory of each filler that runs."""
    named = ("--name", fillers.NAME, "--states=RUNNING")
    lines = hybrid.slurm.run("squeue", "--noheader", *named, "-o", "%C %m").splitlines()
    return [(int(cpus), memory) for cpus, memory in (line.split() for line in lines)]


def room_is_kept(hybrid: Machine, worlds: Worlds) -> list[Manifest]:
    """The pods that a kubelet would have admitted fit (NodeResourcesFit); returns those of the test."""
    listed = worlds.sandbox.admin.get("/api/v1/pods", fieldSelector=f"spec.nodeName={hybrid.name}")[
        "items"
    ]
    alive = [pod for pod in listed if pod["status"]["phase"] not in ("Succeeded", "Failed")]
    asked = sum(
        quantities.milli(quantities.parse(each["resources"]["requests"]["cpu"]))
        for pod in alive
        for each in pod["spec"]["containers"]
    )
    assert asked <= _CPUS * 1000
    return [pod for pod in alive if pod["metadata"]["namespace"] == worlds.namespace]
