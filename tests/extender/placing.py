"""The body of a term of the extender's, as its program runs it."""

import asyncio

from bridge.reconcile.informers import Mirror
from bridge.reconcile.program import Program
from bridge.settings.configuration import Sources
from bridge.settings.policy_file import PolicyFile
from extender.__main__ import place
from slurmruntime.leading.lease import Accession


async def placing(
    program: Program, mirror: Mirror, stop: asyncio.Event, accession: Accession
) -> None:
    policy = PolicyFile(
        Sources(program="webhook", config=None, secrets_dir=None), program.settings, program.metrics
    )
    await place(program, mirror, policy, stop, accession)
