"""What is done for pods that were placed, until they are gone, in detail."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bridge.domain.lifecycle.actions import (
    Action,
    Cancel,
    Cause,
    Complete,
    Evict,
    Outcome,
    OwnCause,
    Release,
    Tell,
    Wait,
)
from bridge.domain.lifecycle.decision import Facts
from bridge.domain.lifecycle.rules.ending import NODE_FAILS_WITHIN
from bridge.domain.model.jobs import JobEnd
from bridge.domain.model.pods import Condition, Container, Phase, Pod
from bridge.domain.observation.view import Evidence
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode
from tests.make import lives as build
from tests.make.lives import actions, decide, only_tell

NOW = build.NOW
POLICY = build.POLICY
SECOND = timedelta(seconds=1)


class TestPlaced:
    def test_is_given_up_when_it_is_not_bound_in_time(self) -> None:
        unschedulable = Condition(
            type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes"
        )
        pod = replace(build.placed(), conditions=(unschedulable,))
        since = NOW - POLICY.bind_deadline
        facts = replace(build.facts(pod, build.job()), since=since, unbindable_since=since)

        (evict,) = actions(facts)

        assert isinstance(evict, Evict)
        assert evict.cause is Cause.NOT_BOUND
        assert "0/3 nodes" in evict.message
        assert evict.if_unchanged, "it may have been bound a moment ago"

    def test_is_kept_and_told_while_kube_scheduler_does_not_say_that_it_cannot_be_bound(
        self,
    ) -> None:
        facts = replace(build.facts(build.placed(), build.job()), since=NOW - timedelta(hours=1))

        tell = only_tell(facts)

        assert "BindingStalled" == tell.reason
        assert (Wait(),) == actions(replace(facts, pod=build.told(facts.pod, tell)))

    def test_the_bind_deadline_begins_when_kube_scheduler_fails(self) -> None:
        facts = replace(build.facts(build.placed(), build.job()), since=NOW - timedelta(hours=1))
        failing = replace(facts, unbindable_since=NOW - SECOND)

        decision = decide(failing)

        assert ((Wait(),), POLICY.bind_deadline - SECOND) == (
            decision.actions,
            decision.retry_after,
        )

    def test_the_bind_deadline_begins_when_the_pod_was_placed_not_when_slurm_started_it(
        self,
    ) -> None:
        facts = build.facts(build.placed(), build.job())
        late = replace(facts, now=NOW + timedelta(hours=1), since=NOW + timedelta(hours=1))

        assert (Wait(),) == actions(late)

    def test_is_given_up_when_none_of_its_containers_starts_in_time(self) -> None:
        pulling = Container(name="main", reason="ImagePullBackOff", message="no such image")
        pod = replace(build.bound(), phase=Phase.PENDING, containers=(pulling,))
        facts = replace(build.facts(pod, build.job()), since=NOW - POLICY.start_deadline)

        (evict,) = actions(facts)

        assert isinstance(evict, Evict)
        assert evict.cause is Cause.NOT_STARTED
        assert not evict.cause.is_disruption, "a Job would try for ever"
        assert "main: ImagePullBackOff no such image" in evict.message
        assert evict.if_unchanged, "it may have started a moment ago"

    def test_is_looked_at_again_when_it_should_have_started(self) -> None:
        pod = replace(build.bound(), phase=Phase.PENDING, containers=())
        facts = replace(build.facts(pod, build.job()), since=NOW - 11 * SECOND)

        decision = decide(facts)

        assert (Wait(),) == decision.actions
        assert POLICY.start_deadline - 11 * SECOND == decision.retry_after

    def test_runs_for_as_long_as_it_likes_once_a_container_has_started(self) -> None:
        restarting = Container(name="main", reason="CrashLoopBackOff", started_before=True)
        pod = replace(build.bound(), phase=Phase.PENDING, containers=(restarting,))
        facts = replace(build.facts(pod, build.job()), since=NOW - 2 * POLICY.start_deadline)

        assert ((Wait(),), None) == (decide(facts).actions, decide(facts).retry_after)

    def test_never_starts_on_a_node_that_its_placeholder_does_not_hold(self) -> None:
        facts = replace(build.facts(build.placed(), build.job()), kube_node=KubeNode("k2"))

        (evict,) = actions(facts)

        assert isinstance(evict, Evict)
        assert evict.cause is Cause.LOST

    @pytest.mark.parametrize(
        ("started_at", "expected"),
        [
            pytest.param(NOW, Evict, id="goes when its placeholder started again elsewhere"),
            pytest.param(build.CREATED, Tell, id="stays when only a name may have changed"),
        ],
    )
    def test_a_running_pod_whose_placeholder_holds_another_node(
        self, started_at: datetime, expected: type[Action]
    ) -> None:
        facts = build.facts(build.bound(), build.job(started_at=started_at))

        first, *_ = actions(replace(facts, kube_node=KubeNode("k2"), since=NOW - 5 * SECOND))

        assert isinstance(first, expected)

    def test_a_slurm_node_that_kubernetes_does_not_know_is_no_reason_to_evict(self) -> None:
        known = build.facts(build.bound(), build.job())
        facts = replace(known, kube_node=None, since=NOW - 10 * SECOND)

        assert (Wait(),) == actions(facts)

    def test_another_job_that_got_the_id_of_its_lost_one_is_a_spare(self) -> None:
        """A deposed leader's submit for this very pod, after a crash of slurmctld has freed the id."""
        pod = build.bound()
        pod = replace(pod, annotations={**pod.annotations, names.SLUID_ANNOTATION: "lost"})
        late = build.job()

        cancel = Cancel(job_id=late.id, sluid=late.sluid, cause=OwnCause.SPARE)

        assert (cancel,) == actions(build.facts(pod, late))

    @pytest.mark.parametrize("pod", [build.placed(), build.bound()], ids=["placed", "bound"])
    def test_waits_for_its_placeholder_to_come_back(self, pod: Pod) -> None:
        decision = decide(build.facts(pod, build.waiting()))

        assert [Tell] == [type(action) for action in decision.actions]
        assert POLICY.restore_deadline == decision.retry_after

    @pytest.mark.parametrize("pod", [build.placed(), build.bound()], ids=["placed", "bound"])
    def test_goes_when_its_placeholder_does_not_come_back_in_time(self, pod: Pod) -> None:
        waiting = build.waiting("Resources")
        facts = replace(build.facts(pod, waiting), since=NOW - POLICY.restore_deadline)

        (evict,) = actions(facts)

        assert isinstance(evict, Evict)
        assert evict.cause is Cause.LOST

    @pytest.mark.parametrize(
        ("evidence", "expected"),
        [
            pytest.param(Evidence.NONE, Tell, id="kept without evidence"),
            pytest.param(Evidence.LOST, Tell, id="kept when Slurm lost it, whatever it was"),
            pytest.param(Evidence.ENDED, Evict, id="evicted when slurmdbd knows its end"),
        ],
    )
    @pytest.mark.parametrize("pod", [build.placed(), build.bound()], ids=["placed", "bound"])
    def test_a_pod_whose_placeholder_slurm_does_not_know_is(
        self, pod: Pod, evidence: Evidence, expected: type[Action]
    ) -> None:
        facts = build.facts(pod)

        (action,) = actions(replace(facts, view=replace(facts.view, evidence=evidence)))

        assert isinstance(action, expected)

    @pytest.mark.parametrize(
        ("end", "cause", "is_disruption"),
        [
            (JobEnd.CANCELLED, Cause.CANCELLED, True),
            (JobEnd.PREEMPTED, Cause.PREEMPTED, True),
            (JobEnd.NODE_FAIL, Cause.NODE_FAIL, True),
            (JobEnd.BOOT_FAIL, Cause.NODE_FAIL, True),
            (JobEnd.DEADLINE, Cause.DEADLINE, True),
            (JobEnd.TIMEOUT, Cause.TIME_LIMIT, False),
            (JobEnd.COMPLETED, Cause.ENDED, True),
            (JobEnd.FAILED, Cause.ENDED, True),
            (JobEnd.OUT_OF_MEMORY, Cause.ENDED, True),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("pod", [build.placed(), build.bound()], ids=["placed", "bound"])
    def test_is_evicted_for_the_cause_of_its_placeholders_end(
        self, pod: Pod, end: JobEnd, cause: Cause, is_disruption: bool
    ) -> None:
        (action,) = actions(build.facts(pod, build.ended(end)))

        assert isinstance(action, Evict)
        assert cause is action.cause
        assert is_disruption == action.cause.is_disruption

    def test_the_end_of_another_placeholder_says_nothing_about_it(self) -> None:
        facts = build.facts(build.bound(), build.ended(number=4712))

        assert only_tell(facts).reason == "PlaceholderLost"


class TestEnding:
    def test_a_pod_that_succeeded_completes_its_placeholder(self) -> None:
        facts = build.facts(build.succeeded(), build.job())
        job = build.job()

        expected = Complete(job_id=job.id, sluid=job.sluid, outcome=Outcome())
        assert (expected,) == actions(facts)

    def test_a_pod_that_succeeded_and_is_deleted_later_was_completed(self) -> None:
        pod = build.deleting(build.succeeded(), at=NOW + SECOND, grace_s=0)

        (action,) = actions(build.facts(pod, build.job()))

        assert isinstance(action, Complete)

    def test_a_pod_that_was_deleted_while_it_ran_was_cancelled(self) -> None:
        pod = build.deleting(build.failed(143), at=NOW - SECOND)

        (action,) = actions(build.facts(pod, build.job()))

        assert isinstance(action, Cancel)

    def test_a_pod_that_ended_without_running_is_no_failure_of_its_job(self) -> None:
        pod = replace(build.failed(), kube_node=None)

        (action,) = actions(build.facts(pod, build.job()))

        assert isinstance(action, Cancel)

    def test_nobody_knows_how_a_pod_ended_whose_node_is_gone(self) -> None:
        pod = replace(build.failed(), containers=(build.MAIN_RUNNING,))
        facts = replace(build.facts(pod, build.job()), node_is_gone=True)

        (action,) = actions(facts)

        assert isinstance(action, Cancel)

    def test_a_pod_that_crashed_with_its_machine_waits_for_slurm_to_end_its_job(self) -> None:
        """Counted from when it was told: its kubelet may have been away for minutes."""
        crashed = build.exited(255, reason="Unknown", at=NOW - 600 * SECOND)
        facts = build.facts(replace(build.failed(), containers=(crashed,)), build.job())

        decision = decide(replace(facts, since=NOW - 5 * SECOND))

        assert (Wait(),) == decision.actions
        assert decision.retry_after == NODE_FAILS_WITHIN - 5 * SECOND
        assert (Release(),) == actions(
            replace(facts, view=build.view(build.ended(JobEnd.NODE_FAIL)))
        )

    def test_it_failed_if_others_of_its_node_live_on(self) -> None:
        """DOWN would end their jobs too."""
        crashed = build.exited(255, reason="Unknown")
        facts = build.facts(replace(build.failed(), containers=(crashed,)), build.job())

        (action,) = actions(replace(facts, since=NOW - NODE_FAILS_WITHIN))

        assert isinstance(action, Complete)
        assert Outcome(exit_code=255) == action.outcome

    def test_the_outcome_is_told_in_words(self) -> None:
        assert "exit code 3" in decide(build.facts(build.failed(3), build.job())).reason

    def test_the_finalizer_stays_until_nothing_is_left_for_sure(self) -> None:
        view = build.view(build.ended(), surely_none=False)
        facts = Facts(pod=build.succeeded(), view=view, now=NOW)

        assert (Wait(),) == actions(facts)
        assert (Release(),) == actions(replace(facts, view=replace(view, surely_none=True)))
