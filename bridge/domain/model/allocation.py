"""Assignment of members to nodes, inside the allocation that Slurm gave their placeholder.

The slots of an allocation are numbered along its nodes. Slurm gives these in the order of its table;
for a gang, `bridge.domain.gang.numbering` puts those of one switch side by side. A member keeps its
slot for good; a replacement takes the slot that became free.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from slurmruntime.values.ids import PodUid, SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskShare:
    """A job's share of one node, as the number of tasks that fit there."""

    node: SlurmNode
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSize:
    """What each task of a job asks for, as Slurm has it."""

    cpus: int = 1
    memory_mib_per_cpu: int | None = None
    """None: memory is given for the whole node instead."""
    gres: str = ""
    """`gres/gpu:a100:2`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGrant:
    """What each task of a running job has at least."""

    cpus: int
    memory_mib: int | None
    """None: Slurm does not say."""
    gres: Mapping[str, int] = field(default_factory=dict)
    """By kind, without types: `gpu` → 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One component of a heterogeneous job: tasks of one size."""

    tasks: int
    task: TaskSize = TaskSize()
    shares: tuple[TaskShare, ...] = ()
    task_grant: TaskGrant | None = None
    """For a running job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One member's place in the allocation."""

    slot: int
    """0 … world size - 1: the member's rank."""
    node: SlurmNode
    local_rank: int = 0
    """Its place among the slots of its node."""
    local_size: int = 1
    """How many slots its node has."""


def slots(shares: Sequence[TaskShare], size: int) -> tuple[SlurmNode, ...]:
    """Return the node of each slot, in order; () if the nodes have no room for that many.

    Slurm promises at least one task on every node. Where the nodes have more room than there are
    tasks (whole nodes, whole cores), each gets one, and the first nodes take the rest: ranks stay
    close together.
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
    """Give members free slots; a member that finds none is missing from the result.

    Args:
        members: in rank order, without those that already have a slot.
        nodes: the node of each slot (`slots`).
        taken: the slots of the members that have one.
        wanted: the slot that a member's index entitles it to; it gets another one only if that is
            taken.
        within: the slots of a member's size; None if all members have the same size.
    """
    before: list[int] = []
    on_node: Counter[SlurmNode] = Counter()
    for node in nodes:
        before.append(on_node[node])
        on_node[node] += 1
    free = {slot for slot in range(len(nodes)) if slot not in taken}
    seats: dict[PodUid, int] = {}
    for uid in members:
        slot = (wanted or {}).get(uid, -1)
        if slot in free and (within is None or slot in within[uid]):
            free.remove(slot)
            seats[uid] = slot
    everywhere = range(len(nodes))
    # Each slot is passed once, however many members there are.
    lowest: dict[range, Iterator[int]] = {}
    for uid in members:
        if uid in seats:
            continue
        its = within[uid] if within is not None else everywhere
        slot = next((s for s in lowest.setdefault(its, iter(its)) if s in free), -1)
        if slot >= 0:
            free.remove(slot)
            seats[uid] = slot
    return {
        uid: Seat(
            slot=slot, node=nodes[slot], local_rank=before[slot], local_size=on_node[nodes[slot]]
        )
        for uid, slot in seats.items()
    }
