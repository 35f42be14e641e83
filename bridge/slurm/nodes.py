"""Slurm nodes through slurmrestd.

External nodes have no slurmd: Slurm never pings them and never takes them down by itself. A node that says NOT_RESPONDING
got there because something tried to reach its slurmd (a signal, suspend, preemption with grace); nothing but `delete` and
`create` clears it. The state FUTURE is never set: it costs the node its EXTERNAL for good.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.domain.ids import SlurmNode
from bridge.domain.model.nodes import SlurmNodeFacts, SlurmNodeSpec
from bridge.slurm import decode, encode, wire
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import (
    GENERIC,
    INVALID_NODE_NAME,
    NODE_EXISTS,
    NODES_BUSY,
    Malformed,
    NotFound,
    Rejected,
    Unavailable,
)


class Creation(enum.Enum):
    """What came of creating a node."""

    CREATED = "created"
    EXISTS = "exists"
    """A node of that name is there already, of whatever kind and size."""


class Deletion(enum.Enum):
    """What came of deleting a node."""

    DELETED = "deleted"
    BUSY = "busy"
    """Jobs run there, or a reservation names it: drain it and try later."""
    NO_SUCH_NODE = "no such node"


@dataclass(frozen=True, slots=True)
class NodeListing:
    """All nodes, as Slurm listed them."""

    nodes: tuple[SlurmNodeFacts, ...]
    as_of: int
    """Seconds of slurmctld's clock; 0: it did not say."""


async def listing(client: SlurmClient) -> tuple[SlurmNodeFacts, ...]:
    """Read all nodes; 1.6 kB each."""
    return (await renewed(client, None)).nodes


async def renewed(client: SlurmClient, before: NodeListing | None) -> NodeListing:
    """Read all nodes; where slurmctld says that none has changed since, `before` itself comes back.

    That answer is empty and costs slurmrestd 0.3 ms, a list of 100 nodes 12. slurmctld compares with the second before the
    one that is named, so a change in the very second of a list is not missed; a clock that was set back would hide some.
    """
    if before is None or not before.as_of:
        answer = await client.call("node.list", "GET", "/nodes/", answer=wire.Nodes)
    else:
        changed = await client.call_if_changed(
            "node.list", "/nodes/", since=before.as_of, answer=wire.Nodes
        )
        if changed is None:
            return before
        answer = changed
    if answer.nodes is None:
        raise Malformed("node.list", "the answer has no list of nodes")
    return NodeListing(tuple(map(decode.node, answer.nodes)), answer.last_update.positive or 0)


async def node(client: SlurmClient, name: SlurmNode) -> SlurmNodeFacts:
    """Read one node.

    Raises:
        NotFound: there is none of that name.
        SlurmError: it could not be read.
    """
    operation = "node.get"
    try:
        answer = await client.call(operation, "GET", f"/node/{name}", answer=wire.Nodes)
    except Rejected as refusal:
        if refusal.error_number == 0:  # HTTP 200, error 0: that is how an unknown name is said
            raise NotFound(operation, f"Slurm has no node {name}") from refusal
        raise
    for wired in answer.nodes or ():
        if wired.name == name:
            return decode.node(wired)
    raise Malformed(operation, f"the answer does not have node {name}")


async def create(client: SlurmClient, spec: SlurmNodeSpec) -> Creation:
    """Create an external node; it is IDLE at once, and kept across restarts of slurmctld.

    Raises:
        Rejected: `gres` without `gres_conf`, a topology that is not there, the node table is full (MaxNodeCount).
        TooOld: the server has only data parser v0.0.43, which cannot create nodes.
        LostReply: it may have been created; `create` again says EXISTS then.
        SlurmError: it was not created, for another reason.
    """
    operation = "node.create"
    body = {"node_conf": encode.node_conf(spec)}
    try:
        await client.call(operation, "POST", "/new/node/", body=body, answer=wire.Answer)
    except Rejected as refusal:
        if refusal.error_number == NODE_EXISTS:
            return Creation.EXISTS
        raise
    except Unavailable as error:
        if error.error_number == GENERIC:  # an unknown key; with slurmctld down it says 1800 here
            raise Rejected(
                operation, error.words, status=error.status, error_number=GENERIC
            ) from error
        raise
    return Creation.CREATED


async def delete(client: SlurmClient, name: SlurmNode) -> Deletion:
    """Delete a node. A pending job that names it can never be updated again: take it out of those first."""
    try:
        await client.call("node.delete", "DELETE", f"/node/{name}", answer=wire.Answer)
    except Rejected as refusal:
        match refusal.error_number:
            case number if number == NODES_BUSY:
                return Deletion.BUSY
            case number if number == INVALID_NODE_NAME:
                return Deletion.NO_SUCH_NODE
            case _:
                raise
    return Deletion.DELETED


async def drain(client: SlurmClient, name: SlurmNode, reason: str) -> None:
    """Let running jobs finish and start no others."""
    await _update(client, "node.drain", name, {"state": ["DRAIN"], "reason": reason})


async def undrain(client: SlurmClient, name: SlurmNode) -> None:
    """Take `drain` back, its reason too, also while jobs run; fine for a node that is not drained."""
    await _update(client, "node.undrain", name, {"state": ["UNDRAIN"]})


async def down(client: SlurmClient, name: SlurmNode, reason: str) -> None:
    """Declare a node lost: its jobs end as NODE_FAIL at once."""
    await _update(client, "node.down", name, {"state": ["DOWN"], "reason": reason})


async def resume(client: SlurmClient, name: SlurmNode) -> None:
    """Take `down` back.

    Raises:
        Rejected: the node is neither down nor drained (2180), or is NOT_RESPONDING.
    """
    await _update(client, "node.resume", name, {"state": ["RESUME"]})


async def set_features(client: SlurmClient, name: SlurmNode, features: Sequence[str]) -> None:
    """Replace its features. Partitions made of a NodeSet notice only when a node is created or deleted, or slurmctld restarts."""
    written = list(features) or [""]  # an empty list would change nothing
    changes = {"features": written, "features_act": written}
    await _update(client, "node.set_features", name, changes)


async def set_address(client: SlurmClient, name: SlurmNode, address: str) -> None:
    """Replace its NodeAddr."""
    await _update(client, "node.set_address", name, {"address": [address]})


async def set_topology(client: SlurmClient, name: SlurmNode, topology: str) -> None:
    """Move it in the topology, live; "" takes it out.

    Raises:
        Rejected: there is no such switch or block (2178).
    """
    await _update(client, "node.set_topology", name, {"topology_str": topology})


async def set_weight(client: SlurmClient, name: SlurmNode, weight: int) -> None:
    """Replace its weight."""
    await _update(client, "node.set_weight", name, {"weight": weight})


async def _update(
    client: SlurmClient, operation: str, name: SlurmNode, changes: Mapping[str, object]
) -> None:
    try:
        await client.call(operation, "POST", f"/node/{name}", body=changes, answer=wire.Answer)
    except Rejected as refusal:
        if refusal.error_number == INVALID_NODE_NAME:
            raise NotFound(
                operation,
                f"Slurm has no node {name}",
                status=refusal.status,
                error_number=INVALID_NODE_NAME,
            ) from refusal
        raise
