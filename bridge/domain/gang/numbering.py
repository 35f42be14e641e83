"""Numbers the slots of a running placeholder, so that neighbouring ranks are near each other.

Slurm lists a job's nodes in the order of its own table. For external nodes, which come and go, that
is not the order of its switches. So nodes of one switch, or of one block, are put side by side
here; how many slots each has does not change. Once a member of the gang has its place, the
numbering is the one that was recorded on it: whatever becomes of the topology, no rank moves.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bridge.domain.model import allocation, grant
from bridge.domain.model.allocation import Component, TaskShare
from bridge.domain.model.grant import Grant
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from slurmruntime.values.ids import SlurmNode

Topology = Callable[[SlurmNode], str]
"""Returns a node's place in Slurm's topologies, `topo-switch:s1,topo-block:b1`; "" if it has none."""

_LONGEST_PLACE = 4096
"""Characters. A longer text is not read: it is a mistake, and each pass would read it again."""
_MOST_LEVELS = 16
"""Of switches above each other, in all topologies of a node."""


def numbered(job: SlurmJob, placed: Sequence[Pod], topology: Topology) -> SlurmJob:
    """Return a running placeholder with its nodes, shares and grant in the order of its slots.

    It is unchanged if its nodes have no room for its tasks.

    Args:
        placed: the members that have a place in it.
        topology: where its nodes are.
    """
    counted = [Counter(allocation.slots(part.shares, part.tasks)) for part in job.components]
    if not all(counted):
        return job
    layouts: Sequence[Mapping[SlurmNode, int]] = counted
    if placed:
        # Where nothing is recorded on members, Slurm's order stays: it is all that a later pass can
        # know.
        layouts = _recorded(job, placed) or counted
    elif job.grant is not None and job.grant.layout:
        layouts = [_side_by_side(counts, topology) for counts in counted]
    shares = [
        tuple(TaskShare(node=node, tasks=tasks) for node, tasks in layout.items())
        for layout in layouts
    ]
    # A node about which Slurm reports too little has no slot, but it is one of the job's.
    nodes = dict.fromkeys((*itertools.chain(*layouts), *job.nodes))
    ordered = replace(job, nodes=tuple(nodes), grant=_laid_out(job.grant, layouts))
    if not job.parts:
        return replace(ordered, shares=shares[0])
    parts = zip(job.parts, shares, strict=True)
    return replace(ordered, parts=tuple(replace(part, shares=own) for part, own in parts))


def _recorded(job: SlurmJob, placed: Sequence[Pod]) -> Sequence[Mapping[SlurmNode, int]]:
    """Return the number of slots on each node as the first member has it on record; () if none has.

    A record that the nodes have no room for is of another job: that of a lost one whose successor
    has fewer nodes.
    """
    for member in placed:
        recorded = member.grant
        if recorded is None:
            continue
        layouts = [component_grant.tasks_on for component_grant in (recorded[1], *recorded[1].also)]
        if len(layouts) == len(job.components) and all(map(_has_room, job.components, layouts)):
            return layouts
    return ()


def _has_room(part: Component, layout: Mapping[SlurmNode, int]) -> bool:
    rooms = {share.node: share.tasks for share in part.shares}
    return (
        rooms.keys() == layout.keys()
        and sum(layout.values()) == part.tasks
        and all(0 < tasks <= rooms[node] for node, tasks in layout.items())
    )


def _laid_out(job_grant: Grant | None, layouts: Sequence[Mapping[SlurmNode, int]]) -> Grant | None:
    """Return the grant with its layouts in the order of the slots, as it is recorded on members."""
    if job_grant is None or not job_grant.layout or 1 + len(job_grant.also) != len(layouts):
        return job_grant
    written = [
        grant.layout(node for node, tasks in layout.items() for _ in range(tasks))
        for layout in layouts
    ]
    also = zip(job_grant.also, written[1:], strict=True)
    return replace(
        job_grant,
        layout=written[0],
        also=tuple(replace(component_grant, layout=text) for component_grant, text in also),
    )


def _side_by_side(counts: Mapping[SlurmNode, int], topology: Topology) -> Mapping[SlurmNode, int]:
    """Sort nodes so that those of one switch are neighbours, and so are switches below one switch.

    Otherwise the order stays: switches come in the order of their first nodes.
    """
    paths = _paths([topology(node) for node in counts])
    first: dict[tuple[str, ...], int] = {}
    keys: dict[SlurmNode, tuple[int, ...]] = {}
    for number, (node, path) in enumerate(zip(counts, paths, strict=True)):
        above = (path[:level] for level in range(1, len(path) + 1))
        keys[node] = (*(first.setdefault(prefix, number) for prefix in above), number)
    return {node: counts[node] for node in sorted(counts, key=keys.__getitem__)}


def _paths(places: Sequence[str]) -> Sequence[tuple[str, ...]]:
    """Return each node's switches, from the top down, and its blocks; () if it has none.

    The topology that is named first counts first: its switches, then those of the next one.
    """
    named = [_by_topology(place) for place in places]
    order = dict.fromkeys(itertools.chain(*named))
    return [
        tuple(f"{name}:{unit}" for name in order if name in own for unit in own[name])[
            :_MOST_LEVELS
        ]
        for own in named
    ]


def _by_topology(place: str) -> Mapping[str, Sequence[str]]:
    """Read `tree:root:s1,blocks:b1` as `{"tree": ["root", "s1"], "blocks": ["b1"]}`."""
    if len(place) > _LONGEST_PLACE:
        return {}
    parts = (part.strip().split(":") for part in place.split(","))
    return {name: units for name, *units in parts if name and units}
