"""Jobs that discovery could not read, and which of those that it does not know yet it reads next."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bridge.domain.ids import JobId, WorkloadKey

OnUnreadable = Callable[[JobId, str], None]
"""Called each time a fetched job cannot be decoded, with the reason."""

OnSettled = Callable[[JobId], None]
"""Called when such a job has become readable or is gone."""


def ignore_unreadable(_id: JobId, _why: str) -> None:
    """Do nothing."""


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
    return bool(states) and all(":" in each for each in states)


def portion(
    unknown: Sequence[JobId],
    seen: Mapping[JobId, frozenset[str]],
    *,
    most: int,
    known_to_be_odd: Collection[JobId],
) -> LooksAhead:
    """Return the unknown jobs that this reading fetches: what may be placeholders first.

    Of arrays, the latest records first: they are of single tasks, and tell whose their array is. By
    the array's own id, Slurm returns the records of all its tasks.
    """
    of_arrays = {id_ for id_ in unknown if is_of_array(seen[id_])}
    others = [id_ for id_ in unknown if id_ not in of_arrays]
    room = max(most - len(others), 0)
    is_behind = sum(id_ not in known_to_be_odd for id_ in others) > most
    new_of_arrays = sum(id_ not in known_to_be_odd for id_ in of_arrays)
    return LooksAhead(
        ids=(*others[:most], *sorted(of_arrays, reverse=True)[:room]),
        is_behind=is_behind,
        is_behind_on_arrays=is_behind or new_of_arrays > room,
    )
