"""Members onto nodes, inside the allocation that Slurm gave their placeholder.

The slots of an allocation are numbered along Slurm's order of nodes, so that neighbouring ranks are neighbours in
Slurm's topology. A member keeps its slot for good; a replacement takes the one that became free.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bridge.domain.ids import PodUid, SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskShare:
    """What Slurm gave a job on one node, as a number of tasks that find room there."""

    node: SlurmNode
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSize:
    """What each task of a job asks for, as Slurm has it."""

    cpus: int = 1
    memory_mib_per_cpu: int | None = None
    """None: it is said for the whole node instead."""
    gres: str = ""
    """`gres/gpu:a100:2`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One component of a heterogeneous job: tasks of one size."""

    tasks: int
    task: TaskSize = TaskSize()
    shares: tuple[TaskShare, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One member's place."""

    slot: int
    """0 … world size - 1: the member's rank."""
    node: SlurmNode


def slots(shares: Sequence[TaskShare], size: int) -> tuple[SlurmNode, ...]:
    """Number the slots: which node each is on; () if there is no room for so many.

    Slurm promises every node at least one task. Where the nodes have more room than there are tasks (whole nodes, whole
    cores), each gets one, and the rest goes to the first ones: ranks stay close together.
    """
    if size < len(shares) or sum(share.tasks for share in shares) < size:
        return ()
    spare = size - len(shares)
    counts = []
    for share in shares:
        more = min(share.tasks - 1, spare)
        if more < 0:
            return ()
        counts.append(1 + more)
        spare -= more
    return tuple(
        share.node for share, count in zip(shares, counts, strict=True) for _ in range(count)
    )


def seat(
    members: Sequence[PodUid],
    nodes: Sequence[SlurmNode],
    *,
    taken: Collection[int] = (),
    wanted: Mapping[PodUid, int] | None = None,
    within: Mapping[PodUid, range] | None = None,
) -> Mapping[PodUid, Seat]:
    """Give members free slots; who finds none is missing from the answer.

    Args:
        members: in rank order, without those that have a slot already.
        nodes: the node of each slot (`slots`).
        taken: slots of the members that have one.
        wanted: the slot that is a member's by its index; it gets another one only if somebody else has it.
        within: the slots that are of a member's size, where they differ.
    """
    free = {slot for slot in range(len(nodes)) if slot not in taken}
    seats: dict[PodUid, int] = {}
    for uid in members:
        slot = (wanted or {}).get(uid, -1)
        if slot in free and (within is None or slot in within[uid]):
            free.remove(slot)
            seats[uid] = slot
    everywhere = range(len(nodes))
    lowest: dict[
        range, Iterator[int]
    ] = {}  # each slot is passed once, however many members there are
    for uid in members:
        if uid in seats:
            continue
        its = within[uid] if within is not None else everywhere
        slot = next((s for s in lowest.setdefault(its, iter(its)) if s in free), -1)
        if slot >= 0:
            free.remove(slot)
            seats[uid] = slot
    return {uid: Seat(slot=slot, node=nodes[slot]) for uid, slot in seats.items()}
