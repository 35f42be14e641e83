"""Rule on pods on hybrid nodes, where native jobs may start beside containers that still stop.

Slurm gives an ended job's share of a node away at once; the job's containers use their grace period.
On an external node the next pod waits for that. A native job does not: slurmd starts it. What a site
does about it is the administrator's to say, and nothing is assumed: until then, no pod is placed on a
hybrid node.

Nodes that take turns belong to native jobs or to pods. A pod's job has the whole node, so no native job
is there; before the pod is bound the node is drained, so none starts; and the drain stays until the
last container has stopped, however the job ended.
"""

import enum
from collections.abc import Mapping
from datetime import datetime, timedelta

from bridge.domain.model.jobs import SlurmJob
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode

RECENT = timedelta(minutes=10)
"""How long before a placeholder's start slurmctld's script may have asked last. The script asks about the
placeholder itself, so this covers clocks that differ, and questions that are not all recorded."""

UNANSWERED = (
    "a slurmd runs there, and setting nodes.hybrid does not say what keeps native jobs and pods apart: "
    "no pod is placed beside native jobs"
)
SHARED = (
    "native jobs and pods take turns there (setting nodes.hybrid): only a job that has the whole node "
    "is placed there, annotation slurmjob.slinky.slurm.net/exclusive"
)
NOT_ASKED = (
    "slurmctld's script has not asked whether jobs may start (setting nodes.hybrid is escrow), "
    "so native jobs might start beside containers that still stop"
)


class HybridRule(enum.StrEnum):
    """What keeps native jobs and containers that still stop apart; setting `nodes.hybrid`."""

    NONE = ""
    """The administrator has not said."""
    ESCROW = "escrow"
    """slurmctld's script holds native jobs back (docs/escrow.md)."""
    ALTERNATE = "alternate"
    """They take turns: a node is drained while pods have it."""
    ACCEPT_OVERLAP = "acceptOverlap"
    """Nothing does, and that is accepted."""


def why_refused(kube_node: KubeNodeFacts, rule: HybridRule, *, has_whole_node: bool) -> str:
    """Return why a pod must not be placed on a node, whatever its size; "" if it may.

    has_whole_node: its job requests whole nodes, or has them.
    """
    if not nodes.is_hybrid(kube_node):
        return ""
    if rule is HybridRule.NONE:
        return UNANSWERED
    return SHARED if rule is HybridRule.ALTERNATE and not has_whole_node else ""


def has_whole_nodes(job: SlurmJob, slurm_nodes: Mapping[SlurmNode, SlurmNodeFacts]) -> bool:
    """Check whether a running job has all CPUs of its nodes: then no other job is there.

    What it requested does not tell: its user may have changed that while it waited.
    """
    records = [slurm_nodes[name] for name in job.nodes if name in slurm_nodes]
    is_known = bool(job.nodes) and len(records) == len(job.nodes)
    return is_known and job.cpus >= sum(node.offered_cpus or node.cpus for node in records)


def why_unheld(
    kube_node: KubeNodeFacts,
    rule: HybridRule,
    *,
    asked_at: datetime | None,
    started_at: datetime | None,
) -> str:
    """Return why nothing shows that native jobs are held back for the pods of a job; "" if something does.

    Args:
        asked_at: when slurmctld's script last asked about any job; None if never.
        started_at: when the pod's job began; None if that is not known.
    """
    if rule is not HybridRule.ESCROW or not nodes.is_hybrid(kube_node):
        return ""
    is_recent = asked_at and started_at and asked_at >= started_at - RECENT
    return "" if is_recent else NOT_ASKED


def why_open(slurm_node: SlurmNodeFacts, rule: HybridRule) -> str:
    """Return why a native job could start on a node beside a pod that is to be bound; "" if none can.

    Args:
        slurm_node: as Slurm has it now, never from a cache.
    """
    if rule is not HybridRule.ALTERNATE or slurm_node.is_external or "DRAIN" in slurm_node.states:
        return ""
    return (
        f"{slurm_node.name} is not drained in Slurm yet, so a native job might start beside the pod"
    )
