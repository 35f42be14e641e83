"""What every test of discovery breaks, and waits for."""

import asyncio
import time

from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase
from bridge.slurm.discovery import Discovery
from bridge.slurm.snapshot import Snapshot
from tests import faults
from tests.slurm.placeholders import DEADLINE_S, POLL_S

LOOK = "/job/"


STATES = "/jobs/state"


UNWELL = faults.answers(500, '{"errors":[{"error_number":-1}]}')


GARBAGE = faults.answers(200, "<html>")


async def refresh_until_phase(discovery: Discovery, whose: Identity, phase: JobPhase) -> Snapshot:
    end_s = time.monotonic() + DEADLINE_S
    while True:
        snapshot = await discovery.refresh()
        (job,) = snapshot.by_key[whose.key]
        if job.phase is phase:
            return snapshot
        assert time.monotonic() < end_s, f"still {job}"
        await asyncio.sleep(POLL_S)
