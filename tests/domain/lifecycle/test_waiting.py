"""What is done for pods that wait for Slurm, in detail."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.lifecycle.actions import (
    Assign,
    Cancel,
    Cause,
    EndPod,
    OwnCause,
    Submit,
    Tell,
    Wait,
)
from bridge.domain.lifecycle.decision import Decision, Facts, Fit, SubmitRefusal
from bridge.domain.model.jobs import JobEnd, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.binding import BindFailure
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, Sluid, SlurmNode
from tests.make import lives as build
from tests.make.lives import actions, decide, only_tell, told

NOW = build.NOW
POLICY = build.POLICY
SECOND = timedelta(seconds=1)


def _impossible() -> SlurmJob:
    """What Slurm took, and ended at its next pass without ever giving it a node."""
    job = build.ended(JobEnd.FAILED)
    return replace(
        job, nodes=(), reason="BadConstraints", signal=1, submitted_at=NOW, started_at=NOW
    )


class TestSubmitting:
    def test_waits_while_another_controllers_gate_is_on(self) -> None:
        pod = build.gated(foreign_gates=("kueue.x-k8s.io/admission",))

        decision = decide(build.facts(pod))

        assert (Wait(),) == decision.actions
        assert "kueue.x-k8s.io/admission" in decision.reason

    def test_keeps_a_placeholder_that_waits_while_another_gate_is_on_and_says_so(self) -> None:
        pod = build.gated(foreign_gates=("kueue.x-k8s.io/admission",))

        tell = only_tell(build.facts(pod, build.waiting()))

        assert "kueue.x-k8s.io/admission" in tell.message

    def test_needs_the_finalizer_that_keeps_the_pod_until_its_placeholder_is_gone(self) -> None:
        tell = only_tell(build.facts(build.gated(finalizer=False)))

        assert tell.reason == "FinalizerMissing"

    def test_waits_for_certainty_after_an_end(self) -> None:
        view = build.view(build.ended(JobEnd.NODE_FAIL), surely_none=False)
        facts = Facts(pod=build.gated(), view=view, now=NOW)

        assert (Wait(),) == actions(facts)

    @pytest.mark.parametrize(
        ("end", "cause"),
        [
            pytest.param(JobEnd.NODE_FAIL, "", id="its node failed"),
            pytest.param(JobEnd.BOOT_FAIL, "", id="its node did not boot"),
            pytest.param(JobEnd.PREEMPTED, "", id="it was preempted"),
            pytest.param(JobEnd.CANCELLED, OwnCause.UNUSED, id="we gave it back"),
            pytest.param(JobEnd.CANCELLED, "of a later version", id="a later version gave it back"),
        ],
    )
    def test_tries_again_when_the_end_was_not_meant_for_the_pod(
        self, end: JobEnd, cause: str
    ) -> None:
        facts = build.facts(build.gated(), build.ended(end, cause=cause))

        assert (Submit(),) == actions(facts)

    @pytest.mark.parametrize(
        ("end", "cause"),
        [
            (JobEnd.CANCELLED, Cause.CANCELLED),
            (JobEnd.DEADLINE, Cause.DEADLINE),
            (JobEnd.TIMEOUT, Cause.TIME_LIMIT),
            (JobEnd.COMPLETED, Cause.ENDED),
            (JobEnd.FAILED, Cause.ENDED),
        ],
        ids=str,
    )
    def test_ends_the_pod_when_somebody_ended_its_placeholder(
        self, end: JobEnd, cause: Cause
    ) -> None:
        (action,) = actions(build.facts(build.gated(), build.ended(end)))

        assert isinstance(action, EndPod)
        assert cause is action.cause
        assert "4711" in action.message

    def test_waits_until_it_is_read_how_the_placeholder_ended(self) -> None:
        unread = replace(build.ended(), end=None)

        assert (Wait(),) == actions(build.facts(build.gated(), unread))
        assert (Wait(),) == actions(build.facts(build.bound(), unread))

    def test_the_end_of_a_spare_says_nothing_about_the_pod(self) -> None:
        spare = build.ended(JobEnd.CANCELLED, number=4712, cause=OwnCause.SPARE)

        assert (Submit(),) == actions(build.facts(build.gated(), spare))

    def test_the_last_end_counts(self) -> None:
        first = build.ended(JobEnd.CANCELLED, cause=OwnCause.MISFIT)
        last = replace(
            build.ended(JobEnd.CANCELLED, number=4712), submitted_at=build.CREATED + SECOND
        )

        (action,) = actions(build.facts(build.gated(), last, first))

        assert isinstance(action, EndPod)

    def test_avoids_the_nodes_that_kubernetes_could_not_take_a_while_ago(self) -> None:
        recent = replace(build.ended(cause=OwnCause.MISFIT), nodes=(SlurmNode("s2"),))
        other = replace(build.ended(number=4712, cause=OwnCause.MISFIT), nodes=(SlurmNode("s1"),))
        failed = replace(build.ended(JobEnd.NODE_FAIL, number=4713), nodes=(SlurmNode("s3"),))
        old = replace(
            build.ended(number=4714, cause=OwnCause.MISFIT),
            nodes=(SlurmNode("s4"),),
            started_at=NOW - POLICY.avoid_node,
        )

        facts = build.facts(build.gated(), recent, other, failed, old)

        assert (Submit(avoid=(SlurmNode("s1"), SlurmNode("s2"))),) == actions(facts)

    def test_submits_no_more_after_three_were_shrunk_and_says_so(self) -> None:
        ends = [build.ended(number=number, cause=OwnCause.SHRUNK) for number in (4711, 4712, 4713)]

        assert (Submit(),) == actions(build.facts(build.gated(), *ends[:2]))
        facts = build.facts(build.gated(), *ends)
        tell = only_tell(facts)

        assert tell.reason == "GrantHeld"
        pod = told(facts.pod, tell)
        assert (Wait(),) == actions(build.facts(pod)), "Slurm has forgotten them meanwhile"

    @pytest.mark.safeguard(
        "back-off", "a tenant makes own jobs start in vain", "nothing: only its own pods wait"
    )
    def test_submits_no_more_for_an_hour_after_six_misfits_and_says_so(self) -> None:
        ends = [build.ended(number=number, cause=OwnCause.MISFIT) for number in range(4711, 4717)]
        long_ago = NOW - timedelta(minutes=10)
        ends = [replace(end, started_at=long_ago) for end in ends]

        assert (Submit(),) == actions(build.facts(build.gated(), *ends[:5]))
        facts = build.facts(build.gated(), *ends)
        tell = only_tell(facts)

        assert tell.reason == "NodeMisfitHeld"
        pod = told(facts.pod, tell)
        forgotten = build.facts(pod)
        assert (Wait(),) == actions(replace(forgotten, since=NOW - timedelta(minutes=59)))
        assert (Submit(),) == actions(replace(forgotten, since=NOW - timedelta(minutes=61)))

    def test_submits_no_more_for_a_while_after_one_that_could_never_run_and_says_why(self) -> None:
        facts = build.facts(build.gated(), _impossible())

        tell = only_tell(facts)

        assert tell.reason == "NeverRunnable"
        assert tell.message.startswith(
            "Slurm job 4711 could never run, and Slurm ended it: no node can ever satisfy what it "
            "asks for (BadConstraints); "
        )
        assert (Submit(),) == actions(replace(facts, now=NOW + timedelta(minutes=11)))
        forgotten = build.facts(told(facts.pod, tell))
        assert (Wait(),) == actions(replace(forgotten, since=NOW - timedelta(minutes=9)))
        assert (Submit(),) == actions(replace(forgotten, since=NOW - timedelta(minutes=11)))

    def test_tries_again_what_could_never_run_when_nodes_have_changed(self) -> None:
        facts = build.facts(build.gated(), _impossible())
        changed = replace(facts, nodes_changed_at=NOW + SECOND)

        soon = decide(replace(changed, now=NOW + 2 * SECOND))
        assert soon.retry_after == timedelta(seconds=9)
        assert (Submit(),) == actions(replace(changed, now=NOW + 11 * SECOND))
        earlier = replace(facts, nodes_changed_at=NOW - SECOND, now=NOW + 11 * SECOND)
        only_tell(earlier)

    def test_what_ended_without_a_node_by_our_own_cancel_is_not_impossible(self) -> None:
        ours = replace(_impossible(), identity=build.ended(cause=OwnCause.MISFIT).identity)

        later = build.facts(build.gated(), ours, now=NOW + timedelta(minutes=5))
        assert (Submit(),) == actions(later)

    def test_a_refusal_for_want_of_nodes_is_tried_again_when_nodes_have_changed(self) -> None:
        refusal = SubmitRefusal(attempts=20, at=NOW, text="no node", is_of_nodes=True)
        facts = replace(build.facts(build.gated()), refusal=refusal, now=NOW + 20 * SECOND)

        only_tell(facts)
        assert (Submit(),) == actions(replace(facts, nodes_changed_at=NOW + 19 * SECOND))
        only_tell(replace(facts, nodes_changed_at=NOW - SECOND))
        other = replace(refusal, is_of_nodes=False)
        only_tell(replace(facts, refusal=other, nodes_changed_at=NOW + 19 * SECOND))

    def test_avoids_nodes_to_which_its_controllers_pods_could_not_be_bound(self) -> None:
        lately = tuple(
            BindFailure(SlurmNode(f"s{n}"), NOW - timedelta(minutes=20)) for n in (1, 2, 3)
        )
        facts = build.facts(build.gated())

        twice = replace(facts, bind_failures=lately[:2])
        assert (Submit(avoid=(SlurmNode("s1"), SlurmNode("s2"))),) == actions(twice)
        tell = only_tell(replace(facts, bind_failures=lately))

        assert tell.reason == "BindHeld"
        assert "on s1, s2, s3" in tell.message

    def test_backs_off_longer_with_every_placeholder_that_ended(self) -> None:
        ends = tuple(
            replace(build.ended(JobEnd.NODE_FAIL, number=number), started_at=NOW)
            for number in (4711, 4712, 4713)
        )

        decision = decide(build.facts(build.gated(), *ends))

        assert (Wait(),) == decision.actions
        assert decision.retry_after == 4 * SECOND

    def test_backs_off_from_a_refusal_and_tells_slurms_words(self) -> None:
        refusal = SubmitRefusal(attempts=2, at=NOW - SECOND, text="Invalid account")
        facts = replace(build.facts(build.gated()), refusal=refusal)

        decision = decide(facts)

        (tell,) = decision.actions
        assert isinstance(tell, Tell)
        assert tell.reason == "SubmitRefused"
        assert "Invalid account" in tell.message
        assert decision.retry_after == SECOND

    def test_tries_again_when_the_back_off_from_a_refusal_is_over(self) -> None:
        refusal = SubmitRefusal(attempts=2, at=NOW - 2 * SECOND, text="Invalid account")

        assert (Submit(),) == actions(replace(build.facts(build.gated()), refusal=refusal))


class TestAssigning:
    def facts(self, fit: Fit | None, **changes: object) -> Facts:
        facts = replace(build.facts(build.gated(), build.job()), fit=fit)
        return replace(facts, **changes)  # type: ignore[arg-type]  # fields of Facts

    def test_assigns_the_node_that_slurm_chose(self) -> None:
        expected = Assign(
            job_id=build.JOB_ID,
            sluid=Sluid("sluid-4711"),
            slurm_node=build.SLURM_NODE,
            kube_node=build.KUBE_NODE,
            grant="",
        )

        assert (expected,) == actions(self.facts(Fit.FITS))

    def test_never_hands_out_more_than_slurm_granted(self) -> None:
        facts = self.facts(Fit.FITS, shortfall="it has 1 of the 8 CPUs that the pod requests")

        cancel, tell = actions(facts)

        assert isinstance(cancel, Cancel)
        assert cancel.cause is OwnCause.SHRUNK
        assert isinstance(tell, Tell)
        assert tell.reason == "GrantTooSmall"
        assert "1 of the 8 CPUs" in tell.message

    def test_waits_for_terminating_pods_to_go(self) -> None:
        decision = decide(self.facts(Fit.TERMINATING))

        assert (Wait(),) == decision.actions
        assert decision.retry_after is not None

    def test_says_that_terminating_pods_are_in_the_way_when_it_takes_longer(self) -> None:
        facts = self.facts(Fit.TERMINATING, since=NOW - POLICY.tell_after)

        assert only_tell(facts).reason == "NodeTerminatingPods"

    def test_says_how_long_they_kept_its_job_waiting(self) -> None:
        began = NOW - timedelta(seconds=12)
        facts = self.facts(Fit.TERMINATING, since=began)
        job = replace(facts.view.jobs[0], started_at=began)
        facts = replace(facts, view=build.view(job))
        tell = only_tell(facts)
        assert f"since {began:%H:%M:%S} UTC" in tell.message

        (assign,) = actions(replace(facts, pod=build.told(facts.pod, tell), fit=Fit.FITS))

        assert isinstance(assign, Assign)
        assert timedelta(seconds=12) == assign.waited

    def test_gives_a_node_back_that_does_not_fit_and_records_why(self) -> None:
        facts = self.facts(Fit.MISFIT, fit_text="insufficient cpu (4 asked, 2 free)")

        cancel, tell = actions(facts)

        assert isinstance(cancel, Cancel)
        assert cancel.cause is OwnCause.MISFIT
        assert isinstance(tell, Tell)
        assert "insufficient cpu (4 asked, 2 free)" in tell.message

    def test_a_node_that_kubernetes_does_not_know_does_not_fit(self) -> None:
        cancel, _ = actions(self.facts(None, kube_node=None))

        assert isinstance(cancel, Cancel)
        assert cancel.cause is OwnCause.MISFIT

    def test_waits_until_the_fit_is_examined(self) -> None:
        assert (Wait(),) == actions(self.facts(None))

    def test_waits_until_the_node_is_known(self) -> None:
        bare = replace(build.job(), nodes=())

        assert (Wait(),) == actions(replace(build.facts(build.gated(), bare), fit=Fit.FITS))

    @pytest.mark.parametrize(
        ("recorded", "cause"),
        [("misfit", OwnCause.MISFIT), ("a later version's", OwnCause.UNUSED)],
        ids=["ours", "of a later version"],
    )
    def test_finishes_a_cancel_that_was_begun(self, recorded: str, cause: OwnCause) -> None:
        begun = build.job(cause=recorded)

        facts = replace(build.facts(build.gated(), begun), fit=Fit.FITS)

        assert (Cancel(job_id=begun.id, sluid=begun.sluid, cause=cause),) == actions(facts)

    def test_holds_the_allocation_a_while_for_another_controllers_gate(self) -> None:
        pod = build.gated(foreign_gates=("other",))
        facts = self.facts(Fit.FITS, pod=pod, since=NOW - POLICY.bind_deadline + SECOND)

        decision = decide(facts)

        assert only_tell(facts).reason == "ForeignGate"
        assert decision.retry_after == SECOND

    def test_gives_the_allocation_back_when_another_gate_stays_on(self) -> None:
        pod = build.gated(foreign_gates=("other",))
        facts = self.facts(Fit.FITS, pod=pod, since=NOW - POLICY.bind_deadline)

        (cancel,) = actions(facts)

        assert isinstance(cancel, Cancel)
        assert cancel.cause is OwnCause.UNUSED


class TestWhichPlaceholderCounts:
    def spares(self, pod: Pod, *jobs: SlurmJob) -> set[JobId]:
        return {
            cancel.job_id
            for cancel in actions(build.facts(pod, *jobs))
            if isinstance(cancel, Cancel)
        }

    def test_a_gated_pod_keeps_the_running_one(self) -> None:
        assert {4711} == self.spares(
            build.gated(), build.waiting(number=4711), build.job(number=4712)
        )

    def test_a_gated_pod_keeps_the_running_one_whatever_its_label_says(self) -> None:
        labelled = replace(build.gated(), labels={names.JOB_ID_LABEL: "4711"})

        assert {4711} == self.spares(labelled, build.waiting(number=4711), build.job(number=4712))

    def test_a_gated_pod_keeps_the_oldest_of_those_that_wait(self) -> None:
        young = replace(build.waiting(number=7), submitted_at=NOW)  # ids were re-used

        assert {7} == self.spares(build.gated(), young, build.waiting(number=4711))

    def test_a_placed_pod_keeps_the_one_it_was_placed_by(self) -> None:
        assert {4712} == self.spares(
            build.placed(), build.job(number=4712), build.waiting(number=4711)
        )

    def test_a_placed_pod_adopts_no_other(self) -> None:
        assert {4712} == self.spares(build.bound(), build.job(number=4712))


class TestRetries:
    def test_what_waits_for_a_younger_view_looks_again_when_slurm_has_been_read(self) -> None:
        facts = build.facts(build.gated())
        stale = replace(facts, view=replace(facts.view, fresh=False))

        assert POLICY.poll_interval == decide(stale).retry_after

    def test_what_waits_for_slurm_needs_no_timer(self) -> None:
        facts = build.facts(build.gated(), build.waiting())
        quiet = replace(facts, pod=told(facts.pod, only_tell(facts)))

        assert Decision(actions=(Wait(),), reason=only_tell(facts).message) == decide(quiet)
