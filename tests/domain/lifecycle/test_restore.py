"""What is done for a placed pod whose placeholder Slurm has forgotten, until another one stands in for it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.lifecycle import evidence
from bridge.domain.lifecycle.actions import (
    Action,
    Adopt,
    Cancel,
    Cause,
    Evict,
    OwnCause,
    Restore,
    Tell,
    Wait,
)
from bridge.domain.lifecycle.decision import Facts, SubmitRefusal
from bridge.domain.lifecycle.evidence import AccountingRecord
from bridge.domain.model import grant
from bridge.domain.model.grant import Grant
from bridge.domain.model.jobs import JobEnd, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import Evidence
from slurmruntime.values import names
from slurmruntime.values.ids import Sluid, WorkloadKey
from tests.make import lives as build
from tests.make.lives import actions, decide, only_tell

NOW = build.NOW
POLICY = build.POLICY
GRANTED = Grant(name="train", user="a", group="b", memory_mib_per_node=1, started_s=1)


def noted(pod: Pod, **notes: str) -> Pod:
    return replace(pod, annotations={**pod.annotations, **notes})


def whole(pod: Pod) -> Pod:
    """With all that the Assign writes."""
    text = grant.encode(build.job().identity, GRANTED)
    return noted(pod, **{names.SLUID_ANNOTATION: "sluid-4711", names.GRANT_ANNOTATION: text})


PLACED = pytest.mark.parametrize(
    "pod", [whole(build.placed()), whole(build.bound())], ids=["placed", "bound"]
)


def forgotten(pod: Pod, evidence: Evidence) -> Facts:
    facts = build.facts(pod)
    return replace(facts, view=replace(facts.view, evidence=evidence))


def stand_in(job: SlurmJob, *, number: int = 9, cause: str = "") -> SlurmJob:
    whose = replace(job.identity, restores="sluid-4711", cause=cause)
    return replace(build.job(job.phase, number=number, end=job.end), identity=whose)


def test_a_stand_in_that_could_never_run_says_nothing_about_the_pod() -> None:
    """Its node may have been registered with less than it had, while the pod goes on."""
    pod = whole(build.bound())
    failed = replace(stand_in(build.ended(JobEnd.FAILED)), nodes=(), reason="BadConstraints")
    facts = build.facts(pod, failed)

    tell = only_tell(replace(facts, view=replace(facts.view, evidence=Evidence.LOST)))

    assert tell.reason == "PlaceholderLost"
    assert "Slurm job 9 could never run" in tell.message


def ended_as(state: str, *, after: timedelta = timedelta(hours=1), by: str = "") -> Evidence:
    """What a job's end in slurmdbd says, once slurmctld has forgotten it."""
    record = AccountingRecord(
        states=frozenset({state}), started_at=NOW, ended_at=NOW + after, ended_by=by
    )
    return evidence.verdict(record, is_up_to_date=True)


@pytest.mark.safeguard(
    "doubt",
    "a Slurm user ends an own job, and Slurm forgets it before our programs are back",
    "nothing: slurmdbd knows its end, and who cancelled it, and the pod is evicted",
)
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(ended_as("CANCELLED", by="alice"), id="cancelled"),
        pytest.param(ended_as("CANCELLED", after=timedelta(0), by="alice"), id="at once"),
        pytest.param(ended_as("COMPLETED", after=timedelta(seconds=1)), id="completed"),
        pytest.param(ended_as("FAILED", after=timedelta(0)), id="failed"),
        pytest.param(ended_as("TIMEOUT"), id="time limit"),
        pytest.param(ended_as("DEADLINE"), id="deadline"),
        pytest.param(ended_as("PREEMPTED"), id="preempted by another one"),
    ],
)
def test_who_ends_an_own_job_leaves_no_doubt(end: Evidence) -> None:
    (evict,) = actions(forgotten(whole(build.bound()), end))

    assert isinstance(evict, Evict)


@pytest.mark.safeguard(
    "restore",
    "a Slurm user completes an own job in the second in which it began, so that it looks like one that Slurm lost",
    "the same job again, on the same nodes, and charged: no pod runs without one",
)
def test_who_completes_an_own_job_at_once_gets_it_again() -> None:
    runaway = ended_as("COMPLETED", after=timedelta(0))

    assert (Restore(lost="sluid-4711"),) == actions(forgotten(whole(build.bound()), runaway))


