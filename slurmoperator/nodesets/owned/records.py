"""Deletes nodes from Slurm, but none that a live job names.

Slurm itself refuses that only where a job runs. A job that requires a deleted node ends at
slurmctld's next restart, wherever it runs; one that excludes it can no longer be updated.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

import structlog

from bridge.slurm import nodes, queue
from bridge.slurm.nodes import Deletion
from slurmclient.errors import Declined
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import faults
from slurmruntime.values.ids import SlurmNode

_log = structlog.get_logger(__name__)

_MOST: Final = 16
"""Nodes deleted in one pass; others wait for the next one."""
_LONGEST_MESSAGE: Final = 200


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
