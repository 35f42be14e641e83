"""Which pods of a node are pinned to which processors.

Only a pod that shares its processors with no other pod there is pinned: where two have the same, both
keep all processors, so no processor is ever in two exclusive sets. Pure; `agent` gathers and writes.
"""

import enum
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from bridge.domain.model.cores import cpu_list, topology
from slurmruntime.values.ids import PodUid


class NoPinReason(enum.StrEnum):
    """Why a pod may use all processors."""

    UNTOLD = "untold"
    """Nothing says which CPUs Slurm gave it: it was placed before agents were on, its job was
    restored, or its gang's CPUs cannot be divided."""
    UNREADABLE = "unreadable"
    """What is written on it is not a list of CPUs."""
    BEYOND = "beyond"
    """Slurm has more CPUs there than pods may use."""
    SHARED = "shared"
    """Another pod there has one of them, too."""


Plan = Mapping[PodUid, frozenset[int] | NoPinReason]
"""The processors of each pod, or why it has none of its own."""


def plan(cpu_texts: Mapping[PodUid, str], order: Sequence[int], allowed: Collection[int]) -> Plan:
    """Decide for all pods of a node that have containers.

    Args:
        cpu_texts: Slurm's CPUs as written on each pod; "" if none are.
        order: the machine's processors in Slurm's order (`topology.in_order`).
        allowed: the processors that pods may use at all.
    """
    processors = {uid: _processors(text, order, allowed) for uid, text in cpu_texts.items()}
    users = Counter(
        cpu for own in processors.values() if not isinstance(own, NoPinReason) for cpu in own
    )
    return {
        uid: NoPinReason.SHARED
        if not isinstance(own, NoPinReason) and any(users[cpu] > 1 for cpu in own)
        else own
        for uid, own in processors.items()
    }


def _processors(
    text: str, order: Sequence[int], allowed: Collection[int]
) -> frozenset[int] | NoPinReason:
    if not text:
        return NoPinReason.UNTOLD
    slurm_cpus = cpu_list.parse(text)
    if not slurm_cpus:
        return NoPinReason.UNREADABLE
    return topology.behind(slurm_cpus, order, allowed) or NoPinReason.BEYOND
