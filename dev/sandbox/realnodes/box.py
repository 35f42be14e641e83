"""A real node as a part of the sandbox: its files, its start, and its readiness."""

import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from typing_extensions import override

from sandbox import identity, kubeconfig, kubernetes, pki
from sandbox.api import Api
from sandbox.assets import Asset
from sandbox.errors import SandboxError
from sandbox.instance import Instance
from sandbox.kwok import GPU_RESOURCE
from sandbox.part import Part
from sandbox.realnodes import cgroups, configuration, images, privileges
from sandbox.realnodes.cgroups import Layout
from sandbox.realnodes.configuration import NodeShape
from sandbox.realnodes.network import Network
from sandbox.slurm_conf import PARTITION
from slurmruntime.model.objects import JsonDict, JsonObject
from slurmruntime.values import names

KUBELET_PORT = 10250
RELAY = "relay"
_HERE = Path(__file__).parent
_PROGRAMS = ("kubelet", "kube-proxy", "fake-gpus", "dra-test-driver", "pause")
DRA_DRIVER = "test-driver.cdi.k8s.io"
"""The name of Kubernetes' DRA test driver."""
_READY_TIMEOUT_S = 90
_POLL_S = 0.1
_PROBE_S = 0.5


def prepare(instance: Instance, kube: Asset, node: Asset, network: Network, now: datetime) -> None:
    """Write the files of every real node, and the images that it starts with.

    Raises:
        SandboxError: the Kubernetes programs lack some of a node's.
    """
    if absent := [name for name in _PROGRAMS if not (kube.bin / name).exists()]:
        raise SandboxError(
            f"--real-nodes needs {', '.join(absent)}, missing from {kube.bin}: unset SANDBOX_KUBE,"
            " or name a folder that has them"
        )
    if node.root is None:
        raise SandboxError(f"{node.bin} has no root/ beside it: unset SANDBOX_NODE")
    instance.shared.mkdir(exist_ok=True)
    folder = image_folder(instance)
    folder.mkdir(parents=True, exist_ok=True)
    images.archive(folder / "pause.tar", *images.pause(kube.bin / "pause"))
    busybox = node.root / "usr" / "bin" / "busybox"
    listed = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True)
    images.archive(folder / "busybox.tar", *images.busybox(busybox, listed.stdout.split()))
    layout = cgroups.layout()
    for index, name in enumerate(instance.options.real_node_names):
        shape = NodeShape(
            name=name,
            index=index,
            nodes=instance.options.real_nodes,
            gpus=instance.options.real_gpus,
            dra=instance.options.real_dra,
        )
        _write(instance, shape, network, layout, now)


def image_folder(instance: Instance) -> Path:
    """Return the folder whose images every node imports when it starts."""
    return instance.root / "nodes" / "images"


def home(instance: Instance, name: str) -> Path:
    """Return a node's folder: its configuration, and its disk, which outlives a reboot."""
    return instance.root / "nodes" / name


def _write(
    instance: Instance, shape: NodeShape, network: Network, layout: Layout, now: datetime
) -> None:
    etc = home(instance, shape.name) / "etc"
    init = (_HERE / "init.sh").read_text()
    contents = configuration.files(
        shape,
        network,
        layout,
        may_lower_oom_score=privileges.SYS_RESOURCE in privileges.effective(),
        init=init,
    )
    for path, text in contents.items():
        (etc / path).parent.mkdir(parents=True, exist_ok=True)
        (etc / path).write_text(text)
    authority = kubernetes.authority(instance)
    (etc / "kubernetes" / "ca.crt").write_bytes(authority.certificate)
    for file, user, groups in (
        ("kubelet", f"system:node:{shape.name}", ("system:nodes",)),
        ("proxy", "system:kube-proxy", ()),
    ):
        kubeconfig.with_certificate(
            etc / "kubernetes" / f"{file}.kubeconfig",
            server=f"https://{network.gateway}:{instance.ports['apiserver']}",
            ca=authority.certificate,
            client=pki.issue(authority, name=user, groups=groups, now=now),
        )


