"""Delete the nodes that Slurm is to forget, but none that a live job names.

Slurm refuses that only where a job runs. A job that requires a node which is gone ends at slurmctld's
next restart, wherever it runs; one that excludes it can no longer be updated.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

import structlog

from bridge.slurm import nodes, queue
from bridge.slurm.nodes import Deletion
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import Rejected
from slurmruntime.values import faults
from slurmruntime.values.ids import SlurmNode

_log = structlog.get_logger(__name__)

_MOST: Final = 16
"""Nodes at one look: others wait for the next one."""
_LONGEST_WORDS: Final = 200


async def forget(slurm: SlurmClient, names: Iterable[SlurmNode]) -> tuple[str, ...]:
    """Delete some of them, and return what Slurm refuses, in words.

    Raises:
        SlurmError: one was not deleted, or nobody knows; the rest is left for the next look.
    """
    some = tuple(names)
    if not some:
        return ()
    named, unreadable = await queue.naming(slurm, some)
    if unreadable:
        return (f"nodes stay in Slurm, because nobody knows which jobs name them: {unreadable}",)
    refused = [
        f"node {name} stays in Slurm, because job {named[name]} names it"
        for name in islice(filter(named.__contains__, some), _MOST)
    ]
    for name in islice((each for each in some if each not in named), _MOST):
        try:
            outcome = await nodes.delete(slurm, name)
        except Rejected as error:
            words = faults.shortened(str(error), _LONGEST_WORDS)
            refused.append(f"node {name} stays in Slurm: {words}")
            continue
        _log.info("node.forgotten", node=name, outcome=outcome.value)
        if outcome is Deletion.BUSY:
            refused.append(f"node {name} stays in Slurm, because jobs or a reservation name it")
    return tuple(refused)
