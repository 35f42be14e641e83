"""All sources but jobs: each is one function, and fails alone."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from slurmclient import Client, Listing, SlurmError, TooOld
from slurmclient.models import DatabasePing
from slurmexporter.collecting import privacy
from slurmexporter.collecting.journal import Journal
from slurmexporter.families.picture import AccountingReading, ControllersReading
from slurmexporter.readings.node import (
    NodeView,
    PartitionView,
    SlurmNode,
    differ_by_jobs_only,
    node_of,
)
from slurmexporter.settings import Settings

Read = Callable[[], Awaitable[object]]
"""Returns a reading; None if nothing has changed since the last one."""
T = TypeVar("T")
_LOG: Final = logging.getLogger(__name__)
_REST: Final = 3
"""Intervals between two lists of nodes while only jobs change them: slurmrestd sends all of them."""
_ROUNDS: Final = 20
"""Readings of the controllers per check of PrivateData."""


class Sources:
    """Reads nodes, partitions, statistics and the rest."""

    def __init__(self, slurm: Client, settings: Settings, journal: Journal) -> None:
        self._slurm = slurm
        self._settings = settings
        self._journal = journal
        self._nodes_at: datetime | None = None
        self._nodes: Sequence[SlurmNode] = ()
        self._do_nodes_rest = False
        self._partitions_at: datetime | None = None
        self._rounds = 0

    def all(self) -> dict[str, Read]:
        """Return the functions that read, by the names of their sources."""
        reads: dict[str, Read] = {
            "controllers": self.controllers,
            "scheduler": self._slurm.diag,
            "nodes": self.nodes,
            "partitions": self.partitions,
            "licenses": partial(self._list, "licenses", self._slurm.licenses.list),
            "reservations": partial(self._list, "reservations", self._slurm.reservations.list),
            "shares": partial(self._list, "shares", self._slurm.shares.list),
        }
        if self._settings.has_accounting:
            reads["accounting"] = self.accounting
        return reads

    def start_over(self, source: str) -> None:
        """Read a source in full next time: its last reading is no longer shown."""
        if source == "nodes":
            self._nodes_at = None
        if source == "partitions":
            self._partitions_at = None

    def pause_s(self, source: str) -> float:
        """Return the shortest wait until the next reading: nodes have time for two failed ones."""
        if source != "nodes" or not self._do_nodes_rest:
            return 0.0
        every_s, stale_s = self._settings.every_s(source), self._settings.stale_s(source)
        return max(0.0, min(_REST * every_s, stale_s - 2 * every_s))

    async def controllers(self) -> ControllersReading:
        """Ask which controllers and databases respond."""
        dialect = await self._slurm.dialect()
        pings = await self._slurm.ping()
        databases: Sequence[DatabasePing] = ()
        if self._settings.has_accounting:
            databases = await self._databases()
        await self._check_privacy()
        return ControllersReading(
            controllers=pings,
            databases=databases,
            release=dialect.release,
            cluster=dialect.cluster,
            api=f"v0.0.{dialect.version}",
        )

    async def nodes(self) -> Sequence[SlurmNode] | None:
        """Read all nodes, unless none has changed."""
        self._do_nodes_rest = False
        listed = await self._slurm.nodes.list_if_changed(self._nodes_at, as_=NodeView)
        if listed is None:
            return None
        self._note("nodes", listed)
        self._nodes_at = listed.updated_at
        before, self._nodes = self._nodes, [node_of(view) for view in listed]
        self._do_nodes_rest = differ_by_jobs_only(before, self._nodes)
        return self._nodes

    async def partitions(self) -> Sequence[PartitionView] | None:
        """Read all partitions, unless none has changed."""
        listed = await self._slurm.partitions.list_if_changed(
            self._partitions_at, as_=PartitionView
        )
        if listed is None:
            return None
        self._note("partitions", listed)
        self._partitions_at = listed.updated_at
        return listed

    async def accounting(self) -> AccountingReading | None:
        """Read limits and slurmdbd's statistics; nothing if this Slurm has no accounting."""
        if self._journal.are_databases_up is None:
            await self._databases()
        if self._journal.are_databases_up is None:
            return None
        cluster = (await self._slurm.dialect()).cluster
        return AccountingReading(
            associations=await self._slurm.db.associations.list(cluster=cluster),
            qos=await self._slurm.db.qos.list(),
            statistics=await self._slurm.db.diag(),
        )

    async def _check_privacy(self) -> None:
        """Note what PrivateData hides from the token's user, now and then."""
        if self._rounds % _ROUNDS == 0:
            try:
                hidden = await privacy.hidden(self._slurm)
            except TooOld:  # it does not serve its configuration
                hidden = frozenset()
            except SlurmError:  # asked again in the next round
                return
            for word in privacy.PRIVATE:
                reason = f"private_{word.lower()}"
                if word in hidden and reason not in self._journal.degraded:
                    _LOG.warning(
                        "PrivateData hides %s of other users from the token's user: the counts are incomplete;"
                        " use a token of SlurmUser, root or an operator",
                        word.lower(),
                    )
                self._journal.degrade(reason, holds=word in hidden)
        self._rounds += 1

    async def _databases(self) -> Sequence[DatabasePing]:
        """Ask which slurmdbd respond; none does if Slurm has no accounting."""
        try:
            pings = await self._slurm.db.ping()
        except SlurmError:
            if self._journal.are_databases_up is not None:
                self._journal.are_databases_up = False
            return ()
        self._journal.are_databases_up = (
            any(ping.responding for ping in pings) if pings else self._journal.are_databases_up
        )
        return pings

    async def _list(self, source: str, read: Callable[[], Awaitable[Listing[Any]]]) -> Listing[Any]:
        return self._note(source, await read())

    def _note(self, source: str, listed: Listing[T]) -> Listing[T]:
        self._journal.odd[source] += len(listed.odd)
        return listed