def parts(
    instance: Instance, kube: Asset, node: Asset, network: Network, daemons: Asset | None = None
) -> tuple[Part, ...]:
    """Return the relay to the control planes, and the nodes.

    Args:
        instance: the sandbox.
        kube: Kubernetes' programs.
        node: the nodes' root.
        network: the nodes' network.
        daemons: Slurm's programs, if every node has a slurmd, too.
    """
    layout = cgroups.layout()
    programs = {
        "PROGRAMS": str(kube.bin),
        "TREE": str(node.root),
        "SLURM": str(daemons.bin.parent) if daemons else "",
    }
    return (
        _relay(instance, network),
        *(
            _box(instance, programs, network, layout, index)
            for index in range(instance.options.real_nodes)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodePart(Part):
    layout: Layout
    group: str

    @override
    def main_pid(self, pid: int) -> int:
        return init_of(pid)

    @override
    def freeze(self) -> bool:
        cgroups.freeze(self.layout, self.group, frozen=True)
        return True

    @override
    def thaw(self) -> None:
        cgroups.freeze(self.layout, self.group, frozen=False)


def _relay(instance: Instance, network: Network) -> Part:
    port = instance.ports["apiserver"]
    ports = (port, instance.ports["slurmctld"])[: 1 + instance.options.hybrid]
    command = (sys.executable, "-m", "sandbox.realnodes.relay", network.gateway)
    return Part(
        name=RELAY,
        argv=(*command, *map(str, ports)),
        env={"PYTHONPATH": str(_HERE.parents[1])},
        identity=identity.caller(),
        folder=instance.kube,
        port=port,
        answers=partial(_listens, network.gateway, port),
        needs=("apiserver",),
        once_up=partial(_create_objects, instance, network),
        restarts=True,
    )


def _box(
    instance: Instance,
    programs: Mapping[str, str],
    network: Network,
    layout: Layout,
    index: int,
) -> Part:
    name = instance.options.real_node_names[index]
    group = group_of(network, name)
    return _NodePart(
        layout=layout,
        group=group,
        name=name,
        argv=("/bin/sh", str(_HERE / "box.sh")),
        env={
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            **programs,
            "HOME_FOLDER": str(home(instance, name)),
            "IMAGES": str(image_folder(instance)),
            "SHARED": str(instance.shared),
            "NAME": name,
            "MEMORY_KIB": str(instance.options.real_memory_mib * 1024),
            "CABLE": network.cable(index),
            "BRIDGE": network.bridge,
            "CGROUPS": " ".join(map(str, layout.groups(group))),
        },
        identity=identity.ROOT,
        folder=home(instance, name),
        port=KUBELET_PORT,
        answers=partial(_listens, network.address(index), KUBELET_PORT),
        needs=(RELAY, "controller-manager"),
        prepare=partial(_reset_groups, layout, group),
        once_up=partial(_hand_to_slurm, instance, name),
        data=(home(instance, name) / "upper", home(instance, name) / "disk"),
        start_timeout_s=120,
        advice=f"{home(instance, name)}/disk/log has the logs of its kubelet and containerd",
    )


def group_of(network: Network, name: str) -> str:
    """Return the name of a node's cgroups."""
    return f"{cgroups.PREFIX}{network.id}-{name}"


def init_of(pid: int) -> int:
    """Return the box's own process 1, as the host numbers it; `pid` until there is one."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return pid
    return int(children[0]) if children else pid


def _reset_groups(layout: Layout, group: str) -> None:
    """Create the node's cgroups, without the pods' groups of an earlier run."""
    cgroups.remove(layout, group)
    cgroups.create(layout, group)


def _listens(address: str, port: int) -> bool:
    with socket.socket() as sock:
        sock.settimeout(_PROBE_S)
        return sock.connect_ex((address, port)) == 0


def _create_objects(instance: Instance, network: Network) -> None:
    """Create the objects for a cluster with real nodes: rights, and the endpoint of Service `kubernetes`."""
    rights = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    group = "rbac.authorization.k8s.io"
    with Api(instance.kubeconfig) as api:
        api.create(
            rights,
            {
                "metadata": {"name": "sandbox:apiserver-kubelet"},
                "roleRef": {
                    "apiGroup": group,
                    "kind": "ClusterRole",
                    "name": "system:kubelet-api-admin",
                },
                "subjects": [{"apiGroup": group, "kind": "User", "name": "kube-apiserver"}],
            },
        )
        api.create(
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            {
                "metadata": {
                    "name": "kubernetes",
                    "labels": {"kubernetes.io/service-name": "kubernetes"},
                },
                "addressType": "IPv4",
                "ports": [
                    {"name": "https", "port": instance.ports["apiserver"], "protocol": "TCP"}
                ],
                "endpoints": [{"addresses": [network.gateway], "conditions": {"ready": True}}],
            },
        )


def _hand_to_slurm(instance: Instance, name: str) -> None:
    """Label a node for Slurm once it is Ready and has reported its size, devices included.

    Raises:
        SandboxError: it is not ready for that in time.
    """
    options = instance.options
    hybrid = options.hybrid
    label = names.HYBRID_NODE_LABEL if hybrid else names.EXTERNAL_NODE_LABEL
    deadline_s = time.monotonic() + _READY_TIMEOUT_S
    with Api(instance.kubeconfig) as api:
        while missing := lacking(
            next((node for node in _nodes(api) if node["metadata"]["name"] == name), None),
            _sliced(api, name) if options.real_dra else 0,
            gpus=options.real_gpus,
            dra=options.real_dra,
        ):
            if time.monotonic() > deadline_s:
                raise SandboxError(
                    f"{name} still lacks {missing} after {_READY_TIMEOUT_S} s:"
                    f" see the logs in {home(instance, name)}/disk/log"
                )
            time.sleep(_POLL_S)
        api.patch(
            f"/api/v1/nodes/{name}",
            {
                "metadata": {
                    "labels": {label: "true"},
                    "annotations": {} if hybrid else {names.PARTITIONS_ANNOTATION: PARTITION},
                }
            },
        )


def lacking(node: JsonObject | None, sliced: int, *, gpus: int, dra: int) -> str:
    """Return what a node still lacks before Slurm may have it; "" if nothing.

    Args:
        node: the Node object, if it exists.
        sliced: the number of devices that its driver has published.
        gpus: the number that its device plugin should offer.
        dra: the number that its driver should publish.
    """
    if node is None:
        return "its Node object"
    if not kubernetes.takes_pods(node):
        return "readiness: it is not Ready, or has the taints of a new node"
    if _gpus(node) != gpus:
        return f"devices: its plugin offers {_gpus(node)}, expected {gpus}"
    if sliced != dra:
        return f"devices: its ResourceSlices have {sliced}, expected {dra}"
    return ""


def _gpus(node: JsonObject) -> int:
    return int(node["status"].get("allocatable", {}).get(GPU_RESOURCE, 0))


def _sliced(api: Api, node: str) -> int:
    """Return how many devices the DRA driver has published for a node."""
    slices = api.get(
        "/apis/resource.k8s.io/v1/resourceslices", fieldSelector=f"spec.nodeName={node}"
    )
    return sum(len(item["spec"].get("devices", ())) for item in slices["items"])


def _nodes(api: Api) -> list[JsonDict]:
    nodes: list[JsonDict] = api.get("/api/v1/nodes")["items"]
    return nodes
