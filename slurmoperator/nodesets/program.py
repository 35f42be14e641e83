"""The process around the controller of NodeSets: clients, health, metrics, leader election."""

import asyncio

from bridge.reconcile.program import opened
from bridge.settings.schema import Settings
from slurmoperator.nodesets.assembly import NodeSets
from slurmoperator.nodesets.gathering import KeySteps, WorkerTemplates
from slurmruntime.leading.lease import Accession
from slurmruntime.process import lifetime


async def run(
    configured: Settings, templates: WorkerTemplates, key_step: KeySteps, stop: asyncio.Event
) -> None:
    """Reconcile NodeSets while this process leads, until `stop` is set."""
    async with opened("operator", configured) as program:
        node_sets = NodeSets(program, templates, key_step)

        async def lead(until: asyncio.Event, _accession: Accession) -> None:
            await node_sets.control(until)

        await lifetime.run_parts(
            program.health_part(),
            program.token_part(),
            *node_sets.parts(),
            program.leader_part(lead),
            stop=stop,
        )
