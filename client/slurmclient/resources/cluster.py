"""What slurmctld has besides jobs: nodes, partitions, reservations, licenses, shares."""

from collections.abc import Iterable

from msgspec import Raw, Struct

from slurmclient.calls import answers
from slurmclient.calls.speaker import Outcome, Speaker
from slurmclient.models import License, Node, Partition, Reservation, Share
from slurmclient.resources.collection import Collection
from slurmclient.resources.watched import WatchedNames
from slurmclient.wire import reading
from slurmclient.wire.reading import Listing


class Nodes(WatchedNames[Node]):
    """The nodes."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(
            speaker,
            Node,
            "nodes",
            lists="slurm_get_nodes",
            gets="slurm_get_node",
            parameter="node_name",
        )

    async def update(self, name: str, /, **fields: object) -> Outcome:
        """Change a node, or a list of them as `node[1-16]`: Slurm's fields, as `state`, `reason`, `weight`, `comment`.

        A field that Slurm does not change so, as `cpus`, is a warning of the outcome.
        """
        return await self._write("slurm_post_node", name, **fields)

    async def drain(self, name: str, reason: str) -> Outcome:
        """Let no more jobs start there."""
        return await self.update(name, state=["DRAIN"], reason=reason)

    async def resume(self, name: str) -> Outcome:
        """Let jobs start there again: after a drain, or when it was down."""
        return await self.update(name, state=["RESUME"])

    async def create(self, node_conf: str) -> Outcome:
        """Add dynamic nodes, described as in slurm.conf: `NodeName=… State=EXTERNAL CPUs=…`; since v0.0.44."""
        _, outcome = await self._speaker.write("slurm_post_new_node", body={"node_conf": node_conf})
        return outcome

    async def delete(self, name: str) -> Outcome:
        """Remove a dynamic node."""
        return await self._write("slurm_delete_node", name)


class Partitions(WatchedNames[Partition]):
    """The partitions."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(
            speaker,
            Partition,
            "partitions",
            lists="slurm_get_partitions",
            gets="slurm_get_partition",
            parameter="partition_name",
        )

    async def save(self, name: str, /, **fields: object) -> Outcome:
        """Create a partition or change it: Slurm's fields, as `nodes={"configured": "node[1-4]"}`; since v0.0.45."""
        body = {"partitions": [{"name": name, **fields}]}
        _, outcome = await self._speaker.write(
            "slurm_post_partitions", body=body, written=("partitions", name)
        )
        return outcome

    async def delete(self, name: str) -> Outcome:
        """Remove a partition; since v0.0.45."""
        return await self._write("slurm_delete_partition", name)


class Reservations(WatchedNames[Reservation]):
    """The reservations."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(
            speaker,
            Reservation,
            "reservations",
            lists="slurm_get_reservations",
            gets="slurm_get_reservation",
            parameter="reservation_name",
        )

    async def save(self, name: str, /, **fields: object) -> Outcome:
        """Create a reservation or change it; since v0.0.43.

        Args:
            name: Its name.
            fields: Slurm's, as `start_time` (a datetime), `duration` (a timedelta), `node_list`, `users`, `flags`.
        """
        _, outcome = await self._speaker.write(
            "slurm_post_reservation", body={"name": name, **fields}, written=("reservations", name)
        )
        return outcome

    async def delete(self, name: str) -> Outcome:
        """Remove a reservation."""
        return await self._write("slurm_delete_reservation", name)


class Licenses(Collection[License]):
    """The licenses; Slurm cannot be asked for one."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker, License, "licenses", lists="slurm_get_licenses")


class Shares:
    """Fair-share: what accounts and users may use, and what they have used."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    async def list(
        self, *, accounts: str | Iterable[str] = (), users: str | Iterable[str] = ()
    ) -> Listing[Share]:
        """Read them, of these accounts and users or of all."""
        query = {"accounts": _joined(accounts), "users": _joined(users)}
        operation = "slurm_get_shares"
        body = await self._speaker.caller.call(operation, query=query, user=self._speaker.user)
        inside = reading.decode(body, _Nested).shares
        return answers.listing(operation, bytes(inside), "shares", Share)


def _joined(names: str | Iterable[str]) -> str | None:
    return (names if isinstance(names, str) else ",".join(names)) or None


class _Nested(Struct, frozen=True):
    shares: Raw = Raw(b'{"shares": []}')
