"""Jobs that could not be read, and the choice of unknown jobs to read next."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

_FEW = 50
"""Unknown jobs that can be fetched in a fraction of a second: their order does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How quickly jobs are fetched."""

    concurrency: int = 4
    """Jobs fetched concurrently; keep it below the client's connections."""
    burst: int = 500
    """Unknown jobs fetched per reading, in about a second: a user may submit thousands at once, and the jobs
    of interest must not wait."""
    patience_s: float = 0.0
    """How long a new job may be pending before it is fetched. Most run by then and are fetched once instead of
    twice."""


USUAL_PACE = Pace()


@dataclass(frozen=True, slots=True)
class UnreadJob:
    """A job that is set aside."""

    why: str
    owner: str | None
    """Whatever the caller knows it by, such as its workload; None if that could not be read either."""
    states: frozenset[str] | None
    """The states it was fetched with; it is fetched again when they change. None: at the next
    reading."""
    is_of_array: bool = False
    """A list names its tasks: see `is_of_array`."""


@dataclass(frozen=True, slots=True)
class Portion:
    """The unknown jobs that one reading fetches."""

    ids: Sequence[int] = ()
    is_behind: bool = False
    """There are more that are no arrays."""
    is_behind_on_arrays: bool = False
    """There are more of any kind."""


class LikelyInterest:
    """Guesses which unknown jobs are of interest: the caller names them, or they were before slurmctld's restart.

    The guess decides only what is fetched first, never what a job is.
    """

    def __init__(self, named: Callable[[], Iterable[int]]) -> None:
        """named: returns ids that are likely of interest; called only when there are many unknown jobs."""
        self._named = named
        self._before: frozenset[int] = frozenset()

    def remember(self, ids: Iterable[int]) -> None:
        """Note jobs that were of interest before slurmctld restarted."""
        self._before = frozenset(ids)

    def among(self, unknown: Collection[int]) -> Collection[int]:
        """Return the unknown jobs that likely are; none if there are so few that their order does not matter."""
        if len(unknown) <= _FEW:
            return ()
        return self._before.union(self._named()).intersection(unknown)


def may_hide_a_job(unread: Iterable[UnreadJob], *, arrays: bool) -> bool:
    """Check whether there is a job, or with `arrays` a record of one, of which not even the owner could be decoded."""
    return any(
        job.states is None and job.owner is None and (arrays or not job.is_of_array)
        for job in unread
    )


def may_hide_a_task(unread: Iterable[UnreadJob]) -> bool:
    """Check whether there is a record of an array that could not be decoded at all."""
    return may_hide_a_job((job for job in unread if job.is_of_array), arrays=True)


def is_of_array(states: frozenset[str]) -> bool:
    """Check whether a list names tasks; components of a heterogeneous job are beside its leader."""
    return bool(states) and all(":" in state for state in states)


def portion(
    unknown: Sequence[int],
    seen: Mapping[int, frozenset[str]],
    *,
    most: int,
    known_to_be_odd: Collection[int],
    likely: Collection[int] = (),
) -> Portion:
    """Return the unknown jobs that this reading fetches: arrays last.

    Jobs that are likely of interest get a reading of their own: it is over, and the caller can act on them,
    before the first foreign job is fetched. Of arrays, the latest records come first: they are of single
    tasks, and show what the array is. For the array's own id, Slurm returns the records of all its tasks.
    """
    of_arrays = {id_ for id_ in unknown if is_of_array(seen[id_])}
    others = [id_ for id_ in unknown if id_ not in of_arrays]
    first = [id_ for id_ in others if id_ in likely and id_ not in known_to_be_odd]
    chosen = (first or others)[:most]
    room = 0 if first else max(most - len(others), 0)
    is_behind = _new(others, known_to_be_odd) > _new(chosen, known_to_be_odd)
    new_of_arrays = _new(of_arrays, known_to_be_odd)
    return Portion(
        ids=(*chosen, *sorted(of_arrays, reverse=True)[:room]),
        is_behind=is_behind,
        is_behind_on_arrays=is_behind or new_of_arrays > room,
    )


def _new(ids: Iterable[int], known_to_be_odd: Collection[int]) -> int:
    return sum(id_ not in known_to_be_odd for id_ in ids)
