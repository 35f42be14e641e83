"""A Slurm in pods as the API server has it: a Controller, what belongs to it, and pods."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from bridge.domain.diagnosis.queue import QueuedJob
from bridge.domain.model.jobs import JobPhase
from slurmoperator.daemons.part import PARTS, WatchedPart
from slurmoperator.diagnosis import parts
from slurmoperator.diagnosis.parts import NamespaceObjects, SlurmInPods
from slurmoperator.nodesets import nodeset, worker_pods
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmruntime.kube.apply.custom import CustomObject
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import JobId, SlurmNode
from tests.slurmoperator.examples import manifest

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOLD = {"observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}
ALL_IS_WELL = (("Accepted", "True", "Accepted", ""), ("Ready", "True", "AllReady", ""))
Told = tuple[str, str, str, str]
"""Type, status, reason and message of a condition; one without a status was never told."""


def part(kind: str, name: str = "site", *told: Told, **spec: Any) -> WatchedPart:
    """An object of the control plane; all is well with it unless it is told otherwise."""
    return PARTS[kind].read(_bytes(_made(kind, name, told, spec)))


def node_set(
    name: str = "gpu", *told: Told, status: dict[str, Any] | None = None, **spec: Any
) -> WatchedNodeSet:
    """A NodeSet of two workers; likewise."""
    made = _made("NodeSet", name, told, {"volumeClaimTemplates": ..., "template": None, **spec})
    made["status"] |= {"desired": 2, "readyReplicas": 2, **(status or {})}
    return nodeset.NODE_SET.read(_bytes(made))


def pod(
    daemon: str, of: str, name: str, *, image: str = "", ready: bool = True, **more: Any
) -> WorkerPodObject:
    """A pod of one of the daemons, on node `machine`."""
    image = image or f"registry.example.org:5000/{daemon}:26.05"
    conditions = [{"type": "Ready", "status": str(ready)}, *more.pop("conditions", ())]
    statuses = [{"name": daemon, "image": image, **more.pop("container", {})}]
    metadata = {
        "name": name,
        "namespace": "slurm",
        "uid": f"uid-{name}",
        "labels": {
            "app.kubernetes.io/name": daemon,
            "app.kubernetes.io/instance": of,
            "slinky.slurm.net/cluster": "site",
            "nodeset.slinky.slurm.net/pod-protect": "true",
        },
        "ownerReferences": [{"kind": "NodeSet", "name": of, "controller": True}],
        **more.pop("metadata", {}),
    }
    status = {"phase": "Running", "conditions": conditions, "containerStatuses": statuses}
    return worker_pods.WORKER_PODS.read(
        _bytes(
            {
                "metadata": metadata,
                "spec": {"nodeName": "machine", "hostname": name},
                "status": status,
            }
        )
    )


def told(*states: str, reason: str = "") -> list[dict[str, str]]:
    """What a worker's pod is told of its Slurm node."""
    return [
        {"type": f"SlurmNodeState{state}", "status": "True", "message": reason} for state in states
    ]


def job(number: int, *nodes: str) -> QueuedJob:
    """A job that runs on these nodes; one without any waits."""
    phase = JobPhase.RUNNING if nodes else JobPhase.WAITING
    return QueuedJob(
        id=JobId(number), user="alice", phase=phase, nodes=tuple(map(SlurmNode, nodes))
    )


def node(name: str, *states: str, reason: str = "") -> SlurmNodeFacts:
    """A node as Slurm shows it."""
    return SlurmNodeFacts(name=SlurmNode(name), states=frozenset(states), reason=reason)


def slurm(*objects: Any, **asked: Any) -> SlurmInPods:
    """The Slurm of Controller site, with these objects and pods, and what Slurm says if it is asked."""
    watched = [item for item in objects if isinstance(item, CustomObject)]
    found = NamespaceObjects(
        parts=[each for each in watched if each.kind != "NodeSet"],
        node_sets=[each for each in watched if each.kind == "NodeSet"],
        pods=[item for item in objects if isinstance(item, WorkerPodObject)],
    )
    return SlurmInPods(
        namespace="slurm",
        name="site",
        objects=parts.select(found, "slurm", "site"),
        now=NOW,
        **asked,
    )


def _made(kind: str, name: str, told: tuple[Told, ...], spec: dict[str, Any]) -> dict[str, Any]:
    generation = spec.pop("generation", 1)
    made = manifest(kind, name, **spec)
    made["metadata"] |= {"uid": f"uid-{kind}-{name}", "generation": generation}
    by_type = {each[0]: each for each in (*ALL_IS_WELL, *told)}
    made["status"] = {
        "conditions": [
            {"type": kind, "status": status, "reason": reason, "message": message, **TOLD}
            for kind, status, reason, message in by_type.values()
            if status
        ]
    }
    return made


def _bytes(made: dict[str, Any]) -> bytes:
    return msgspec.json.encode(made)
