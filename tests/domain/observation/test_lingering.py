"""Which containers of ended jobs keep a native job from being launched."""

from collections.abc import Mapping

import pytest

from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Phase, Pod
from bridge.domain.observation import lingering
from bridge.domain.observation.lingering import Launch
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, PodUid, SlurmNode
from tests.make import placing as build
from tests.make.lives import MAIN_RUNNING, exited

N1, N2 = SlurmNode("n1"), SlurmNode("n2")
PLACED = {names.JOB_ID_LABEL: "7"}
ON_BOTH = Launch(phase=JobPhase.WAITING, nodes=(N1, N2))


def pod(name: str = "old", *, node: str = "n1", bound: bool = True, **fields: object) -> Pod:
    where = {"kube_node": KubeNode(node)} if bound else {}
    given: Mapping[str, object] = {
        "uid": PodUid(name),
        "name": name,
        "gates": (),
        "labels": PLACED,
        "annotations": {names.NODE_ANNOTATION: node},
        "phase": Phase.RUNNING,
        **where,
    }
    return build.pod(**{**given, **fields})


def held(job: Launch | None, *pods: Pod, backed: tuple[str, ...] = (), node: SlurmNode = N1) -> str:
    return lingering.held_by(job, {node: pods}, frozenset(map(PodUid, backed)))


def test_a_pod_that_runs_on_after_its_job_holds_the_next_job_and_is_named() -> None:
    expected = "containers of ended jobs may still run: team-a/old on n1"
    assert expected == held(ON_BOTH, pod())
    assert "team-a/old on n2" in held(ON_BOTH, pod(node="n2"), node=N2)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(None, id="Slurm does not have it"),
        pytest.param(Launch(phase=JobPhase.ENDED, nodes=(N1,)), id="it was cancelled"),
        pytest.param(Launch(phase=JobPhase.WAITING), id="it has no nodes"),
        pytest.param(Launch(phase=JobPhase.WAITING, nodes=(N2,)), id="it is elsewhere"),
        pytest.param(
            Launch(phase=JobPhase.WAITING, nodes=(N1,), is_external=True),
            id="nothing of it is launched",
        ),
    ],
)
def test_these_jobs_are_not_held(job: Launch | None) -> None:
    assert "" == held(job, pod())
    assert () == lingering.nodes_in_question(job, {N1: [pod()]})


@pytest.mark.parametrize("phase", [JobPhase.WAITING, JobPhase.RUNNING, JobPhase.PAUSED])
def test_a_job_is_held_in_whatever_phase_it_is_shown(phase: JobPhase) -> None:
    assert held(Launch(phase=phase, nodes=(N1,)), pod())


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(pod(), True, id="running"),
        pytest.param(pod(phase=Phase.PENDING), True, id="bound, not started yet"),
        pytest.param(pod(phase=Phase.UNKNOWN), True, id="its kubelet is silent"),
        pytest.param(pod(deletion_at=build.CREATED), True, id="in its grace period"),
        pytest.param(pod(bound=False), True, id="about to be bound"),
        pytest.param(pod(phase=Phase.FAILED), False, id="failed"),
        pytest.param(pod(phase=Phase.SUCCEEDED), False, id="succeeded"),
        pytest.param(
            pod(phase=Phase.FAILED, containers=(MAIN_RUNNING,)), True, id="called failed, and runs"
        ),
        pytest.param(
            pod(phase=Phase.FAILED, containers=(exited(1),)), False, id="failed, and is told so"
        ),
        pytest.param(pod(labels={}), False, id="Slurm never placed it"),
        pytest.param(pod(bound=False, annotations={}), False, id="it has no node"),
    ],
)
def test_what_may_run(there: Pod, expected: bool) -> None:
    assert expected == lingering.may_run(there)
    assert expected == bool(held(ON_BOTH, there))


def test_a_pod_whose_own_job_lives_holds_nobody() -> None:
    assert "" == held(ON_BOTH, pod("mine"), backed=("mine",))
    assert "team-a/old on" in held(ON_BOTH, pod("mine"), pod("old"), backed=("mine",))


def test_three_are_named_and_the_others_counted() -> None:
    many = [pod(f"old-{number}") for number in range(5)]
    assert held(ON_BOTH, *many).endswith("team-a/old-2 on n1 and 2 more")
