"""How a pod ended, as Slurm is told."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model.pods import Container, ContainerState, Phase, Pod
from bridge.domain.observation.deletions import Deletions
from tests.make import lives as build
from tests.make.lives import exited

SECOND = timedelta(seconds=1)


def failed(*containers: Container) -> Pod:
    return replace(build.failed(), containers=containers)


def init(code: int) -> Container:
    return exited(code, name="init")


def sidecar(code: int) -> Container:
    return replace(exited(code, name="sidecar"), restartable_init=True)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(build.succeeded(), Outcome(), id="success"),
        pytest.param(
            replace(build.succeeded(), containers=(sidecar(143), exited(0))),
            Outcome(),
            id="success, its sidecar was terminated afterwards",
        ),
        pytest.param(failed(exited(3)), Outcome(exit_code=3), id="exit code"),
        pytest.param(failed(exited(0), exited(4)), Outcome(exit_code=4), id="the second failed"),
        pytest.param(failed(exited(3), exited(4)), Outcome(exit_code=3), id="the first counts"),
        pytest.param(
            failed(exited(2, at=build.NOW + SECOND), exited(137, reason="OOMKilled")),
            Outcome(out_of_memory=True),
            id="the first in time, not in the spec",
        ),
        pytest.param(
            replace(failed(exited(137)), reason="Evicted"),
            Outcome(exit_code=255),
            id="evicted by its kubelet, which killed the container",
        ),
        pytest.param(
            replace(failed(exited(137)), reason="DeadlineExceeded"),
            Outcome(exit_code=255),
            id="ran longer than activeDeadlineSeconds",
        ),
        pytest.param(failed(init(2), exited(3)), Outcome(exit_code=2), id="init before main"),
        pytest.param(failed(sidecar(143), exited(3)), Outcome(exit_code=3), id="sidecars last"),
        pytest.param(
            failed(sidecar(7), exited(0)), Outcome(exit_code=7), id="only the sidecar failed"
        ),
        pytest.param(
            failed(exited(137, reason="OOMKilled")), Outcome(out_of_memory=True), id="OOM killed"
        ),
        pytest.param(failed(exited(137)), Outcome(signal=9), id="128 + 9 is SIGKILL"),
        pytest.param(failed(exited(143)), Outcome(signal=15), id="128 + 15 is SIGTERM"),
        pytest.param(failed(exited(192)), Outcome(signal=64), id="128 + 64 is the last signal"),
        pytest.param(failed(exited(128)), Outcome(exit_code=128), id="128 is no signal"),
        pytest.param(failed(exited(193)), Outcome(exit_code=193), id="193 is no signal"),
        pytest.param(
            failed(replace(exited(0), signal=11)), Outcome(signal=11), id="the runtime says signal"
        ),
        pytest.param(
            failed(replace(exited(2), signal=127)),
            Outcome(exit_code=2),
            id="signal 127 means something else to Slurm",
        ),
        pytest.param(failed(exited(255)), Outcome(exit_code=255), id="the highest exit code"),
        pytest.param(
            failed(exited(3221225786)), Outcome(exit_code=255), id="a code beyond a byte is capped"
        ),
        pytest.param(failed(exited(-1)), Outcome(exit_code=255), id="so is a negative one"),
        pytest.param(failed(), Outcome(exit_code=255), id="failed without any container"),
        pytest.param(
            failed(exited(0), Container(name="other")),
            Outcome(exit_code=255),
            id="failed without a failed container",
        ),
    ],
)
def test_tells_slurm_how_the_pod_ended(pod: Pod, expected: Outcome) -> None:
    assert expected == outcome.of(pod)


@pytest.mark.parametrize(
    ("pod", "lost"),
    [
        pytest.param(failed(exited(255, reason="Unknown")), True, id="containerd lost it"),
        pytest.param(
            failed(exited(0), exited(137, reason="ContainerStatusUnknown")),
            True,
            id="the kubelet lost one of two",
        ),
        pytest.param(failed(exited(255)), False, id="it ended with 255"),
        pytest.param(
            replace(failed(), reason="UnexpectedAdmissionError"),
            True,
            id="its devices are not back yet",
        ),
        pytest.param(
            replace(failed(exited(137, reason="ContainerStatusUnknown")), reason="Evicted"),
            False,
            id="evicted",
        ),
        pytest.param(
            replace(failed(exited(255, reason="Unknown")), phase=Phase.RUNNING),
            False,
            id="it will be restarted",
        ),
    ],
)
def test_a_pod_that_went_with_its_machine_is_told_from_one_that_failed(
    pod: Pod, lost: bool
) -> None:
    assert lost == outcome.lost_with_node(pod)


DELETED_AT = build.NOW


@pytest.mark.parametrize(
    ("containers", "by_itself"),
    [
        pytest.param((exited(at=DELETED_AT - SECOND),), True, id="ended a second before"),
        pytest.param((exited(at=DELETED_AT),), False, id="ended in the same second: by SIGTERM"),
        pytest.param((exited(at=DELETED_AT + SECOND),), False, id="ended afterwards"),
        pytest.param(
            (exited(at=DELETED_AT - SECOND), exited(at=DELETED_AT + SECOND)),
            False,
            id="one of two still ran",
        ),
        pytest.param(
            (replace(exited(), finished_at=None),), False, id="nobody knows when it ended"
        ),
        pytest.param((Container(name="main"),), False, id="never started"),
    ],
)
@pytest.mark.parametrize("grace_s", [0, 30], ids=["forced", "with grace"])
def test_knows_what_came_first_the_end_or_the_deletion(
    containers: tuple[Container, ...], by_itself: bool, grace_s: int
) -> None:
    pod = build.deleting(failed(*containers), at=DELETED_AT, grace_s=grace_s)

    assert by_itself is outcome.ended_by_itself(pod)


@pytest.mark.parametrize(
    ("container", "by_itself"),
    [
        pytest.param(exited(143, at=DELETED_AT - 2 * SECOND), False, id="stopped, and let go of"),
        pytest.param(exited(137, at=DELETED_AT - 2 * SECOND), False, id="killed, and let go of"),
        pytest.param(
            exited(143, at=DELETED_AT - 61 * SECOND), True, id="more than a minute before"
        ),
        pytest.param(exited(1, at=DELETED_AT - 2 * SECOND), True, id="no signal of a kubelet's"),
        pytest.param(
            replace(exited(137, at=DELETED_AT - 2 * SECOND), reason="OOMKilled"),
            True,
            id="out of memory",
        ),
    ],
)
def test_the_kubelets_last_delete_is_told_from_somebodys(
    container: Container, by_itself: bool
) -> None:
    """It sets the deletion to its own moment, after the end, and leaves no grace."""
    pod = build.deleting(failed(container), at=DELETED_AT, grace_s=0)

    assert by_itself is outcome.ended_by_itself(pod)


def test_a_deletion_that_was_seen_before_the_kubelets_last_is_remembered() -> None:
    seen = Deletions()
    stops = build.deleting(failed(exited(0)), at=DELETED_AT, grace_s=30)
    over = failed(exited(0, at=DELETED_AT + 5 * SECOND))
    let_go = build.deleting(over, at=DELETED_AT + 8 * SECOND, grace_s=0)
    seen.see(stops)
    seen.see(let_go)

    assert outcome.ended_by_itself(let_go)
    assert not outcome.ended_by_itself(seen.with_first(let_go))
    seen.forget(let_go.uid)
    assert outcome.ended_by_itself(seen.with_first(let_go))


def test_a_pod_that_nobody_deleted_ended_by_itself() -> None:
    assert outcome.ended_by_itself(failed(exited(1)))


def test_a_container_that_still_runs_has_not_failed() -> None:
    running = Container(name="main", state=ContainerState.RUNNING, exit_code=None)
    pod = replace(failed(running), phase=Phase.FAILED)

    assert outcome.of(pod).exit_code == outcome.NO_EXIT_CODE
