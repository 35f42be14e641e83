"""The world is worth its time only if it notices when a line of the machine is wrong.

Each mutant changes one line and must be found. One that survives means a dead branch or a world that is too kind: find
out which.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.make.mutants import Changed, hunted

pytestmark = pytest.mark.slow

HISTORIES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One line of `bridge/domain`, changed."""

    name: str
    file: str
    before: str
    after: str
    world: str = "pod"
    """Of `hunt`: where it has to be found."""
    trouble: tuple[str, ...] = ()
    """What brings it out, where only few histories would."""


MUTANTS = [
    Mutant(
        name="acts on a view older than its last write",
        file="lifecycle/table.py",
        before="if facts.view.fresh or harmless:",
        after="if True:",
    ),
    Mutant(
        name="leaves spare placeholders alone",
        file="lifecycle/table.py",
        before="if other is not job):",
        after="if False):",
    ),
    Mutant(
        name="lets a placed pod adopt another placeholder",
        file="lifecycle/table.py",
        before="if not pod.is_gated and pod.job_id is not None:",
        after="if False:",
        trouble=("a deposed leader submits", "slurmctld crashes"),
    ),
    Mutant(
        name="takes a spare's end for the pod's",
        file="lifecycle/table.py",
        before="ended = [job for job in view.ended if job.identity.cause != OwnCause.SPARE]",
        after="ended = list(view.ended)",
        trouble=(
            "a deposed leader submits",
            "somebody ends a placeholder",
            "Slurm has nothing free",
        ),
    ),
    Mutant(
        name="takes a container that was not reported yet for gone",
        file="lifecycle/table.py",
        before="return pod.start_time is None or states == {ContainerState.TERMINATED}",
        after="return pod.containers_are_gone",
    ),
    Mutant(
        name="never finishes a cancel that was begun",
        file="lifecycle/table.py",
        before="if row is Row.GATED and job.identity.cause and column is not Column.ENDED:",
        after="if False:",
        trouble=("a write goes wrong", "nodes fill and empty"),
    ),
    Mutant(
        name="gives the nodes back while containers stop",
        file="lifecycle/table.py",
        before="running=ending.hold,",
        after="running=ending.cancel,",
    ),
    Mutant(
        name="forgets to evict a bound pod",
        file="lifecycle/table.py",
        before="running=placed.confirm,\n            paused=placed.keep_suspended,\n            ended=placed.evict,",
        after="running=placed.confirm,\n            paused=placed.keep_suspended,\n            ended=placed.tell_paused,",
    ),
    Mutant(
        name="evicts what Slurm does not know",
        file="lifecycle/rules/lost.py",
        before='return tell(case.pod, "PlaceholderLost", text, retry=retry)',
        after="return do(text, Evict(cause=Cause.LOST, message=text))",
    ),
    Mutant(
        name="deletes a pod that waits",
        file="lifecycle/rules/waiting.py",
        before="return do(text, EndPod(cause=reasons.cause_of(end), message=text))",
        after="from bridge.domain.lifecycle.actions import Evict\n    return do(text, Evict(cause=reasons.cause_of(end), message=text))",
    ),
    Mutant(
        name="takes its own cancel for somebody's wish",
        file="lifecycle/rules/waiting.py",
        before="is_ours = case.job.identity.cause or case.job.is_impossible",
        after="is_ours = case.job.is_impossible",
    ),
    Mutant(
        name="ends a pod for which Slurm has no node yet",
        file="lifecycle/rules/waiting.py",
        before="is_ours = case.job.identity.cause or case.job.is_impossible",
        after="is_ours = case.job.identity.cause",
        trouble=("Slurm finds it impossible",),
    ),
    Mutant(
        name="hands out whatever Slurm granted",
        file="lifecycle/rules/waiting.py",
        before="    if case.facts.shortfall:",
        after="    if False:",
        trouble=("its user shrinks it", "Slurm has nothing free"),
    ),
    Mutant(
        name="does not record why it gives a node back",
        file="lifecycle/rules/waiting.py",
        before="return do(text, cancel_of(job, OwnCause.MISFIT), report)",
        after="return do(text, cancel_of(job), tell)",
    ),
    Mutant(
        name="does not verify whose job id it is",
        file="lifecycle/rules/answers.py",
        before="return Cancel(job_id=job.id, sluid=job.sluid, cause=cause)",
        after="return Cancel(job_id=job.id, sluid=None, cause=cause)",
        trouble=("slurmctld crashes", "somebody deletes the pod"),
    ),
    Mutant(
        name="submits before it is sure that there is none",
        file="lifecycle/rules/waiting.py",
        before='    if not case.facts.view.surely_none:\n        return wait("not sure yet that Slurm has',
        after='    if False:\n        return wait("not sure yet that Slurm has',
        trouble=("a write goes wrong", "somebody ends a placeholder"),
    ),
    Mutant(
        name="evicts an unbound pod without asking whether it was bound meanwhile",
        file="lifecycle/rules/placed.py",
        before="Evict(cause=Cause.NOT_BOUND, message=text, if_unchanged=True)",
        after="Evict(cause=Cause.NOT_BOUND, message=text)",
        trouble=("it takes long", "kube-scheduler cannot bind it"),
    ),
    Mutant(
        name="evicts whatever is not bound in time",
        file="lifecycle/rules/placed.py",
        before="    failing_since = case.facts.unbindable_since",
        after="    failing_since = case.facts.since",
        trouble=("it takes long",),
    ),
    Mutant(
        name="cancels in the same breath as it evicts",
        file="lifecycle/rules/placed.py",
        before="return do(text, Evict(cause=Cause.NOT_BOUND, message=text, if_unchanged=True))",
        after="from bridge.domain.lifecycle.rules.answers import cancel_of\n    return do(text, Evict(cause=Cause.NOT_BOUND, message=text), cancel_of(case.job))",
        trouble=("it takes long", "kube-scheduler cannot bind it"),
    ),
    Mutant(
        name="completes what was deleted while it ran",
        file="lifecycle/rules/ending.py",
        before="if not outcome.ended_by_itself(pod):",
        after="if False:",
    ),
    Mutant(
        name="cancels what ended by itself",
        file="lifecycle/rules/ending.py",
        before="if not outcome.ended_by_itself(pod):",
        after="if True:",
    ),
    Mutant(
        name="lets Slurm take the node at the time limit",
        file="lifecycle/rules/limits.py",
        before="if case.facts.now >= limit.extension_due_at:",
        after="if False:",
        trouble=("a time limit",),
    ),
    Mutant(
        name="evicts before the true limit",
        file="lifecycle/rules/limits.py",
        before="if case.facts.now < limit.runs_out_at:",
        after="if False:",
        trouble=("a time limit",),
    ),
    Mutant(
        name="takes what it added for the limit",
        file="lifecycle/rules/time_limits.py",
        before="    return min(shown_min, limit_min)",
        after="    return shown_min",
        trouble=("a time limit",),
    ),
    Mutant(
        name="times out with the limit it set",
        file="lifecycle/rules/limits.py",
        before="if limit is not None and limit.is_extended:",
        after="if False:",
        trouble=("a time limit",),
    ),
    Mutant(
        name="times out before the limit is over for Slurm",
        file="lifecycle/rules/limits.py",
        before='    if remaining > timedelta(0):\n        return wait("its time limit',
        after='    if False:\n        return wait("its time limit',
        trouble=("a time limit",),
    ),
    Mutant(
        name="cancels what it evicted at its time limit",
        file="lifecycle/rules/ending.py",
        before="return time_out(case)",
        after='return do("", cancel_of(case.job))',
        trouble=("a time limit",),
    ),
    Mutant(
        name="forgets why it evicted",
        file="lifecycle/outcome.py",
        before="return next((cause for cause in Cause if cause.value == condition.reason), None)",
        after="return None",
        trouble=("a time limit",),
    ),
    Mutant(
        name="evicts whatever is suspended",
        file="lifecycle/rules/placed.py",
        before="if case.policy.evict_suspended:",
        after="if True:",
        trouble=("somebody holds or suspends it",),
    ),
    Mutant(
        name="takes the kubelet's last DELETE for somebody's",
        file="lifecycle/outcome.py",
        before="before == ended and not was_stopped",
        after="before == ended",
        trouble=("a write goes wrong", "somebody deletes the pod"),
    ),
    Mutant(
        name="says the same thing over and over",
        file="lifecycle/rules/answers.py",
        before="        condition is not None\n",
        after="        False\n",
    ),
    Mutant(
        name="takes a reading that was under way for a fresh one",
        file="observation/view.py",
        before="fresh=self._latest.began_monotonic > marks.fresh_from and",
        after="fresh=",
        trouble=("nodes fill and empty",),
    ),
    Mutant(
        name="takes absence once for absence",
        file="observation/view.py",
        before="readings.append(self._before)",
        after="pass",
        trouble=("Slurm gives half an answer",),
    ),
    Mutant(
        name="forgets what it has just done to the pod",
        file="observation/view.py",
        before=" and not self.lags(pod, version),",
        after=",",
    ),
    Mutant(
        name="believes that an unanswered submit did not happen",
        file="observation/view.py",
        before="quiet_s = self._quiet_s if may_still_happen else 0.0",
        after="quiet_s = 0.0",
        trouble=("a write goes wrong",),
    ),
    Mutant(
        name="believes that its predecessor has finished",
        file="observation/view.py",
        before="return _Marks(at, at + self._quiet_s)",
        after="return _UNWRITTEN",
        trouble=("a write goes wrong",),
    ),
    Mutant(
        name="takes every job without a known pod for an orphan",
        file="lifecycle/orphans.py",
        before="if job.identity.pods and frozenset(job.identity.pods) <= gone",
        after="if job.identity.pods",
    ),
    Mutant(
        name="places a gang's members without a seat",
        file="gang/decide.py",
        before="if self._group is None or job is None or not seating.needs_seat(pod, job):",
        after="if True:",
        world="gang",
    ),
    Mutant(
        name="does not write down which seat a member has",
        file="gang/decide.py",
        before="if entry.seat is not None and job is not None:",
        after="if False:",
        world="gang",
    ),
    Mutant(
        name="submits for a gang before all its members are looked at",
        file="gang/decide.py",
        before="workload_members = tuple(_members(planned, facts, kube_nodes, policy, now))",
        after="workload_members = tuple(_members(planned, facts, kube_nodes, policy, now))[:1]",
        world="gang",
    ),
    Mutant(
        name="lets nobody but the named join a placeholder",
        file="gang/members.py",
        before="return lambda job: self.names.has(job, pod) or job.id in self._joined",
        after="return lambda job: self.names.has(job, pod)",
        world="gang",
    ),
    Mutant(
        name="takes every pod for named by its placeholder",
        file="gang/members.py",
        before="return pod.uid in known[1]",
        after="return True",
        world="gang",
    ),
    Mutant(
        name="cancels a placeholder when one that waits goes, while others run",
        file="gang/endings.py",
        before="member.row in seating.HOLDING and",
        after="False and",
        world="gang",
    ),
    Mutant(
        name="gives a slot away twice",
        file="gang/seating.py",
        before="        taken=taken,\n",
        after="        taken=(),\n",
        world="gang",
    ),
    Mutant(
        name="forgets that a slot has been given to another member",
        file="model/allocation.py",
        before="            free.remove(slot)\n            seats[uid] = slot\n    return",
        after="            lowest.clear()\n            seats[uid] = slot\n    return",
        world="gang",
    ),
    Mutant(
        name="binds though the placeholder runs no more",
        file="admission/binder.py",
        before="if job.phase is not JobPhase.RUNNING or known.slurm_node not in job.nodes:",
        after="if False:",
        world="binder",
        trouble=("somebody ends a placeholder", "somebody holds or suspends it"),
    ),
    Mutant(
        name="binds by whatever job has the id now",
        file="admission/binder.py",
        before="if job is None or not job.is_named(pod.job_id, pod.sluid):",
        after="if job is None:",
        world="binder",
        trouble=("a deposed leader submits", "slurmctld crashes"),
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_world_finds_a_machine_that(mutant: Mutant, tmp_path: Path) -> None:
    change = Changed(file=f"bridge/domain/{mutant.file}", before=mutant.before, after=mutant.after)
    hunter = ("-m", "tests.properties.hunt", mutant.world, str(HISTORIES), "0", *mutant.trouble)

    hunt = hunted(change, tmp_path, *hunter, package="bridge/domain")

    assert hunt.returncode == 1, hunt.stderr or "it survived"
    assert hunt.stdout.startswith("AssertionError: "), hunt.stdout + hunt.stderr
