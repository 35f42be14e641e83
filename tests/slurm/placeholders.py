"""Builders of placeholders for the tests of the Slurm adapter."""

import asyncio
import time
import uuid
from dataclasses import replace
from typing import Any

from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.slurm import jobs
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import ClusterId, JobId, PodUid, WorkloadKey

CLUSTER = ClusterId("5f0c5a7e-cluster")
USER = "daemon"
"""Of every Debian-family machine."""
DEADLINE_S = 30.0
POLL_S = 0.02


def identity(uid: str = "", *, cluster: ClusterId = CLUSTER, cause: str = "") -> Identity:
    uid = uid or str(uuid.uuid4())
    return Identity(
        cluster=cluster,
        kind="Pod",
        namespace="team-a",
        name="train",
        key=WorkloadKey(uid),
        pods=(PodUid(uid),),
        cause=cause,
    )


def spec(whose: Identity | None = None, **changes: Any) -> PlaceholderSpec:
    """One CPU for an hour, by default on any node."""
    plain = PlaceholderSpec(
        identity=whose or identity(),
        name="train",
        user=USER,
        group=USER,
        cpus_per_task=1,
        memory_mib_per_node=100,
        time_limit_min=60,
    )
    return replace(plain, **changes)


async def said_when_it_started(client: SlurmClient) -> None:
    """Wait for the end of slurmctld's first second, in which it says 0."""
    end_s = time.monotonic() + DEADLINE_S
    while not (
        await client.call("diag", "slurm_get_diag", answer=wire.Diagnosis)
    ).statistics.req_time_start.positive:
        assert time.monotonic() < end_s
        await asyncio.sleep(POLL_S)


async def in_phase(client: SlurmClient, id_: JobId, phase: JobPhase) -> SlurmJob:
    """The job once it is in that phase."""
    end_s = time.monotonic() + DEADLINE_S
    while True:
        job = await jobs.job(client, id_)
        assert isinstance(job, SlurmJob)
        if job.phase is phase:
            return job
        assert time.monotonic() < end_s, f"still {job} after {DEADLINE_S} s"
        await asyncio.sleep(POLL_S)
