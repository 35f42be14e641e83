"""Slurm nodes, and reservations of them, through slurmrestd.

External nodes have no slurmd: Slurm never pings them and never takes them down by itself. A node
becomes NOT_RESPONDING when something tries to reach its slurmd (a signal, suspend, preemption with
grace time); `delete` and `create` clear that, and so does a registration (`bridge.slurm.respond`). A node
is never set to FUTURE: it would permanently lose EXTERNAL.
"""

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bridge.slurm import decode, encode
from slurmclient.calls import answers
from slurmclient.errors import Declined, Malformed, TargetNotFound, Unavailable
from slurmclient.wire.reading import Answer
from slurmruntime.model.nodes import NodeReservation, SlurmNodeFacts, SlurmNodeSpec
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import (
    GENERIC,
    INVALID_NODE_NAME,
    NO_RESERVATION,
    NODE_EXISTS,
    NODES_BUSY,
)
from slurmruntime.values import hostlist
from slurmruntime.values.ids import SlurmNode


class Creation(enum.Enum):
    """Result of creating a node."""

    CREATED = "created"
    EXISTS = "exists"
    """A node of that name exists already, of any kind and size."""


class Deletion(enum.Enum):
    """Result of deleting a node."""

    DELETED = "deleted"
    BUSY = "busy"
    """Jobs run there, or a reservation names it: drain it and retry later."""
    NO_SUCH_NODE = "no such node"


MOST_NODES: Final = 65_533
"""The largest MaxNodeCount that Slurm accepts."""
MOST_NODES_BYTES: Final = 32 * 2**20
"""Longest list that is stored: 20 000 nodes."""


@dataclass(frozen=True, slots=True)
class NodeListing:
    """All nodes, as Slurm listed them."""

    nodes: tuple[SlurmNodeFacts, ...]
    as_of: int
    """Seconds of slurmctld's clock; 0: not given."""


async def listing(client: SlurmClient) -> tuple[SlurmNodeFacts, ...]:
    """Return all nodes; the response has 1.6 kB for each."""
    return (await refresh(client, None)).nodes


async def refresh(client: SlurmClient, before: NodeListing | None) -> NodeListing:
    """Return all nodes; `before` itself if slurmctld reports no change since.

    That response is empty and costs slurmrestd 0.3 ms; a list of 100 nodes costs 12 ms. slurmctld
    compares with the second before the given one, so a change in the same second as a list is not
    missed. A clock that is set back would hide changes.
    """
    if before is None or not before.as_of:
        answer = await client.call("node.list", "slurm_get_nodes", answer=wire.Nodes)
    else:
        changed = await client.call_if_changed(
            "node.list", "slurm_get_nodes", since=before.as_of, answer=wire.Nodes
        )
        if changed is None:
            return before
        answer = changed
    return _listed(answer, tuple(map(decode.node, answer.nodes or ())))


async def refresh_in_slices(client: SlurmClient, before: NodeListing | None) -> NodeListing:
    """Return the same for a Slurm that others run: bounded by what a Slurm can have, and without blocking the event loop.

    Raises:
        Malformed: Slurm lists more, or something that cannot be read.
    """
    nodes: list[SlurmNodeFacts] = []

    def take(body: bytes) -> None:
        if len(nodes) == MOST_NODES:
            raise Malformed("node.list", f"expected at most {MOST_NODES} nodes, got more")
        nodes.append(decode.node(answers.parse("slurm_get_nodes", body, wire.Node)))

    answer = await client.each_of(
        "node.list",
        "slurm_get_nodes",
        "nodes",
        take=take,
        answer=wire.Nodes,
        most_bytes=MOST_NODES_BYTES,
        since=before.as_of if before and before.as_of else None,
    )
    if answer is None:
        assert before is not None  # noqa: S101  # only then is a change asked for
        return before
    return _listed(answer, tuple(nodes))


def _listed(answer: wire.Nodes, nodes: tuple[SlurmNodeFacts, ...]) -> NodeListing:
    if answer.nodes is None:
        raise Malformed("node.list", "the response has no list of nodes")
    return NodeListing(nodes, answer.last_update.positive or 0)