@PLACED
class TestForgotten:
    def test_is_restored_on_evidence_that_it_was_lost(self, pod: Pod) -> None:
        assert (Restore(lost="sluid-4711"),) == actions(forgotten(pod, Evidence.LOST))

    def test_is_kept_while_evidence_is_looked_for(self, pod: Pod) -> None:
        decision = decide(forgotten(pod, Evidence.PENDING))

        assert (Wait(),) == decision.actions
        assert decision.retry_after is not None

    def test_is_kept_without_evidence_and_an_operator_is_asked(self, pod: Pod) -> None:
        facts = forgotten(pod, Evidence.NONE)
        tell = only_tell(facts)

        assert "PlaceholderLost" == tell.reason
        assert f"{names.WHEN_LOST_ANNOTATION}=restore or =let-go" in tell.message
        assert decide(facts).retry_after is not None, "slurmdbd may come back"

    @pytest.mark.parametrize(
        ("word", "expected"), [("restore", Restore), ("let-go", Evict), ("perhaps", Tell)]
    )
    def test_an_operators_word_is_heard(self, pod: Pod, word: str, expected: type[Action]) -> None:
        said = noted(pod, **{names.WHEN_LOST_ANNOTATION: word})

        (action,) = actions(forgotten(said, Evidence.NONE))

        assert isinstance(action, expected)

    @pytest.mark.parametrize("word", ["restore", "let-go"])
    def test_no_word_is_needed_where_there_is_evidence(self, pod: Pod, word: str) -> None:
        said = noted(pod, **{names.WHEN_LOST_ANNOTATION: word})

        assert (Restore(lost="sluid-4711"),) == actions(forgotten(said, Evidence.LOST))
        (evict,) = actions(forgotten(said, Evidence.ENDED))
        assert isinstance(evict, Evict)
        assert Cause.ENDED is evict.cause

    def test_is_kept_where_nobody_knows_what_it_was(self, pod: Pod) -> None:
        unknown = noted(pod, **{names.GRANT_ANNOTATION: ""})

        assert "PlaceholderLost" == only_tell(forgotten(unknown, Evidence.LOST)).reason

    def test_is_kept_where_a_new_one_would_not_be_found(self, pod: Pod) -> None:
        """Restored under the gang's key and looked for under the pod's, it would be restored for ever."""
        whose = replace(build.job().identity, key=WorkloadKey("ring"))
        torn = noted(pod, **{names.GRANT_ANNOTATION: grant.encode(whose, GRANTED)})

        message = only_tell(forgotten(torn, Evidence.LOST)).message

        assert "names workload ring" in message

    @pytest.mark.safeguard(
        "restore",
        "once Slurm has lost its state, a Slurm user reaches an own limit by other jobs, so that the new one is refused",
        "running on without a job until one is taken or an administrator deletes the pod. It is reported "
        "(`PlaceholderLost`, `slurm_bridge_pods_without_job`); only administrators can make Slurm lose its state",
    )
    def test_is_kept_when_a_new_one_is_refused_and_told_why(self, pod: Pod) -> None:
        refusal = SubmitRefusal(attempts=1, at=NOW, text="Invalid qos")
        facts = replace(forgotten(pod, Evidence.LOST), refusal=refusal)

        assert "Invalid qos" in only_tell(facts).message
        late = replace(facts, now=NOW + timedelta(hours=1))
        assert (Restore(lost="sluid-4711"),) == actions(late)

    def test_nothing_is_restored_on_an_old_view(self, pod: Pod) -> None:
        facts = forgotten(pod, Evidence.LOST)

        assert (Wait(),) == actions(replace(facts, view=replace(facts.view, fresh=False)))


@PLACED
class TestStandIn:
    def test_is_adopted_as_soon_as_it_is_known(self, pod: Pod) -> None:
        job = stand_in(build.waiting())

        assert (Adopt(job_id=job.id, sluid=job.sluid),) == actions(build.facts(pod, job))

    def test_is_waited_for_while_only_our_own_submit_tells_of_it(self, pod: Pod) -> None:
        job = replace(stand_in(build.waiting()), sluid=None)

        assert "PlaceholderWaits" == only_tell(build.facts(pod, job)).reason

    def test_of_another_pods_is_none(self, pod: Pod) -> None:
        other = noted(pod, **{names.SLUID_ANNOTATION: "another"})
        job = stand_in(build.waiting())

        (cancel,) = actions(build.facts(other, job))

        assert Cancel(job_id=job.id, sluid=job.sluid, cause=OwnCause.SPARE) == cancel

    def test_is_a_spare_when_the_lost_one_comes_back(self, pod: Pod) -> None:
        """Slurm's administrator found a newer state."""
        job = stand_in(build.job())

        (cancel,) = actions(build.facts(pod, job, build.job()))

        assert Cancel(job_id=job.id, sluid=job.sluid, cause=OwnCause.SPARE) == cancel

    def test_that_runs_goes_before_one_that_waits(self, pod: Pod) -> None:
        runs, waits = stand_in(build.job(), number=10), stand_in(build.waiting(), number=9)

        (cancel,) = actions(build.facts(pod, waits, runs))

        assert isinstance(cancel, Cancel)
        assert waits.id == cancel.job_id

    def test_that_was_cancelled_takes_its_pod_along(self, pod: Pod) -> None:
        (evict,) = actions(build.facts(pod, stand_in(build.ended(JobEnd.CANCELLED))))

        assert isinstance(evict, Evict)
        assert Cause.CANCELLED is evict.cause

    def test_that_was_a_spare_says_nothing(self, pod: Pod) -> None:
        spare = stand_in(build.ended(), cause=OwnCause.SPARE)

        assert "PlaceholderLost" == only_tell(build.facts(pod, spare)).reason


@PLACED
@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        pytest.param("Resources", Evict, id="others have the room"),
        pytest.param("Priority", Evict, id="others come first"),
        pytest.param("ReqNodeNotAvail", Tell, id="an admin has drained the node"),
        pytest.param("QOSMaxJobsPerUserLimit", Tell, id="a limit"),
        pytest.param("JobHeldAdmin", Tell, id="held"),
        pytest.param("", Tell, id="Slurm has not said"),
    ],
)
def test_a_pod_goes_only_when_others_hold_its_node(
    pod: Pod, reason: str, expected: type[Action]
) -> None:
    facts = replace(build.facts(pod, build.waiting(reason)), since=NOW - POLICY.restore_deadline)

    (action,) = actions(facts)

    assert isinstance(action, expected)


def test_a_job_of_that_id_but_of_another_sluid_is_not_the_pods() -> None:
    pod = whole(build.bound())
    other = replace(build.job(), sluid=Sluid("another"))

    (cancel,) = actions(build.facts(pod, other))

    assert isinstance(cancel, Cancel)
