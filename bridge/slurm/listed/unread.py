"""Jobs that discovery could not read, and which of those that it does not know yet it reads next."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from slurmruntime.values.ids import JobId, WorkloadKey

_FEW = 50
"""Unknown jobs that are fetched in a fraction of a second, in whatever order."""

OnUnreadable = Callable[[JobId, str], None]
"""Called each time a fetched job cannot be decoded, with the reason."""

OnSettled = Callable[[JobId], None]
"""Called when such a job has become readable or is gone."""


def ignore_unreadable(_id: JobId, _why: str) -> None:
    """Do nothing."""


def nothing_named() -> Iterable[JobId]:
    """Return nothing; for a reader without pods."""
    return ()


def ignore_settled(_id: JobId) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class UnreadJob:
    """A job that is set aside."""

    why: str
    workload: WorkloadKey | None
    states: frozenset[str] | None
    """The states it was fetched with; it is fetched again when they change. None: with the next
    reading."""
    is_of_array: bool = False
    """Then it is no placeholder."""


@dataclass(frozen=True, slots=True)
class LooksAhead:
    """The unknown jobs that one reading fetches."""

    ids: Sequence[JobId] = ()
    is_behind: bool = False
    """There are more that may be placeholders."""
    is_behind_on_arrays: bool = False
    """There are more of any kind."""


class LikelyOurs:
    """Which unknown jobs are probably ours: pods name them, or they were ours before slurmctld's restart.

    It decides only what is fetched first, never whose a job is.
    """

    def __init__(self, named: Callable[[], Iterable[JobId]]) -> None:
        """named: returns the ids that pods name; only asked when there are many unknown jobs."""
        self._named = named
        self._were_ours: frozenset[JobId] = frozenset()

    def remember(self, ids: Iterable[JobId]) -> None:
        """Note jobs that were ours until their ids ceased to mean anything."""
        self._were_ours = frozenset(ids)

    def among(self, unknown: Collection[JobId]) -> Collection[JobId]:
        """Return those of the unknown jobs; none if there are so few that their order does not matter."""
        if len(unknown) <= _FEW:
            return ()
        return self._were_ours.union(self._named()).intersection(unknown)


def may_hide_one_of_ours(unread: Iterable[UnreadJob], *, arrays: bool) -> bool:
    """Check whether there is a job of which nothing at all could be decoded.

    arrays: count what is of an array, too.
    """
    return any(
        each.states is None and each.workload is None and (arrays or not each.is_of_array)
        for each in unread
    )


def may_hide_a_task(unread: Iterable[UnreadJob]) -> bool:
    """Check whether there is a record of some array of which nothing at all could be decoded."""
    return may_hide_one_of_ours((each for each in unread if each.is_of_array), arrays=True)


def is_of_array(states: frozenset[str]) -> bool:
    """Check whether a list names tasks; components of a heterogeneous job are beside its leader."""
    return bool(states) and all(":" in state for state in states)


def portion(
    unknown: Sequence[JobId],
    seen: Mapping[JobId, frozenset[str]],
    *,
    most: int,
    known_to_be_odd: Collection[JobId],
    likely_ours: Collection[JobId] = (),
) -> LooksAhead:
    """Return the unknown jobs that this reading fetches: what may be placeholders first.

    What is likely ours is fetched by a reading of its own: then it is over, and our pods are acted
    upon, before the first stranger has been fetched. Of arrays, the latest records first: they are of single tasks, and tell whose their array is. By
    the array's own id, Slurm returns the records of all its tasks.
    """
    of_arrays = {id_ for id_ in unknown if is_of_array(seen[id_])}
    others = [id_ for id_ in unknown if id_ not in of_arrays]
    ours = [id_ for id_ in others if id_ in likely_ours and id_ not in known_to_be_odd]
    chosen = (ours or others)[:most]
    room = 0 if ours else max(most - len(others), 0)
    is_behind = _new(others, known_to_be_odd) > _new(chosen, known_to_be_odd)
    new_of_arrays = _new(of_arrays, known_to_be_odd)
    return LooksAhead(
        ids=(*chosen, *sorted(of_arrays, reverse=True)[:room]),
        is_behind=is_behind,
        is_behind_on_arrays=is_behind or new_of_arrays > room,
    )


def _new(ids: Iterable[JobId], known_to_be_odd: Collection[JobId]) -> int:
    return sum(id_ not in known_to_be_odd for id_ in ids)
