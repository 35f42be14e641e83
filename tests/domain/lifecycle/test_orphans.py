"""Only jobs of ours whose every pod is gone, seen twice, are orphans."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.lifecycle import orphans
from bridge.domain.lifecycle.actions import Cancel
from bridge.domain.model.jobs import JobPhase, SlurmJob
from slurmruntime.values.ids import ClusterId, PodUid, Sluid
from tests.make import lives as build

OURS = ClusterId("cluster-1")
GRACE = timedelta(seconds=10)
GONE = frozenset({PodUid("pod-1"), PodUid("pod-2")})


def of_pods(job: SlurmJob, *pods: str) -> SlurmJob:
    return replace(job, identity=replace(job.identity, pods=tuple(map(PodUid, pods))))


def judge(
    *jobs: SlurmJob,
    gone: frozenset[PodUid] = GONE,
    seen: frozenset[PodUid] = GONE,
    before: orphans.Judgement | None = None,
    after: timedelta = timedelta(0),
) -> orphans.Judgement:
    suspects = before.suspects if before else {}
    return orphans.judge(
        jobs, gone=gone, seen=seen, suspects=suspects, now=build.NOW + after, grace=GRACE
    )


class TestCandidates:
    @pytest.mark.parametrize(
        "phase", [JobPhase.WAITING, JobPhase.RUNNING, JobPhase.PAUSED], ids=str
    )
    def test_live_jobs_without_a_known_pod_are_worth_a_look(self, phase: JobPhase) -> None:
        job = build.job(phase)

        assert (job,) == orphans.candidates([job], cluster=OURS, known=set())

    @pytest.mark.parametrize(
        ("job", "known"),
        [
            pytest.param(build.job(), {PodUid("pod-1")}, id="its pod is known"),
            pytest.param(
                of_pods(build.job(), "pod-1", "pod-2"), {PodUid("pod-2")}, id="one pod is known"
            ),
            pytest.param(build.ended(), set[PodUid](), id="it has ended"),
            pytest.param(
                replace(
                    build.job(),
                    identity=replace(build.job().identity, cluster=ClusterId("cluster-2")),
                ),
                set[PodUid](),
                id="it is another cluster's",
            ),
        ],
    )
    def test_others_are_left_alone(self, job: SlurmJob, known: set[PodUid]) -> None:
        assert orphans.candidates([job], cluster=OURS, known=known) == ()


class TestJudging:
    def test_nothing_is_an_orphan_at_first_sight(self) -> None:
        assert judge(build.job()).orphans == ()

    def test_a_job_still_without_pods_after_the_grace_is_an_orphan(self) -> None:
        job = build.job()

        second = judge(job, before=judge(job), after=GRACE)

        assert (Cancel(job_id=job.id, sluid=job.sluid),) == second.orphans

    def test_within_the_grace_it_is_only_a_suspect(self) -> None:
        job = build.job()

        assert judge(job, before=judge(job), after=GRACE / 2).orphans == ()

    def test_the_grace_runs_from_the_first_sight(self) -> None:
        job = build.job()
        second = judge(job, before=judge(job), after=GRACE / 2)

        assert judge(job, before=second, after=GRACE).orphans

    def test_a_pod_that_turned_up_in_between_clears_the_job(self) -> None:
        job = build.job()
        second = judge(job, gone=frozenset(), before=judge(job), after=GRACE / 2)

        assert judge(job, before=second, after=GRACE).orphans == ()

    def test_one_pod_that_may_live_keeps_the_job(self) -> None:
        job = of_pods(build.job(), "pod-1", "pod-3")

        assert judge(job, before=judge(job), after=GRACE).orphans == ()

    def test_a_suspicion_does_not_pass_to_another_job_with_the_same_id(self) -> None:
        other = replace(build.job(), sluid=Sluid("another"))

        assert judge(other, before=judge(build.job()), after=GRACE).orphans == ()

    def test_a_job_that_names_no_pods_is_no_orphan(self) -> None:
        job = of_pods(build.job())

        assert judge(job, before=judge(job), after=GRACE).orphans == ()


class TestHolding:
    STRANGE = frozenset[PodUid]()

    def many(self, count: int) -> list[SlurmJob]:
        return [of_pods(build.job(number=number), "pod-1") for number in range(count)]

    def judged(self, count: int, *, seen: frozenset[PodUid] = GONE) -> orphans.Judgement:
        jobs, grace = self.many(count), GRACE * orphans.STRANGE_GRACES
        return judge(*jobs, seen=seen, before=judge(*jobs, seen=seen), after=grace)

    def test_one_whose_pod_was_never_seen_is_suspected_for_longer(self) -> None:
        job = build.job()
        first = judge(job, seen=self.STRANGE)

        assert judge(job, seen=self.STRANGE, before=first, after=GRACE).strange == ()
        late = judge(job, seen=self.STRANGE, before=first, after=GRACE * orphans.STRANGE_GRACES)
        assert (Cancel(job_id=job.id, sluid=job.sluid),) == late.strange
        assert late.orphans == ()

    @pytest.mark.parametrize(
        ("count", "live", "is_held"), [(20, 20, False), (21, 21, True), (21, 210, False)]
    )
    def test_many_at_once_are_held(self, count: int, live: int, *, is_held: bool) -> None:
        why = orphans.why_held(self.judged(count), live=live, strange_lately=0)

        assert is_held is bool(why)

    @pytest.mark.parametrize(
        ("count", "lately", "is_held"), [(3, 0, False), (4, 0, True), (3, 7, False), (3, 8, True)]
    )
    def test_a_few_whose_pods_were_never_seen_are_many(
        self, count: int, lately: int, *, is_held: bool
    ) -> None:
        judged = self.judged(count, seen=self.STRANGE)

        assert is_held is bool(orphans.why_held(judged, live=1000, strange_lately=lately))

    def test_those_of_a_copys_original_are_held_before_the_first_is_cancelled(self) -> None:
        first = judge(*self.many(4), seen=self.STRANGE)

        why = orphans.why_held(first, live=4, strange_lately=0)

        assert "the pods of 4 placeholders were never seen: another cluster may have" in why
