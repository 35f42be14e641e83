"""THE machine: decides for one pod, from Kubernetes' state and what Slurm surely knows.

Pure and level-triggered: no phase is stored, everything is derived, and the same facts give the
same decision. Rows are the pod's situation, columns the placeholder's; the cells are the functions
of `rules` (`docs/lifecycle.md` is generated from here). Two things hold in every cell, so no rule
repeats them: if Slurm cannot be read nothing is done, and every action or report waits for a view
that is younger than our last write.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from bridge.domain.lifecycle.actions import Adopt, OwnCause, Wait
from bridge.domain.lifecycle.decision import Actor, Deadlines, Decision, Facts
from bridge.domain.lifecycle.rules import answers, ending, lost, placed, waiting
from bridge.domain.lifecycle.rules.cases import Case, JobCase
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import ContainerState, Pod
from bridge.domain.observation.view import View

_UNREACHABLE_RETRY = timedelta(seconds=5)
"""A safety net only: the next successful reading of Slurm is an event for every pod."""

_LATE = datetime.max.replace(tzinfo=UTC)


class Row(enum.Enum):
    """The pod's situation."""

    GATED = "gated"
    GATED_DELETING = "gated, deleting"
    UNPLACED = "un-gated by hand, never placed"
    PLACED = "placed, not bound"
    BOUND = "bound"
    STOPPING = "ending, containers still there"
    TERMINAL = "terminal"
    DELETED = "deleting, containers gone"


class Column(enum.Enum):
    """What Slurm surely knows of its placeholder."""

    NONE = "surely none"
    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """One row of the table; in the column unknown every pod waits."""

    none: Callable[[Case], Decision]
    by_column: Mapping[Column, Callable[[JobCase], Decision]]
    """The columns in which there is a placeholder."""

    def rule(self, column: Column) -> Callable[[JobCase], Decision]:
        """Return the rule of a column; unknown has none."""
        return self.none if column is Column.NONE else self.by_column[column]


def _cells(
    *,
    none: Callable[[Case], Decision],
    waiting: Callable[[JobCase], Decision],
    running: Callable[[JobCase], Decision],
    paused: Callable[[JobCase], Decision],
    ended: Callable[[JobCase], Decision],
) -> Cells:
    """Key a row by column; a parameter for each, so that none can be left out."""
    by_column = {
        Column.WAITING: waiting,
        Column.RUNNING: running,
        Column.PAUSED: paused,
        Column.ENDED: ended,
    }
    return Cells(none=none, by_column=MappingProxyType(by_column))


TABLE: Mapping[Row, Cells] = MappingProxyType(
    {
        Row.GATED: _cells(
            none=waiting.submit,
            waiting=waiting.tell_why,
            running=waiting.assign,
            paused=placed.tell_paused,
            ended=waiting.answer_end,
        ),
        Row.GATED_DELETING: _cells(
            none=ending.release,
            waiting=ending.cancel,
            running=ending.cancel,
            paused=ending.cancel,
            ended=ending.release,
        ),
        Row.UNPLACED: _cells(
            none=waiting.tell_unplaced,
            waiting=ending.cancel,
            running=ending.cancel,
            paused=ending.cancel,
            ended=waiting.tell_unplaced,
        ),
        Row.PLACED: _cells(
            none=lost.keep_forgotten,
            waiting=lost.await_restore,
            running=placed.await_binding,
            paused=placed.keep_suspended,
            ended=placed.evict,
        ),
        Row.BOUND: _cells(
            none=lost.keep_forgotten,
            waiting=lost.await_restore,
            running=placed.confirm,
            paused=placed.keep_suspended,
            ended=placed.evict,
        ),
        Row.STOPPING: _cells(
            none=ending.let_stop,
            waiting=ending.let_stop,
            running=ending.hold,
            paused=ending.let_stop,
            ended=ending.let_stop,
        ),
        Row.TERMINAL: _cells(
            none=ending.release,
            waiting=ending.cancel,
            running=ending.complete,
            paused=ending.complete,
            ended=ending.release,
        ),
        Row.DELETED: _cells(
            none=ending.release,
            waiting=ending.cancel,
            running=ending.settle,
            paused=ending.settle,
            ended=ending.release,
        ),
    }
)


