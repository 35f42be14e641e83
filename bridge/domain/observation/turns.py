"""Round robin with a rate limit, where reading every job would cost too much."""

from collections.abc import Collection, Iterable, Mapping
from itertools import islice, takewhile

from bridge.domain.model.jobs import OwnJob
from slurmruntime.values.ids import JobId

_AT_LATEST_S = 300.0
_MOST_PER_S = 20.0
"""The rate at which jobs are read again, of each kind. One GET costs slurmrestd 1 to 2 ms: very many are read so that each
has its turn within five minutes, as long as that takes no more than a few hundredths of a core: 6000 jobs."""

_REASONS_AGAIN_S = 5.0
_FEW = 80
_LEAST_REASONS_PER_S = 2.0
"""Few waiting jobs are read every five seconds, many at a steady rate that takes a few thousandths of a core."""

_LONGEST_STEP_S = 5.0
"""Credit accrues for at most this long: readings of a calm queue are seconds apart, and a longer
break is no reason to catch up."""

_LIMITS_AGAIN_S = 20.0
_LEAST_LIMITS_PER_S = 1.0
"""How soon, and at what least rate, running jobs are checked for a time limit or a number of nodes
that was changed. A limit is only extended in time if it is seen a minute before it is reached
(`bridge.domain.lifecycle.rules.time_limits`); if it is seen later, Slurm ends the job by itself. Nodes that
a user has taken from an own gang may be others' by then."""


class ReasonRoundRobin:
    """Picks the waiting jobs whose reason to read next: never-read ones first, then the stalest."""

    def __init__(self, *, first_per_s: float, after_s: float) -> None:
        """Set the limits.

        Args:
            first_per_s: how many jobs per second may be read for the first time.
            after_s: jobs that have waited for less than this are not read.
        """
        self._first_per_s = first_per_s
        self._after_s = after_s
        self._unasked: dict[JobId, float] = {}
        """Jobs that were never read → since when they are known; the oldest first."""
        self._asked_at: dict[JobId, float] = {}
        """The others → when they were read last; the stalest first."""
        self._last = 0.0
        self._credit = 0.0

    def due(self, waiting: Iterable[OwnJob], now: float) -> tuple[JobId, ...]:
        """Return the jobs to read now (monotonic seconds), out of all waiting ones."""
        ids = {job.id for job in waiting}
        for known in (self._unasked, self._asked_at):
            for gone in known.keys() - ids:
                del known[gone]
        newcomers = sorted(ids - self._unasked.keys() - self._asked_at.keys())
        self._unasked.update(dict.fromkeys(newcomers, now))
        elapsed_s, self._last = min(_LONGEST_STEP_S, now - self._last), now
        new = _at_most(
            max(1, round(elapsed_s * self._first_per_s)), self._unasked, now - self._after_s
        )
        self._credit = min(self._credit + elapsed_s * _reasons_per_s(len(ids)), _MOST_PER_S)
        most = round(elapsed_s * _MOST_PER_S) - len(new)
        old = _at_most(max(0, min(most, int(self._credit))), self._asked_at, now - _REASONS_AGAIN_S)
        self._credit -= len(old)
        for job in (*new, *old):
            self._unasked.pop(job, None)
            self._asked_at.pop(job, None)
            self._asked_at[job] = now
        return (*new, *old)


def _at_most(count: int, jobs: Mapping[JobId, float], until: float) -> list[JobId]:
    due = takewhile(lambda entry: entry[1] <= until, jobs.items())
    return [job for job, _ in islice(due, count)]


def _reasons_per_s(waiting: int) -> float:
    if waiting <= _FEW:
        return max(waiting / _REASONS_AGAIN_S, _LEAST_REASONS_PER_S)
    return _per_s(waiting, least=_LEAST_REASONS_PER_S)


def _per_s(jobs: int, *, least: float) -> float:
    return min(max(jobs / _AT_LATEST_S, least), _MOST_PER_S)


class LimitRoundRobin:
    """Picks the running jobs whose limit to read next: the stalest first, none twice in 20 s."""

    def __init__(self) -> None:
        self._read_at: dict[JobId, float] = {}
        self._last = 0.0
        self._credit = 0.0

    def due(self, ids: Collection[JobId], now: float) -> tuple[JobId, ...]:
        """Return the jobs to read now (monotonic seconds); a new one counts as just read."""
        self._read_at = {job: self._read_at.get(job, now) for job in ids}
        rate = _per_s(len(ids), least=_LEAST_LIMITS_PER_S)
        elapsed_s, self._last = min(_LONGEST_STEP_S, now - self._last), now
        self._credit = min(self._credit + elapsed_s * rate, _LONGEST_STEP_S * rate)
        turn = sorted(
            (job for job, at in self._read_at.items() if now - at >= _LIMITS_AGAIN_S),
            key=self._read_at.__getitem__,
        )[: int(self._credit)]
        self._credit -= len(turn)
        self._read_at.update(dict.fromkeys(turn, now))
        return tuple(turn)
