"""Merge an array's tasks into one job: Slurm lists and forgets each task separately.

Tasks that have not started share one record, whose id is the array's; every other task has its own.
Slurm's list of states names a task by the id of its *record* and its number (`812_3`), so it takes a GET of
the record to learn its array. The outcome of a task of ours is remembered here after Slurm has forgotten
the task, until its array is over; a new process knows only the tasks that Slurm still has.

A task that vanishes while it waits was cancelled before it began, unless Slurm could not be read for
so long that it has begun, ended and been forgotten in between. Only slurmdbd knows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bridge.domain.model.batch import ArrayTally, BatchJob
from bridge.domain.model.jobs import JobEnd, JobPhase
from slurmruntime.values import numbers
from slurmruntime.values.ids import JobId

_ORDER: Final = (JobPhase.RUNNING, JobPhase.PAUSED, JobPhase.WAITING, JobPhase.ENDED)
"""An array has the first of these phases that one of its tasks has."""


def task_states(states: Iterable[str]) -> Mapping[int, frozenset[str]]:
    """Return the states of each task that a record stands for: `3:RUNNING` is task 3."""
    by_task: dict[int, set[str]] = {}
    for text in states:
        number, colon, state = text.partition(":")
        task = numbers.integer(number) if colon and number.isdecimal() else None
        if task is not None:
            by_task.setdefault(task, set()).add(state)
    return {number: frozenset(own) for number, own in by_task.items()}


class ArrayMemory:
    """Remembers tasks of our arrays that Slurm has forgotten."""

    def __init__(self) -> None:
        self._seen: dict[JobId, dict[int, JobPhase]] = {}
        """Every task that was ever listed, by array, with its last phase."""
        self._past: dict[JobId, dict[int, BatchJob]] = {}
        """Ended tasks that Slurm has forgotten."""

    def see(self, part: BatchJob) -> None:
        """Note the tasks of a record."""
        if part.array_id is not None:
            seen = self._seen.setdefault(part.array_id, {})
            seen.update(dict.fromkeys(task_states(part.states), part.phase))

    def forgotten(self, part: BatchJob) -> None:
        """Remember the outcome of the tasks of a record that Slurm has forgotten."""
        if part.array_id is not None:
            past = self._past.setdefault(part.array_id, {})
            past.update(dict.fromkeys(task_states(part.states), part))

    def keep_only(self, arrays: Iterable[JobId | None]) -> None:
        """Forget all arrays but these."""
        retained = set(arrays)
        for known in (self._seen, self._past):
            for array in known.keys() - retained:
                del known[array]

    def merged(self, parts: Sequence[BatchJob], *, is_whole: bool) -> BatchJob:
        """Return an array as one job.

        Args:
            parts: its records; at least one.
            is_whole: no listed task is still unread; then a task without a record has vanished.
        """
        array = parts[0].array_id or parts[0].id
        past = self._past.get(array, {})
        by_task = {number: part for part in parts for number in task_states(part.states)}
        past = {number: part for number, part in past.items() if number not in by_task}
        known = {**past, **by_task}
        vanished = {n: was for n, was in self._seen.get(array, {}).items() if n not in known}
        tally = _tally(known, vanished, is_whole=is_whole)
        shown = min(parts, key=lambda part: (_ORDER.index(part.phase), part.id))
        own = next((part for part in parts if part.id == array), None)
        merged = replace(
            shown,
            id=array,
            sluid=own.sluid if own else None,
            array_id=array,
            array=tally,
            states=frozenset(),
            restarts=max(part.restarts for part in parts),
            submitted_at=min(filter(None, (part.submitted_at for part in parts)), default=None),
            started_at=min(filter(None, (part.started_at for part in parts)), default=None),
        )
        if shown.phase is not JobPhase.ENDED:
            return merged
        everyone = (*past.values(), *parts)
        ends = [part.end for part in everyone if part.end]
        ends += [JobEnd.CANCELLED] if is_whole and JobPhase.WAITING in vanished.values() else []
        return replace(
            merged,
            remains=any(part.remains for part in parts) or not is_whole,
            end=next((end for end in ends if end is not JobEnd.COMPLETED), JobEnd.COMPLETED),
            exit_code=max(part.exit_code for part in everyone),
            signal=max(part.signal for part in everyone),
            step_exit_code=max(part.step_exit_code for part in everyone),
            ended_at=max(filter(None, (part.ended_at for part in everyone)), default=None),
        )


def _tally(
    by_task: Mapping[int, BatchJob], vanished: Mapping[int, JobPhase], *, is_whole: bool
) -> ArrayTally:
    waiting = running = succeeded = 0
    never_began = {number for number, was in vanished.items() if was is JobPhase.WAITING}
    failed = set(never_began) if is_whole else set[int]()
    for number, part in by_task.items():
        match part.phase:
            case JobPhase.WAITING:
                waiting += 1
            case JobPhase.RUNNING | JobPhase.PAUSED:
                running += 1
            case JobPhase.ENDED if part.end is JobEnd.COMPLETED:
                succeeded += 1
            case JobPhase.ENDED:
                failed.add(number)
    return ArrayTally(
        waiting=waiting + (0 if is_whole else len(vanished)),
        running=running,
        succeeded=succeeded,
        failed=tuple(sorted(failed)),
        unknown=len(vanished) - len(never_began) if is_whole else 0,
        is_sure=not (vanished and is_whole),
    )