def actor(pod: Pod) -> Actor:
    """Return who owns this pod: the extender's leader while our gate is on, then the controllers'.

    A gated pod's deletion is the extender's too.
    """
    return Actor.EXTENDER if pod.is_gated else Actor.CONTROLLERS


def cell(pod: Pod, view: View, *, node_is_gone: bool = False) -> tuple[Row, Column]:
    """Return the cell of the table: for `dwell.TimeInState`, logs and metrics."""
    return row_of(pod, node_is_gone=node_is_gone), column_of(placeholder(pod, view), view)


def is_at_rest(pod: Pod) -> bool:
    """Check whether Kubernetes' state calls for nothing: it has its node, or is no longer held."""
    if pod.is_terminal or pod.is_deleting:
        return not pod.is_gated and not pod.has_our_finalizer
    return not pod.is_gated and (pod.is_bound or pod.assigned_node is not None)


def may_rest(pod: Pod, jobs: Sequence[SlurmJob]) -> bool:
    """Check whether Slurm's state calls for nothing either.

    The pod waits for its one placeholder to start, or got its node from it.
    """
    match jobs:
        case [SlurmJob(phase=JobPhase.WAITING) as job]:
            return pod.is_gated and not pod.is_deleting and not job.identity.cause
        case [SlurmJob(phase=JobPhase.RUNNING)]:
            return is_at_rest(pod)
        case _:
            return False


def decide(facts: Facts, policy: Deadlines) -> Decision:
    """Return what to do next for this pod."""
    decision = placed.hold_back(Case(facts=facts, policy=policy), _decide(facts, policy))
    harmless = decision.actions == (Wait(),)
    if facts.view.fresh or harmless:
        return decision
    return answers.wait(
        f"waiting to see the effect of our last write ({decision.reason})",
        retry=policy.poll_interval,
    )


def _decide(facts: Facts, policy: Deadlines) -> Decision:
    job = placeholder(facts.pod, facts.view)
    position = Position(
        case=Case(facts=facts, policy=policy),
        job=job,
        row=row_of(facts.pod, node_is_gone=facts.node_is_gone),
        column=column_of(job, facts.view),
    )
    for step in BEFORE:
        if (decision := step(position)) is not None:
            return decision
    if position.column is Column.UNKNOWN:
        return answers.wait(
            "Slurm shows no placeholder, which is not certain yet", retry=policy.poll_interval
        )
    cells = TABLE[position.row]
    if job is None:
        return cells.none(position.case)
    return cells.by_column[position.column](JobCase(facts=facts, policy=policy, job=job))


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A pod's place in the table, and what it was derived from."""

    case: Case
    job: SlurmJob | None
    """The placeholder that counts."""
    row: Row
    column: Column


def wait_for_slurm(position: Position) -> Decision | None:
    """Wait while Slurm cannot be read: silence proves nothing."""
    if position.case.facts.view.reachable:
        return None
    return answers.wait("Slurm cannot be read: nothing is concluded", retry=_UNREACHABLE_RETRY)


def cancel_spares(position: Position) -> Decision | None:
    """Cancel spare placeholders if there is more than one live one.

    A pod that was placed keeps the placeholder that placed it and adopts no other; a gated one
    keeps the one that has nodes, else the oldest.
    """
    view, job = position.case.facts.view, position.job
    if spares := tuple(other for other in view.live if other is not job):
        ids = ", ".join(str(spare.id) for spare in spares)
        cancels = (answers.cancel_of(spare, OwnCause.SPARE) for spare in spares)
        return answers.do(f"spare placeholders: {ids}", *cancels)
    return None


def adopt(position: Position) -> Decision | None:
    """Adopt, for a placed pod, a placeholder that stands in for the one Slurm lost.

    Its id and SLUID are written on the pod.
    """
    pod, job, row = position.case.pod, position.job, position.row
    if (
        job
        and row in (Row.PLACED, Row.BOUND)
        and job.phase is not JobPhase.ENDED
        and (job.sluid is not None or job.phase is JobPhase.RUNNING)
        and job.identity.restores
        and not job.is_named(pod.job_id, pod.sluid)
    ):
        text = f"Slurm job {job.id} stands in for the one that was lost"
        return answers.do(text, Adopt(job_id=job.id, sluid=job.sluid))
    return None


