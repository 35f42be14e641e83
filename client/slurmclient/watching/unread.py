"""Jobs that discovery could not read, and the choice of unknown jobs to read next."""

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
    """Unknown jobs fetched per reading, in about a second: a user may submit thousands at once, and ours must
    not wait."""
    patience_s: float = 0.0
    """How long a new job may be pending before it is fetched. Most run by then and are fetched once instead of
    twice."""


USUAL_PACE = Pace()


@dataclass(frozen=True, slots=True)
class UnreadJob:
    """A job that is set aside."""

    why: str
    owner: str | None
    states: frozenset[str] | None
    """The states it was fetched with; it is fetched again when they change. None: at the next
    reading."""
    is_of_array: bool = False
    """If true, it is not a placeholder."""


@dataclass(frozen=True, slots=True)
class Portion:
    """The unknown jobs that one reading fetches."""

    ids: Sequence[int] = ()
    is_behind: bool = False
    """There are more that may be placeholders."""
    is_behind_on_arrays: bool = False
    """There are more of any kind."""


class LikelyOurs:
    """Guesses which unknown jobs are ours: pods name them, or they were ours before slurmctld's restart.

    The guess decides only what is fetched first, never whether a job is ours.
    """

    def __init__(self, named: Callable[[], Iterable[int]]) -> None:
        """named: returns the ids that pods name; called only when there are many unknown jobs."""
        self._named = named
        self._were_ours: frozenset[int] = frozenset()

    def remember(self, ids: Iterable[int]) -> None:
        """Note jobs that were ours before slurmctld restarted."""
        self._were_ours = frozenset(ids)

    def among(self, unknown: Collection[int]) -> Collection[int]:
        """Return the unknown jobs that are likely ours; none if there are so few that their order does not matter."""
        if len(unknown) <= _FEW:
            return ()
        return self._were_ours.union(self._named()).intersection(unknown)


def may_hide_one_of_ours(unread: Iterable[UnreadJob], *, arrays: bool) -> bool:
    """Check whether there is a job that could not be decoded at all.

    arrays: include records of arrays.
    """
    return any(
        job.states is None and job.owner is None and (arrays or not job.is_of_array)
        for job in unread
    )


def may_hide_a_task(unread: Iterable[UnreadJob]) -> bool:
    """Check whether there is a record of an array that could not be decoded at all."""
    return may_hide_one_of_ours((job for job in unread if job.is_of_array), arrays=True)


def is_of_array(states: frozenset[str]) -> bool:
    """Check whether a list names tasks; components of a heterogeneous job are beside its leader."""
    return bool(states) and all(":" in state for state in states)


def portion(
    unknown: Sequence[int],
    seen: Mapping[int, frozenset[str]],
    *,
    most: int,
    known_to_be_odd: Collection[int],
    likely_ours: Collection[int] = (),
) -> Portion:
    """Return the unknown jobs that this reading fetches: those that may be placeholders first.

    Jobs that are likely ours get a reading of their own: it is over, and our pods are acted upon, before the
    first foreign job is fetched. Of arrays, the latest records come first: they are of single tasks, and show
    whether the array is ours. For the array's own id, Slurm returns the records of all its tasks.
    """
    of_arrays = {id_ for id_ in unknown if is_of_array(seen[id_])}
    others = [id_ for id_ in unknown if id_ not in of_arrays]
    ours = [id_ for id_ in others if id_ in likely_ours and id_ not in known_to_be_odd]
    chosen = (ours or others)[:most]
    room = 0 if ours else max(most - len(others), 0)
    is_behind = _new(others, known_to_be_odd) > _new(chosen, known_to_be_odd)
    new_of_arrays = _new(of_arrays, known_to_be_odd)
    return Portion(
        ids=(*chosen, *sorted(of_arrays, reverse=True)[:room]),
        is_behind=is_behind,
        is_behind_on_arrays=is_behind or new_of_arrays > room,
    )


def _new(ids: Iterable[int], known_to_be_odd: Collection[int]) -> int:
    return sum(id_ not in known_to_be_odd for id_ in ids)
