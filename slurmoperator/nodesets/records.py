"""Nodes to delete from Slurm because their Kubernetes nodes are gone (`pruneSlurmNodeRecords`), but none that a live job names.

A worker that ends leaves its node in Slurm, which then misses it. A worker whose ordinal or Kubernetes node comes back takes the
record over; that of a Kubernetes node which is gone for good would stay in `sinfo` for ever. Slurm itself refuses to delete a node only
where a job runs. A job that requires a deleted node ends at slurmctld's next restart, wherever it runs; one that excludes it can no
longer be updated.
"""

from collections.abc import Container, Iterable
from itertools import islice
from typing import Final

import structlog

from bridge.slurm import nodes, queue
from bridge.slurm.nodes import Deletion
from slurmclient.errors import Declined
from slurmoperator.nodesets.plan.look import NodeSetFacts
from slurmoperator.nodesets.plan.placing import host_of
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import faults
from slurmruntime.values.ids import SlurmNode

_log = structlog.get_logger(__name__)

_MOST: Final = 16
"""Nodes deleted in one pass; others wait for the next one."""
_LONGEST_MESSAGE: Final = 200
_DYNAMIC: Final = "DYNAMIC_NORM"
"""State of a node that its slurmd created: no slurm.conf lists it."""
_SILENT: Final = "NOT_RESPONDING"


def stale_nodes(facts: NodeSetFacts) -> tuple[SlurmNode, ...]:
    """Return the Slurm nodes to delete: none unless pruning is on and all Kubernetes nodes can be read."""
    if not prunes(facts) or not facts.slurm.is_known or facts.unreadable_nodes:
        return ()
    hosts = {host_of(kube_node) for kube_node in facts.kube_nodes.values()}
    return nodes_to_delete(
        facts.slurm.nodes.values(),
        feature=facts.node_set.slurm_name,
        needed={*facts.hosts, *(pod.slurm_node for pod in facts.pods), *hosts},
    )


def prunes(facts: NodeSetFacts) -> bool:
    """Check whether the plan depends on all nodes in Slurm."""
    return facts.node_set.spec.prune_slurm_node_records != "Never" and facts.is_on_nodes


def nodes_to_delete(
    nodes: Iterable[SlurmNodeFacts], *, feature: str, needed: Container[str]
) -> tuple[SlurmNode, ...]:
    """Return the names of the nodes with the NodeSet's feature to delete, in order.

    A slurmd outside Kubernetes may have the same feature: its node stays while it answers or has jobs. A name is needed if a
    pod has it, or the worker of a Kubernetes node would.
    """
    return tuple(
        sorted(
            node.name
            for node in nodes
            if feature in node.features
            and {_DYNAMIC, _SILENT} <= node.states
            and not node.is_external
            and not node.is_busy
            and node.name not in needed
        )
    )


async def delete_nodes(slurm: SlurmClient, names: Iterable[SlurmNode]) -> tuple[str, ...]:
    """Delete nodes, and return texts about those that have to stay.

    Raises:
        SlurmError: one was not deleted, or the outcome is unknown; the rest waits.
    """
    candidates = tuple(names)
    if not candidates:
        return ()
    named, unreadable = await queue.jobs_naming(slurm, candidates)
    if unreadable:
        return (f"nodes stay in Slurm because the jobs that name them are unknown: {unreadable}",)
    refused = [
        f"node {name} stays in Slurm because job {named[name]} names it"
        for name in islice(filter(named.__contains__, candidates), _MOST)
    ]
    for name in islice((node for node in candidates if node not in named), _MOST):
        try:
            outcome = await nodes.delete(slurm, name)
        except Declined as error:
            message = faults.shortened(str(error), _LONGEST_MESSAGE)
            refused.append(f"node {name} stays in Slurm: {message}")
            continue
        _log.info("node.forgotten", node=name, outcome=outcome.value)
        if outcome is Deletion.BUSY:
            refused.append(f"node {name} stays in Slurm because jobs or a reservation name it")
    return tuple(refused)