def finish_cancel(position: Position) -> Decision | None:
    """Cancel a waiting pod's placeholder that carries a recorded cause.

    We died between recording and cancelling.
    """
    job, row, column = position.job, position.row, position.column
    if job is None:
        return None
    if row is Row.GATED and job.identity.cause and column is not Column.ENDED:
        recorded = job.identity.cause
        cause = OwnCause(recorded) if recorded in set(OwnCause) else OwnCause.UNUSED
        text = f"cancel of Slurm job {job.id} was begun ({recorded})"
        return answers.do(text, answers.cancel_of(job, cause))
    return None


BEFORE: Sequence[Callable[[Position], Decision | None]] = (
    wait_for_slurm,
    cancel_spares,
    adopt,
    finish_cancel,
)
"""Steps before the table: the first that decides ends it. Their docstrings are their text in
`docs/lifecycle.md`."""


def row_of(pod: Pod, *, node_is_gone: bool = False) -> Row:
    """Derive the pod's situation."""
    if pod.is_terminal or (pod.is_deleting and not pod.is_gated):
        if not _has_stopped(pod, node_is_gone=node_is_gone):
            return Row.STOPPING
        return Row.TERMINAL if pod.is_terminal else Row.DELETED
    if pod.is_gated:
        return Row.GATED_DELETING if pod.is_deleting else Row.GATED
    if pod.is_bound:
        return Row.BOUND
    return Row.PLACED if pod.assigned_node else Row.UNPLACED


def column_of(job: SlurmJob | None, view: View) -> Column:
    """Derive what Slurm surely knows of the placeholder that counts."""
    if not view.reachable:
        return Column.UNKNOWN
    if job is None:
        return Column.NONE if view.surely_none else Column.UNKNOWN
    return Column(job.phase.value)


def _has_stopped(pod: Pod, *, node_is_gone: bool) -> bool:
    """Check that none of its containers runs, or may be starting unseen.

    A kubelet that took the pod reports how it ended. It reports a started container a moment later,
    so "waiting" is no proof; since Kubernetes 1.27 a deleted pod always becomes terminal first
    (<https://github.com/kubernetes/enhancements/issues/3329>).
    """
    if not pod.is_bound or node_is_gone:
        return True
    if pod.is_terminal:
        return pod.containers_are_gone
    states = {container.state for container in pod.containers}
    return pod.start_time is None or states == {ContainerState.TERMINATED}


def placeholder(pod: Pod, view: View) -> SlurmJob | None:
    """Pick the placeholder that counts: the live one, else the one whose end counts.

    A placed pod keeps the placeholder that placed it; if Slurm lost that, one that stands in for it
    counts, unless it could never run, and no other. While the pod is gated its label is only a cache: a placeholder that has
    nodes goes before one that waits, an older one before a younger one.
    """
    if not pod.is_gated and pod.job_id is not None:
        own = [job for job in view.jobs if job.is_named(pod.job_id, pod.sluid)]
        stand_ins = [
            job
            for job in view.jobs
            if job.identity.restores
            and job.identity.restores == pod.placed_by
            and job.identity.cause != OwnCause.SPARE
            and not job.is_impossible
        ]
        return min(
            [*own, *sorted(stand_ins, key=_seniority)],
            key=lambda job: job.phase is JobPhase.ENDED,
            default=None,
        )
    if view.live:
        return min(view.live, key=_seniority)
    ended = [job for job in view.ended if job.identity.cause != OwnCause.SPARE]
    return max(ended, key=_age, default=None)


def _seniority(job: SlurmJob) -> tuple[bool, datetime, int]:
    return (job.phase is JobPhase.WAITING, *_age(job))


def _age(job: SlurmJob) -> tuple[datetime, int]:
    return job.submitted_at or _LATE, job.id
