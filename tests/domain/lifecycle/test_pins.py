"""A pin that the API server refuses holds nodes for no longer than a bind may take."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.lifecycle.actions import Action, Assign, Cancel, OwnCause, Tell, Wait
from bridge.domain.lifecycle.decision import Decision, Facts, Fit, PinRefusal
from bridge.domain.lifecycle.pins import Pins
from bridge.domain.model.claims.values import PodClaim
from bridge.domain.model.pods import Condition
from slurmruntime.values import names
from slurmruntime.values.ids import JobId
from tests.make import lives as build
from tests.make.lives import NOW

DEADLINE = build.POLICY.bind_deadline
ASSIGN = Assign(
    job_id=build.JOB_ID,
    sluid=None,
    slurm_node=build.SLURM_NODE,
    kube_node=build.KUBE_NODE,
    grant="",
)
PIN = Decision(actions=(ASSIGN,), reason="why")
UID = build.gated().uid


def waiting(refusal: PinRefusal | None) -> Facts:
    facts = build.facts(build.gated(), build.job())
    return replace(facts, kube_node=build.KUBE_NODE, fit=Fit.FITS, pin_refusal=refusal)


def refused(
    ago: timedelta, job_id: JobId = build.JOB_ID, tried: timedelta = timedelta(seconds=60)
) -> PinRefusal:
    return PinRefusal(
        job_id=job_id, since=NOW - ago, tried_at=NOW - tried, text="too many operations"
    )


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(None, id="nobody refuses it"),
        pytest.param(refused(DEADLINE - timedelta(seconds=1)), id="not for long"),
        pytest.param(refused(2 * DEADLINE, JobId(1)), id="an earlier job's pin"),
        pytest.param(
            refused(2 * DEADLINE, tried=max(DEADLINE, timedelta(minutes=2))),
            id="not tried for a while: a gang keeps its placeholder",
        ),
    ],
)
def test_a_pod_is_pinned_again_and_again(refusal: PinRefusal | None) -> None:
    (action,) = build.decide(waiting(refusal)).actions

    assert isinstance(action, Assign)


def test_after_the_bind_deadline_it_counts_as_a_misfit() -> None:
    cancel, tell = build.decide(waiting(refused(DEADLINE))).actions

    assert isinstance(cancel, Cancel)
    assert isinstance(tell, Tell)
    assert (OwnCause.MISFIT, "NodeMisfit") == (cancel.cause, tell.reason)
    assert "too many operations" in tell.message


def test_a_pod_that_waits_for_devices_is_told_once_while_it_is_tried_again() -> None:
    in_the_way = "device gpu-0 of n1 is still given to claim ns/other"
    refusal = replace(refused(timedelta(seconds=9)), text=in_the_way, is_of_devices=True)
    facts = waiting(refusal)
    tell, assign = build.decide(facts).actions

    assert isinstance(assign, Assign)
    assert isinstance(tell, Tell)
    assert ("DevicesNotGiven", build.JOB_ID) == (tell.reason, tell.job_id)
    assert in_the_way in tell.message
    said = Condition(
        type=names.ALLOCATED_CONDITION, status="False", reason=tell.reason, message=tell.message
    )
    labels = {names.JOB_ID_LABEL: str(build.JOB_ID)}
    told = replace(facts.pod, conditions=(said,), labels=labels)
    (only,) = build.decide(replace(facts, pod=told)).actions
    assert isinstance(only, Assign)


def test_a_pod_that_has_just_begun_to_wait_for_devices_is_not_told_yet() -> None:
    """Kubernetes may make its claim a moment after Slurm has started the job: telling costs two writes."""
    patience = build.POLICY.tell_after
    at_first = replace(refused(patience - timedelta(seconds=0.1)), is_of_devices=True)
    (only,) = build.decide(waiting(at_first)).actions
    tell, _ = build.decide(waiting(replace(refused(patience), is_of_devices=True))).actions

    assert isinstance(only, Assign)
    assert isinstance(tell, Tell)


@pytest.mark.parametrize(
    ("claim", "waited", "expected"),
    [
        ("", timedelta(0), Wait),
        ("", build.POLICY.tell_after, Assign),
        ("pod-devices-x7k2p", timedelta(0), Assign),
    ],
)
def test_a_claim_that_kubernetes_is_still_making_is_awaited_for_a_moment(
    claim: str, waited: timedelta, expected: type[Action]
) -> None:
    """Its name in the pod's status wakes us: no attempt fails, and none waits for its back-off."""
    facts = waiting(None)
    made = PodClaim(entry="devices", claim=claim, template="devices")
    pod = replace(facts.pod, resource_claims=(PodClaim(entry="nic", claim="nic"), made))

    decision = build.decide(replace(facts, pod=pod, since=NOW - waited))

    assert [expected] == [type(action) for action in decision.actions]
    assert ("the claim for devices" in decision.reason) is (expected is Wait)


def test_a_pod_without_its_devices_is_not_told_that_the_api_server_refuses() -> None:
    refusal = replace(refused(DEADLINE), text="too few", is_of_devices=True)

    _, tell = build.decide(waiting(refusal)).actions

    assert isinstance(tell, Tell)
    assert "claims cannot get their devices there (too few)" in tell.message
    assert "API server" not in tell.message


def test_the_first_refusal_of_each_job_counts() -> None:
    pins = Pins()

    pins.refused(UID, PIN, "one", NOW)
    pins.refused(UID, PIN, "two", NOW + timedelta(seconds=9))
    first = pins.get(UID)
    pins.refused(UID, replace(PIN, actions=(replace(ASSIGN, job_id=JobId(1)),)), "new", NOW)

    later = NOW + timedelta(seconds=9)
    assert PinRefusal(job_id=build.JOB_ID, since=NOW, tried_at=later, text="two") == first
    assert PinRefusal(job_id=JobId(1), since=NOW, tried_at=NOW, text="new") == pins.get(UID)
    pins.forget(UID)
    assert pins.get(UID) is None


def test_other_writes_are_no_pins() -> None:
    pins = Pins()

    pins.refused(UID, Decision(actions=(Wait(),), reason=""), "no", NOW)

    assert pins.get(UID) is None


def test_a_long_answer_is_cut() -> None:
    pins = Pins()

    pins.refused(UID, PIN, "x" * 10_000, NOW)

    refusal = pins.get(UID)
    assert refusal is not None
    assert len(refusal.text) <= 512