async def node(client: SlurmClient, name: SlurmNode) -> SlurmNodeFacts:
    """Return one node; raise TargetNotFound if there is none of that name, or SlurmError."""
    operation = "node.get"
    try:
        answer = await client.call(
            operation, "slurm_get_node", {"node_name": name}, answer=wire.Nodes
        )
    except Declined as refusal:
        if refusal.error_number == 0:  # HTTP 200 with error 0 means an unknown name
            raise TargetNotFound(operation, f"Slurm has no node {name}") from refusal
        raise
    for wired in answer.nodes or ():
        if wired.name == name:
            return decode.node(wired)
    raise Malformed(operation, f"the response does not contain node {name}")


async def create(client: SlurmClient, spec: SlurmNodeSpec) -> Creation:
    """Create an external node; it is IDLE at once and survives restarts of slurmctld.

    Raises:
        Declined: `gres` without `gres_conf`, an unknown topology, or the node table is full
            (MaxNodeCount).
        TooOld: the server has only data parser v0.0.43, which cannot create nodes.
        LostReply: it may have been created; then another `create` returns EXISTS.
        SlurmError: it was not created for another reason.
    """
    operation = "node.create"
    body = {"node_conf": encode.node_conf(spec)}
    try:
        await client.call(operation, "slurm_post_new_node", body=body, answer=Answer)
    except Declined as refusal:
        if refusal.error_number == NODE_EXISTS:
            return Creation.EXISTS
        raise
    except Unavailable as error:
        if error.error_number == GENERIC:  # an unknown key; 1800 if slurmctld is down
            raise Declined(
                operation, error.words, status=error.status, error_number=GENERIC
            ) from error
        raise
    return Creation.CREATED


async def delete(client: SlurmClient, name: SlurmNode) -> Deletion:
    """Delete a node.

    First remove it from the node lists of pending jobs: an update of a job that names a deleted
    node needs a stand-in (`bridge.slurm.updating`).
    """
    try:
        await client.call(
            "node.delete",
            "slurm_delete_node",
            {"node_name": name},
            answer=Answer,
            is_repeatable=True,
        )
    except Declined as refusal:
        if refusal.error_number == NODES_BUSY:
            return Deletion.BUSY
        if refusal.error_number == INVALID_NODE_NAME:
            return Deletion.NO_SUCH_NODE
        raise
    return Deletion.DELETED


async def drain(client: SlurmClient, name: SlurmNode, reason: str) -> None:
    """Drain a node: running jobs finish and no others start."""
    await _update(client, "node.drain", name, {"state": ["DRAIN"], "reason": reason})


async def undrain(client: SlurmClient, names: Sequence[SlurmNode]) -> None:
    """Revert `drain` and clear its reason, even while jobs run; harmless if not drained.

    No job starts on one of the nodes before all of them take jobs: slurmctld changes them under one
    lock.

    Raises:
        TargetNotFound: one of them does not exist; the others may have been changed.
        SlurmError: it is not known which of them were changed.
    """
    changes = {"name": list(names), "state": ["UNDRAIN"]}
    with _known("node.undrain", " or ".join(names)):
        await client.call("node.undrain", "slurm_post_nodes", body=changes, answer=Answer)


async def down(client: SlurmClient, name: SlurmNode, reason: str) -> None:
    """Declare a node lost: its jobs end as NODE_FAIL at once."""
    await _update(client, "node.down", name, {"state": ["DOWN"], "reason": reason})


async def resume(client: SlurmClient, name: SlurmNode) -> None:
    """Revert `down`.

    Raises:
        Declined: the node is neither down nor drained (2180), or is NOT_RESPONDING.
    """
    await _update(client, "node.resume", name, {"state": ["RESUME"]})


async def set_features(client: SlurmClient, name: SlurmNode, features: Sequence[str]) -> None:
    """Replace a node's features.

    Partitions defined by a NodeSet notice only when a node is created or deleted, or when slurmctld
    restarts.
    """
    written = list(features) or [""]  # an empty list would change nothing
    changes = {"features": written, "features_act": written}
    await _update(client, "node.set_features", name, changes)


