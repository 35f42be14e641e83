"""NodeSets and pods as several tests of this folder write them."""

from typing import Any

import msgspec

from slurmoperator.nodesets import worker_pods
from tests.make.apiserver import Manifest
from tests.slurmoperator.nodesets.peers import Operator, names_of, node_set

LABELS = {"gpu": "yes"}
"""Of the Kubernetes nodes that have a worker each."""
BOUND = {"nodeName": "machine"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def machine(name: str, **spec: Any) -> Manifest:
    """A Kubernetes node that is to have a worker."""
    meta = {
        "name": name,
        "uid": name,
        "labels": LABELS,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"kind": "Node", "metadata": meta, "spec": spec}


def on_nodes(**changes: Any) -> Manifest:
    """A NodeSet with a worker on each of them."""
    template = {"spec": {"nodeSelector": LABELS}}
    return node_set(**{"replicas": 1, "scalingMode": "DaemonSet", "template": template, **changes})


def container(image: str) -> Manifest:
    """The part of a specification that names an image."""
    return {"slurmd": {"image": image}}


def update(operator: Operator, image: str = "slurmd:2") -> None:
    """Give its workers another template."""
    operator.api.change("NodeSet", "gpu", spec=container(image))


def current(operator: Operator) -> list[str]:
    """The workers that have the template as it is."""
    found = operator.api.status("gpu")["nodeSetHash"]
    pods = operator.api.pods
    label = "controller-revision-hash"
    return [n for n in names_of(pods) if found == pods[n]["metadata"]["labels"][label]]


def pod(metadata: Any = None, **parts: Any) -> worker_pods.WorkerPodObject:
    """A worker's pod as the API server has it."""
    meta = {"name": "gpu-0", "namespace": "slurm", "uid": "u", **(metadata or {})}
    return worker_pods.WORKER_PODS.read(msgspec.json.encode({"metadata": meta, **parts}))
