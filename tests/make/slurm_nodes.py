"""Slurm's nodes in memory, with what was measured of them: partitions follow features only when a node comes or goes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slurmclient import errors
from slurmruntime.slurm.errors import INVALID_NODE_NAME, NODE_EXISTS, NODES_BUSY


@dataclass(slots=True, kw_only=True)
class Node:
    """A node as slurmctld has it."""

    name: str
    states: set[str] = field(default_factory=lambda: {"IDLE", "EXTERNAL"})
    cpus: int = 4
    memory_mib: int = 4096
    features: Sequence[str] = ()
    address: str = "10.0.0.1"
    topology: str = ""
    weight: int = 1
    reason: str = ""
    gres: str = ""
    partitions: Sequence[str] = ()

    @property
    def takes_jobs(self) -> bool:
        """Whether a job may start there."""
        return not self.states & {"DRAIN", "DOWN", "FAIL", "FUTURE"}

    def wired(self, *, alloc_cpus: int) -> dict[str, Any]:
        return {
            "name": self.name,
            "state": sorted(self.states),
            "cpus": self.cpus,
            "real_memory": self.memory_mib,
            "features": list(self.features),
            "address": self.address,
            "alloc_cpus": alloc_cpus,
            "topology": self.topology,
            "weight": self.weight,
            "reason": self.reason,
            "reason_set_by_user": "root" if self.reason else "",
            "gres": self.gres,
            "partitions": list(self.partitions),
        }


class Nodes:
    """The table of nodes, and the partitions that are made of their features."""

    def __init__(self, nodes: Sequence[Node], *, partitions: Sequence[str]) -> None:
        self._partitions = partitions
        self.by_name = {node.name: node for node in nodes}
        self.renew_partitions()

    def renew_partitions(self) -> None:
        """Look at every node's features, as slurmctld does when a node is created or deleted."""
        for node in self.by_name.values():
            node.partitions = [
                partition for partition in self._partitions if partition in node.features
            ]

    def find(self, operation: str, name: str) -> Node:
        if name not in self.by_name:
            words = "Invalid node name specified"
            raise errors.Declined(operation, words, error_number=INVALID_NODE_NAME)
        return self.by_name[name]

    def create(self, operation: str, line: str) -> None:
        """Create an external node from its line of slurm.conf."""
        said = dict(part.split("=", 1) for part in line.split(" "))
        if said["NodeName"] in self.by_name:
            raise errors.Declined(operation, "exists", error_number=NODE_EXISTS)
        self.by_name[said["NodeName"]] = Node(
            name=said["NodeName"],
            states={"FUTURE"} if said["State"] == "FUTURE" else {"IDLE", "EXTERNAL"},
            cpus=int(said["CPUs"]),
            memory_mib=int(said["RealMemory"]),
            features=said.get("Feature", "").split(","),
            address=said["NodeAddr"],
            topology=said.get("Topology", ""),
            weight=int(said.get("Weight", 1)),
        )
        self.renew_partitions()

    def delete(self, operation: str, name: str, *, is_busy: bool) -> None:
        self.find(operation, name)
        if is_busy:
            raise errors.Declined(operation, "busy", error_number=NODES_BUSY)
        del self.by_name[name]
        self.renew_partitions()

    def update(self, operation: str, name: str, changes: Mapping[str, Any]) -> None:
        node = self.find(operation, name)
        node.features = [feature for feature in changes.get("features", node.features) if feature]
        node.address = changes.get("address", [node.address])[0]
        node.topology = changes.get("topology_str", node.topology)
        node.weight = changes.get("weight", node.weight)
        match changes.get("state"):
            case ["DRAIN"]:
                node.states.add("DRAIN")
                node.reason = changes["reason"]
            case ["DOWN"]:
                node.states.add("DOWN")
                node.reason = changes["reason"]
            case ["UNDRAIN"]:
                node.states.discard("DRAIN")
                node.reason = ""
            case ["RESUME"]:
                if node.takes_jobs:
                    raise errors.Declined(operation, "neither down nor drained", error_number=2180)
                node.states -= {"DRAIN", "DOWN"}
                node.reason = ""
            case None:
                pass
            case unknown:
                raise NotImplementedError(unknown)
