"""Operators that the sandbox does not run, played from their recordings: what the whole system makes of their pods."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from sandbox.client import Sandbox
from tests.integration.worlds import Manifest, is_gated
from tests.recorded import recording
from tests.workloads import replay
from tests.workloads.kinds import Kinds, Seen, outcomes
from tests.workloads.replay import Operator

ALL = ""
"""Every pod of the namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What becomes of one recording."""

    recording: str
    key: Callable[[Operator, str], str]
    """The workload's, in the placeholder's identity; from the operator and the namespace."""
    name: str
    """squeue's."""
    members: tuple[str, ...]
    """In rank order, by the beginnings of their names."""
    jobs: int = 1
    """Components, where members differ in size."""
    first: str = ""
    """The member whose success is the end of all, as then the operator deletes the others; "": each ends by itself."""


MPI = ("pi-launcher", "pi-worker-0", "pi-worker-1", "pi-worker-2", "pi-worker-3")
PYTORCH = ("bert-master-0", "bert-worker-0", "bert-worker-1", "bert-worker-2")
TENSORFLOW = ("mnist-chief-0", "mnist-ps-0", "mnist-ps-1", "mnist-worker-0", "mnist-worker-1")


def of_kind(kind: str) -> Callable[[Operator, str], str]:
    return lambda operator, _: operator.uid(kind)


def of_pod_group(name: str) -> Callable[[Operator, str], str]:
    return lambda _, namespace: f"PodGroup.scheduling.x-k8s.io/{namespace}/{name}"


CASES = [
    Case(
        recording="mpijob",
        key=of_kind("MPIJob"),
        name="pi",
        members=MPI,
        jobs=2,
        first="pi-launcher",
    ),
    Case(
        recording="mpijob-pod-group",
        key=of_pod_group("pi"),
        name="pi",
        members=MPI,
        jobs=2,
        first="pi-launcher",
    ),
    Case(recording="pytorchjob", key=of_kind("PyTorchJob"), name="bert", members=PYTORCH),
    Case(recording="pytorchjob-pod-group", key=of_pod_group("bert"), name="bert", members=PYTORCH),
    Case(
        recording="tfjob",
        key=of_kind("TFJob"),
        name="mnist",
        members=TENSORFLOW,
        first="mnist-chief-0",
    ),
    Case(
        recording="trainjob",
        key=lambda operator, _: f"{operator.uid('JobSet')}.0",
        name="llm",
        members=tuple(f"llm-node-0-{index}" for index in range(4)),
    ),
    Case(
        recording="raycluster",
        key=of_kind("RayCluster"),
        name="ray",
        members=("ray-head-", *["ray-gpu-worker-"] * 3),
        jobs=2,
    ),
    Case(
        recording="kueue-pod-group",
        key=lambda _, namespace: f"KueuePodGroup/{namespace}/sample",
        name="sample",
        members=("sample-0", "sample-1", "sample-2"),
    ),
]
THAT_END = [case for case in CASES if case.recording != "raycluster"]
"""A Ray cluster runs until somebody deletes it."""


@pytest.fixture(scope="module", autouse=True)
def _operators_kinds(workload_sandbox: Sandbox) -> None:
    replay.serve(workload_sandbox.admin, map(recording.load, recording.NAMES))


def started(kinds: Kinds, case: Case) -> tuple[Operator, str, Seen]:
    """The gang runs, after it had to wait for room for all of it."""
    operator = Operator(kinds, recording.load(case.recording))
    worlds = kinds.worlds
    with worlds.strangers_on("node-0", "node-1", "node-2"):
        operator.start()
        key = case.key(operator, worlds.namespace)
        if case.recording.startswith("kueue"):
            worlds.submit("alone")
            worlds.await_phase("alone", "Running")
            assert [] == worlds.jobs(key)
            worlds.delete("alone")
            worlds.await_gone("alone")
            operator.admit()
        kinds.until(lambda: ["PENDING"] * case.jobs == [job.state for job in worlds.live(key)])
        assert [True] * len(case.members) == [is_gated(pod) for pod in kinds.pods(ALL)]
    gang = kinds.await_gang(ALL, len(case.members), key)
    assert case.name == gang.name
    for name, expected in zip(gang.members, case.members, strict=True):
        assert name.startswith(expected)
    return operator, key, gang


def named(gang: Seen, name: str) -> list[Manifest]:
    return [pod for pod in gang.pods if pod["metadata"]["name"].startswith(name)]


@pytest.mark.parametrize("case", THAT_END, ids=lambda case: case.recording)
def test_members_start_together_and_complete(kinds: Kinds, case: Case) -> None:
    operator, key, gang = started(kinds, case)

    for pod in named(gang, case.first):
        kinds.end(pod, exit_code=0)
    if case.first:
        operator.clean_up()

    assert [("COMPLETED", "0:0")] * case.jobs == outcomes(kinds.ended(key, case.jobs))
    if case.recording.startswith("kueue"):
        operator.release()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.recording)
def test_an_object_that_is_deleted_ends_its_job(kinds: Kinds, case: Case) -> None:
    operator, key, _ = started(kinds, case)

    operator.delete()

    assert [("CANCELLED", "0:0")] * case.jobs == outcomes(kinds.ended(key, case.jobs))
    if case.recording.startswith("kueue"):
        operator.release()
    kinds.await_none(ALL)


def test_a_launcher_does_not_get_a_gpu_nodes_worth(kinds: Kinds) -> None:
    """One heterogeneous job: the launcher's component has no GPU and no node of the workers'."""
    (case,) = [case for case in CASES if case.recording == "mpijob"]
    operator, key, gang = started(kinds, case)
    launcher, *workers = gang.pods
    components = sorted(kinds.worlds.live(key), key=lambda job: job.id)
    shown = kinds.worlds.scontrol("show", "job", str(components[0].id)).split("HetJobOffset=1")
    assert ["gres/gpu" in part for part in shown] == [False, True]
    assert launcher["spec"]["nodeName"] not in {pod["spec"]["nodeName"] for pod in workers}
    operator.delete()


def test_what_submits_to_a_ray_cluster_has_a_job_of_its_own(kinds: Kinds) -> None:
    """Its success is seen; the cluster that is deleted then is not called a success."""
    operator = Operator(kinds, recording.load("rayjob"))
    operator.start()
    gang = kinds.await_gang(ALL, 4, operator.uid("RayJob"))
    assert "tune" == gang.name

    operator.follow()

    (submitter,) = kinds.await_running("job-name=tune", 1)
    (own,) = kinds.worlds.live(submitter["metadata"]["uid"])
    assert own.id != gang.job.id
    kinds.end(submitter, exit_code=0)
    assert [("COMPLETED", "0:0")] == outcomes(kinds.ended(submitter["metadata"]["uid"]))
    operator.delete()
    assert [("CANCELLED", "0:0")] * 2 == outcomes(kinds.ended(operator.uid("RayJob"), 2))


def test_a_stateful_set_that_kueue_counts_starts_one_pod_after_another(kinds: Kinds) -> None:
    operator = Operator(kinds, recording.load("kueue-stateful-set"))
    operator.start()

    pods = kinds.await_running("app=web", 2)

    assert ["web-0", "web-1"] == [
        kinds.name(job) for pod in pods for job in kinds.worlds.live(pod["metadata"]["uid"])
    ]
