"""Nodes, partitions, reservations, licenses and shares."""

from collections.abc import Iterable

from msgspec import Raw, Struct

from slurmclient.calls import answers
from slurmclient.calls.speaker import Outcome, Speaker
from slurmclient.models import License, Node, Partition, Reservation, Share
from slurmclient.resources.collection import Collection
from slurmclient.resources.watched import CollectionByName
from slurmclient.wire.reading import Listing


class Nodes(CollectionByName[Node]):
    """The nodes."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker, Node, "nodes", one="node", parameter="node_name")

    async def update(self, name: str, /, **fields: object) -> Outcome:
        """Change nodes.

        Args:
            name: A node's name, or a list such as `node[1-16]`.
            fields: Slurm's fields (OpenAPI: `update_node_msg`), such as `state`, `reason`, `weight`,
                `comment`. Slurm ignores those that it cannot change here, such as `cpus`, and says
                so in the outcome's warnings.

        Raises:
            NotFound: If there is no such node.
            Conflict: If the node's state does not allow the change.
        """
        return await self._write("slurm_post_node", name, **fields)

    async def drain(self, name: str, reason: str) -> Outcome:
        """Start no more jobs on a node, or on a list of nodes."""
        return await self.update(name, state=["DRAIN"], reason=reason)

    async def resume(self, name: str) -> Outcome:
        """Start jobs again on nodes that were drained or down."""
        return await self.update(name, state=["RESUME"])

    async def create(self, node_conf: str) -> Outcome:
        """Create dynamic nodes; needs v0.0.44.

        Args:
            node_conf: Their description as in slurm.conf(5): `NodeName=… State=EXTERNAL CPUs=…`.

        Raises:
            Conflict: If there is such a node already.
        """
        _, outcome = await self._speaker.write("slurm_post_new_node", body={"node_conf": node_conf})
        return outcome

    async def delete(self, name: str) -> Outcome:
        """Delete a dynamic node.

        Raises:
            NotFound: If there is no such node.
            Conflict: If jobs run on it.
        """
        return await self._write("slurm_delete_node", name)


class Partitions(CollectionByName[Partition]):
    """The partitions."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(
            speaker, Partition, "partitions", one="partition", parameter="partition_name"
        )

    async def save(self, name: str, /, **fields: object) -> Outcome:
        """Create or change a partition; needs v0.0.45.

        Args:
            fields: Slurm's fields (OpenAPI: `partition_info`), such as
                `nodes={"configured": "node[1-4]"}`.
        """
        body = {"partitions": [{"name": name, **fields}]}
        _, outcome = await self._speaker.write(
            "slurm_post_partitions", body=body, written=("partitions", name)
        )
        return outcome

    async def delete(self, name: str) -> Outcome:
        """Delete a partition; needs v0.0.45."""
        return await self._write("slurm_delete_partition", name)


class Reservations(CollectionByName[Reservation]):
    """The reservations."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(
            speaker, Reservation, "reservations", one="reservation", parameter="reservation_name"
        )

    async def save(self, name: str, /, **fields: object) -> Outcome:
        """Create or change a reservation; needs v0.0.43.

        Args:
            fields: Slurm's fields (OpenAPI: `reservation_desc_msg`), such as `start_time` (a
                datetime), `duration` (minutes or a timedelta), `node_list`, `users`, `flags`.
        """
        _, outcome = await self._speaker.write(
            "slurm_post_reservation", body={"name": name, **fields}, written=("reservations", name)
        )
        return outcome

    async def delete(self, name: str) -> Outcome:
        """Delete a reservation; needs v0.0.43."""
        return await self._write("slurm_delete_reservation", name)


class Licenses(Collection[License]):
    """The licenses; Slurm can only list them."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker, License, "licenses")


class Shares:
    """The fair-share tree (sshare(1)): shares and usage of accounts and users."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    async def list(
        self, *, accounts: str | Iterable[str] = (), users: str | Iterable[str] = ()
    ) -> Listing[Share]:
        """Read the shares of all accounts and users, or of these: one string with commas, or several."""
        query = {"accounts": _joined(accounts), "users": _joined(users)}
        operation = "slurm_get_shares"
        body = await self._speaker.caller.call(operation, query=query, user=self._speaker.user)
        inside = answers.parse(operation, body, _SharesBody).shares
        return answers.listing(operation, bytes(inside), "shares", Share)


def _joined(names: str | Iterable[str]) -> str | None:
    return (names if isinstance(names, str) else ",".join(names)) or None


class _SharesBody(Struct, frozen=True):
    shares: Raw = Raw(b'{"shares": []}')
