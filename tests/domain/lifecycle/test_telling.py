"""What a waiting pod says of itself, and when it is silent."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.lifecycle.actions import (
    Tell,
    Wait,
)
from bridge.domain.model.jobs import JobPhase
from slurmruntime.values.ids import JobId
from tests.make import lives as build
from tests.make.lives import actions, decide, only_tell, told

NOW = build.NOW
POLICY = build.POLICY
SECOND = timedelta(seconds=1)


class TestTelling:
    def test_is_silent_in_the_first_moments(self) -> None:
        young = replace(build.waiting(), submitted_at=NOW - SECOND)

        decision = decide(build.facts(build.gated(), young))

        assert (Wait(),) == decision.actions
        assert POLICY.tell_after - SECOND == decision.retry_after

    def test_is_silent_about_what_was_submitted_and_not_looked_at(self) -> None:
        noted = replace(build.waiting(), sluid=None, submitted_at=None)

        decision = decide(build.facts(build.gated(), noted))

        assert (Wait(),) == decision.actions
        assert decision.retry_after is None, "its job is looked at in its turn, which wakes the pod"

    def test_labels_the_pod_and_says_slurms_reason_in_words(self) -> None:
        tell = only_tell(build.facts(build.gated(), build.waiting("QOSMaxGRESPerUser")))

        assert tell.job_id == build.JOB_ID
        assert tell.reason == "QOSMaxGRESPerUser"
        assert "limit of its QOS for one user (QOSMaxGRESPerUser)" in tell.message

    def test_says_nothing_twice(self) -> None:
        facts = build.facts(build.gated(), build.waiting())

        assert (Wait(),) == actions(replace(facts, pod=told(facts.pod, only_tell(facts))))

    def test_speaks_again_when_the_reason_changes(self) -> None:
        facts = build.facts(build.gated(), build.waiting("Priority"))
        pod = told(facts.pod, only_tell(facts))

        assert only_tell(build.facts(pod, build.waiting("Resources"))).reason == "Resources"

    def test_speaks_again_when_it_has_another_placeholder(self) -> None:
        facts = build.facts(build.gated(), build.waiting())
        pod = told(facts.pod, only_tell(facts))

        tell = only_tell(build.facts(pod, build.waiting(number=4712)))

        assert tell.job_id == 4712

    def test_is_not_moved_by_an_estimate_that_jitters(self) -> None:
        start = NOW + timedelta(minutes=12)
        facts = build.facts(build.gated(), replace(build.waiting(), expected_start=start))
        pod = told(facts.pod, only_tell(facts))
        jittered = replace(build.waiting(), expected_start=start + 20 * SECOND)

        assert (Wait(),) == actions(build.facts(pod, jittered, now=NOW + 10 * SECOND))

    def test_says_that_it_is_held(self) -> None:
        facts = build.facts(build.gated(), replace(build.waiting(), held=True))

        assert only_tell(facts).reason == "JobHeld"

    def test_says_who_holds_it_where_slurm_does(self) -> None:
        facts = build.facts(build.gated(), replace(build.waiting("JobHeldUser"), held=True))

        assert only_tell(facts).reason == "JobHeldUser"

    def test_never_touches_the_label_of_a_placed_pod(self) -> None:
        waited = told(build.bound(), only_tell(build.facts(build.gated(), build.waiting())))
        for job in (build.job(JobPhase.PAUSED), build.waiting("Priority"), build.job()):
            facts = replace(build.facts(waited, job), since=NOW - 10 * SECOND)
            assert only_tell(facts).job_id is None

    def test_a_pod_that_was_never_told_to_wait_is_told_nothing(self) -> None:
        facts = replace(build.facts(build.bound(), build.job()), since=NOW - timedelta(days=1))

        assert ((Wait(),), None) == (decide(facts).actions, decide(facts).retry_after)

    def test_a_pod_that_was_told_to_wait_is_told_once_that_it_is_allocated(self) -> None:
        waited = only_tell(build.facts(build.gated(), build.waiting()))
        facts = build.facts(told(build.bound(), waited), build.job())
        just_bound = decide(facts)
        assert ((Wait(),), 5 * SECOND) == (just_bound.actions, just_bound.retry_after)

        facts = replace(facts, since=NOW - 5 * SECOND)
        tell = only_tell(facts)

        assert tell.allocated
        assert (Wait(),) == actions(replace(facts, pod=told(facts.pod, tell)))


@pytest.mark.parametrize(
    ("job_id", "known", "expected"),
    [
        pytest.param(JobId(7), None, "submitted as Slurm job 7. it waits", id="first"),
        pytest.param(JobId(7), JobId(7), "it waits", id="again"),
        pytest.param(
            JobId(8), JobId(7), "submitted as Slurm job 8. it waits", id="submitted-again"
        ),
        pytest.param(None, None, "it waits", id="of-no-job"),
    ],
)
def test_the_first_event_of_a_job_says_that_it_was_submitted(
    job_id: JobId | None, known: JobId | None, expected: str
) -> None:
    assert expected == Tell(job_id=job_id, reason="Priority", message="it waits").note(known)
