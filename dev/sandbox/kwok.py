"""KWOK plays the kubelets: it starts, ends and stops pods as `stages/*.yaml` say.

Annotations on a pod, all under `sandbox.slurm-bridge.dev/`:

- `run-seconds`: it ends that long after its start; without it, it runs until it is deleted;
- `exit-code` (default 0) and `reason` (such as OOMKilled): how its containers end; `exit-code.NAME` for one container;
- `stop-seconds` (default 1): how long its containers take to stop when it is deleted, at most the grace period;
- `waiting-reason` (such as ImagePullBackOff): it never starts.

On a node: `kubelet: dead` keeps it from being made Ready again.
"""

import time
from functools import partial
from pathlib import Path

from sandbox import identity, kubernetes, probes
from sandbox.api import Api
from sandbox.errors import SandboxError
from sandbox.instance import Instance
from sandbox.part import Part
from sandbox.slurm_conf import PARTITION
from slurmruntime.model.objects import JsonDict
from slurmruntime.values import names

STAGES = Path(__file__).parent / "stages"
GPU_RESOURCE = "nvidia.com/gpu"
MARK = {"kwok.x-k8s.io/node": "fake"}
"""The annotation of a node whose kubelet KWOK plays."""
_PODS_PER_NODE = 500
_NODES_READY_TIMEOUT_S = 60
_NODE_READY_TIMEOUT_S = 0.1
"""Additional time per node: a thousand take KWOK and the controller manager a while."""
_POLL_S = 0.05
_LISTED_PER_S = 1000
"""Keeps polling many nodes from delaying the API server in making them ready."""


def part(instance: Instance, programs: Path) -> Part:
    """Return KWOK; once it is up, the nodes are created."""
    return Part(
        name="kwok",
        env=kubernetes.GO,
        argv=(
            str(programs / "kwok"),
            f"--kubeconfig={instance.kube / 'kwok.kubeconfig'}",
            *(f"--config={stage}" for stage in sorted(STAGES.glob("*.yaml"))),
            *_nodes_managed(instance),
            "--cidr=10.244.0.1/16",
            "--node-ip=127.0.0.1",
            "--node-name=localhost",
            f"--node-port={instance.ports['kwok']}",
            f"--server-address=127.0.0.1:{instance.ports['kwok']}",
            f"--tls-cert-file={instance.kube / 'server.crt'}",
            f"--tls-private-key-file={instance.kube / 'server.key'}",
            "--node-lease-duration-seconds=40",
            "--v=WARN",
        ),
        identity=identity.servers(),
        folder=instance.kube,
        port=instance.ports["kwok"],
        answers=partial(probes.says_yes, f"{instance.url('kwok')}/healthz"),
        needs=("controller-manager",),  # removes the not-ready taint
        once_up=partial(_create_nodes, instance),
    )


def _nodes_managed(instance: Instance) -> tuple[str, ...]:
    """Return the flags that leave real nodes to their kubelets."""
    if not instance.options.real_nodes:
        return ("--manage-all-nodes=true",)
    ((name, value),) = MARK.items()
    return ("--manage-all-nodes=false", f"--manage-nodes-with-annotation-selector={name}={value}")


def _create_nodes(instance: Instance) -> None:
    options = instance.options
    with Api(instance.kubeconfig) as api:
        for name in options.node_names:
            api.create("/api/v1/nodes", _slurm_node(instance, name))
        if options.hybrid_name:
            api.create("/api/v1/nodes", _hybrid_node(instance))
        for name in options.plain_node_names:
            api.create("/api/v1/nodes", _node(name, size=_size(instance)))
        count = len(options.node_names) + len(options.plain_node_names)
        deadline_s = time.monotonic() + _NODES_READY_TIMEOUT_S + count * _NODE_READY_TIMEOUT_S
        while not all(kubernetes.takes_pods(node) for node in _simulated(api)):
            if time.monotonic() > deadline_s:
                raise SandboxError(f"the nodes are not ready: see {instance.log('kwok')}")
            time.sleep(max(_POLL_S, count / _LISTED_PER_S))


def _simulated(api: Api) -> list[JsonDict]:
    nodes = api.get("/api/v1/nodes")["items"]
    return [
        node for node in nodes if MARK.items() <= node["metadata"].get("annotations", {}).items()
    ]


def _slurm_node(instance: Instance, name: str) -> dict[str, object]:
    return _node(
        name,
        size={**_size(instance), GPU_RESOURCE: str(instance.options.node_gpus)},
        labels={names.EXTERNAL_NODE_LABEL: "true"},
        annotations={names.PARTITIONS_ANNOTATION: PARTITION},
    )


def _hybrid_node(instance: Instance) -> dict[str, object]:
    count = instance.options.hybrid_gpus
    devices = {GPU_RESOURCE: str(count)} if count else {}
    return _node(
        instance.options.hybrid_name,
        size={**_size(instance), **devices},
        labels={names.HYBRID_NODE_LABEL: "true"},
    )


def _size(instance: Instance) -> dict[str, str]:
    options = instance.options
    return {
        "cpu": str(options.node_cpus),
        "memory": f"{options.node_memory_mib}Mi",
        "ephemeral-storage": "100Gi",
        "pods": str(_PODS_PER_NODE),
    }


def _node(
    name: str,
    *,
    size: dict[str, str],
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                **(labels or {}),
            },
            "annotations": {**MARK, **(annotations or {})},
        },
        "status": {"capacity": size, "allocatable": size},
    }
