"""A pod that failed with its machine is excused at once, whatever else is decided for it."""

from dataclasses import replace

import pytest

from bridge.domain.lifecycle.actions import Cause, Excuse, Release, Wait
from bridge.domain.lifecycle.decision import Decision
from bridge.domain.lifecycle.rules import crashes
from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Condition, Pod
from slurmruntime.values import names
from tests.make import gangs
from tests.make import lives as build

CRASHED = replace(build.failed(), containers=(build.exited(255, reason="Unknown"),))
EXCUSE = Excuse(cause=Cause.NODE_FAIL, message=f"node {build.KUBE_NODE} crashed")
DISRUPTED = Condition(type=names.DISRUPTION_TARGET, status="True", reason="x")


def excused(pod: Pod) -> Decision:
    return crashes.excuse(pod, Decision(actions=(Wait(),), reason="why"))


def test_it_is_excused_while_slurm_is_waited_for() -> None:
    assert (EXCUSE,) == excused(CRASHED).actions


def test_so_is_one_whose_devices_its_kubelet_no_longer_has() -> None:
    (excuse,) = excused(replace(build.failed(), reason="UnexpectedAdmissionError")).actions

    assert f"node {build.KUBE_NODE} rejected it" == getattr(excuse, "message", "")


def test_nothing_is_left_undone_for_it() -> None:
    decision = Decision(actions=(Release(),), reason="why")

    assert (EXCUSE, Release()) == crashes.excuse(CRASHED, decision).actions


@pytest.mark.safeguard(
    "excuse",
    "a tenant has a pod fail, or deletes it",
    "nothing: only a kubelet reports a container that it lost with its machine",
)
@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(build.failed(), id="it failed by itself"),
        pytest.param(build.bound(), id="it runs"),
        pytest.param(replace(CRASHED, reason="Evicted"), id="its kubelet ended it"),
        pytest.param(replace(CRASHED, conditions=(DISRUPTED,)), id="it is excused already"),
        pytest.param(build.deleting(CRASHED), id="somebody has deleted it"),
    ],
)
def test_nobody_else_is(pod: Pod) -> None:
    assert (Wait(),) == excused(pod).actions


def test_one_whose_view_is_old_is_excused_nevertheless() -> None:
    """Its Job is about to count it."""
    found = gangs.decisions([CRASHED], build.job(), fresh=False, mine=False)

    ((_, decision),) = found.first
    assert (EXCUSE,) == decision.actions


def test_every_member_of_a_gang_is() -> None:
    lost = (build.exited(255, reason="Unknown"),)
    members = [
        replace(gangs.ended(name, rank, 255), containers=lost) for rank, name in enumerate("ab")
    ]

    found = gangs.decided(members, gangs.job(JobPhase.RUNNING, *members), mine=False)

    assert all(isinstance(found[name][0], Excuse) for name in "ab")