async def set_address(client: SlurmClient, name: SlurmNode, address: str) -> None:
    """Replace a node's NodeAddr."""
    await _update(client, "node.set_address", name, {"address": [address]})


async def set_topology(client: SlurmClient, name: SlurmNode, topology: str) -> None:
    """Move a node in the running topology; "" removes it.

    Raises:
        Declined: there is no such switch or block (2178).
    """
    await _update(client, "node.set_topology", name, {"topology_str": topology})


async def set_weight(client: SlurmClient, name: SlurmNode, weight: int) -> None:
    """Replace a node's weight."""
    await _update(client, "node.set_weight", name, {"weight": weight})


async def reservation(client: SlurmClient, name: str) -> NodeReservation | None:
    """Return a reservation; None if there is none of that name.

    All reservations are read, as they are few: slurmrestd answers the same for a missing one as for other errors.

    Raises:
        Malformed: it has no end, or its nodes cannot be read.
        SlurmError: they could not be read.
    """
    operation = "reservation.list"
    answer = await client.call(operation, "slurm_get_reservations", answer=wire.Reservations)
    wired = next((wired for wired in answer.reservations or () if wired.name == name), None)
    if wired is None:
        return None
    start, end = decode.moment(wired.start_time), decode.moment(wired.end_time)
    if start is None or end is None:
        raise Malformed(operation, f"reservation {name} has no beginning or no end")
    try:
        reserved = hostlist.expand(wired.node_list)
    except ValueError as error:
        raise Malformed(operation, f"nodes of reservation {name}: {error}") from error
    return NodeReservation(
        name=name, start=start, end=end, nodes=frozenset(reserved), flags=frozenset(wired.flags)
    )


async def reserve(client: SlurmClient, wanted: NodeReservation) -> None:
    """Create a reservation that root may use, or change the one of that name.

    Its length is rounded to minutes.

    Raises:
        Declined: Slurm does not know one of the nodes (2018), another reservation is in the way, or
            it began too long ago. If Slurm does not know one of the flags (9207), it may have been
            created nevertheless.
        LostReply: it may have been created.
        SlurmError: it was not created for another reason.
    """
    minutes = round((wanted.end - wanted.start).total_seconds() / 60)
    body = {
        "name": wanted.name,
        "users": ["root"],
        "node_list": sorted(wanted.nodes),
        "flags": sorted(wanted.flags),
        "start_time": {"set": True, "number": int(wanted.start.timestamp())},
        "duration": {"set": True, "number": minutes},
    }
    await client.call("reservation.save", "slurm_post_reservation", body=body, answer=Answer)


async def extend_reservation(client: SlurmClient, name: str, reserved: Collection[str]) -> None:
    """Replace the nodes of a reservation, which may have begun; Slurm ignores unknown nodes.

    Raises:
        Declined: another reservation is in the way; this one is unchanged.
        SlurmError: it may have been changed.
    """
    body = {"name": name, "node_list": sorted(reserved)}
    await client.call("reservation.extend", "slurm_post_reservation", body=body, answer=Answer)


async def unreserve(client: SlurmClient, name: str) -> None:
    """Delete a reservation; succeed if there is none of that name.

    Raises:
        Declined: a job uses it.
        SlurmError: it was not deleted, or that is not known.
    """
    try:
        await client.call(
            "reservation.delete",
            "slurm_delete_reservation",
            {"reservation_name": name},
            answer=Answer,
            is_repeatable=True,
        )
    except (TargetNotFound, Declined) as error:
        if error.error_number != NO_RESERVATION:
            raise


async def _update(
    client: SlurmClient, operation: str, name: SlurmNode, changes: Mapping[str, object]
) -> None:
    at = {"node_name": name}
    with _known(operation, name):
        await client.call(operation, "slurm_post_node", at, body=changes, answer=Answer)


@contextmanager
def _known(operation: str, names: str) -> Iterator[None]:
    try:
        yield
    except Declined as refusal:
        if refusal.error_number != INVALID_NODE_NAME:
            raise
        raise TargetNotFound(
            operation,
            f"Slurm has no node {names}",
            status=refusal.status,
            error_number=INVALID_NODE_NAME,
        ) from refusal
