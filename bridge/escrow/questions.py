"""When slurmctld's script last asked: the evidence that native jobs are held back.

A script asks whichever replica it reaches, and another one places pods. So the time is in a Lease, which
outlives all of them.
"""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Self

import structlog

from bridge.domain.model.hybrid import RECENT
from bridge.reconcile.program import Program
from slurmruntime.kube.errors import Conflict, KubeError
from slurmruntime.kube.leases import KubeLeases
from slurmruntime.leading.lease import LeaseStore
from slurmruntime.model.leases import LeaseRecord
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock

LEASE = "slurm-bridge-escrow"

_WRITTEN_EVERY = timedelta(seconds=30)
"""However many jobs start."""

_WRITTEN_WITHIN_S = 2.0
"""A job does not wait longer for this; its successor's question is written then."""

_READ_EVERY_S = 2.0

_log = structlog.get_logger(__name__)


class Questions:
    """The Lease with the time of the last question, as one process writes and reads it."""

    def __init__(self, store: LeaseStore, identity: str, clock: Clock) -> None:
        self._store = store
        self._identity = identity
        self._clock = clock
        self._written_at: datetime | None = None
        self.asked_at: datetime | None = None
        """The time of the last question that was read; None if there was none."""

    @classmethod
    def of(cls, program: Program) -> Self:
        """Return them for a program."""
        store = KubeLeases(program.lease_kube, program.settings.kubernetes.namespace)
        return cls(store, program.reporter.instance, program.clock)

    async def note(self) -> None:
        """Write that the script has just asked, unless that was written lately."""
        now, before = self._clock.now(), self._written_at
        if before is not None and now - before < _WRITTEN_EVERY:
            return
        self._written_at = now
        try:
            async with asyncio.timeout(_WRITTEN_WITHIN_S):
                await self._write(now)
        except Conflict:
            pass  # another replica has just written it
        except (KubeError, TimeoutError) as error:
            self._written_at = before
            _log.warning("escrow.question_not_written", error=str(error) or "no answer in time")

    async def run(self, stop: asyncio.Event) -> None:
        """Read the time repeatedly until `stop` is set."""
        await liveness.run("escrow questions", self._read_repeatedly(), stop)

    async def read(self) -> None:
        """Read the time; what was known stays while the API server does not answer."""
        try:
            record = await self._store.get(LEASE)
        except KubeError:
            return
        self.asked_at = None if record is None or self._is_ahead(record) else record.renewed_at

    async def _read_repeatedly(self) -> None:
        while True:
            liveness.turned(_READ_EVERY_S)
            await self.read()
            await self._clock.sleep(_READ_EVERY_S)

    def _is_ahead(self, record: LeaseRecord) -> bool:
        """Check whether a time is further ahead than clocks differ: it would count for ever."""
        return record.renewed_at > self._clock.now() + RECENT

    async def _write(self, now: datetime) -> None:
        before = await self._store.get(LEASE)
        fresh = LeaseRecord(
            holder=self._identity,
            acquired_at=now,
            renewed_at=now,
            duration_s=int(_WRITTEN_EVERY.total_seconds()),
        )
        if before is None:
            await self._store.create(LEASE, fresh)
        elif before.renewed_at < now or self._is_ahead(before):
            await self._store.replace(
                LEASE, replace(fresh, resource_version=before.resource_version)
            )
