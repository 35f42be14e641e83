"""The configuration files of a real node's programs, as values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.realnodes.cgroups import Layout
from sandbox.realnodes.network import Network

PAUSE = "localhost/pause:1"
"""The image that holds a pod's namespaces."""
CLUSTER_DNS = "10.0.0.10"
CLUSTER_DOMAIN = "cluster.local"
CALM = {"memory.available": "100Mi", "nodefs.available": "512Mi", "imagefs.available": "512Mi"}
"""The kubelet's eviction thresholds, unless `sandbox node pressure` changes them."""
PRESSURES: Mapping[str, Mapping[str, str]] = {
    "none": {},
    "memory": {},
    "disk": {"nodefs.available": "99.9%"},
    "pid": {"pid.available": "99.99%"},
}
"""How each kind of pressure changes the thresholds. Memory is really used up; for disk and process ids
the threshold is raised to nearly everything.
"""
_ACCOUNTS = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/sh\n"
_GROUP = "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """One real node: its place among the others, and what it offers."""

    name: str
    index: int
    nodes: int
    """The number of real nodes."""
    gpus: int
    dra: int = 0
    """Devices for resource claims."""


def kubelet(pressure: str = "none") -> dict[str, object]:
    """Return the kubelet's configuration, KubeletConfiguration v1beta1."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "failSwapOn": False,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/etc/kubernetes/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "clusterDNS": [CLUSTER_DNS],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": "/etc/resolv.conf",
        "makeIPTablesUtilChains": False,  # there is only nftables
        "imageGCHighThresholdPercent": 100,  # there is no registry to pull a deleted image from
        "imageMaximumGCAge": "0s",
        "evictionHard": {**CALM, **PRESSURES[pressure]},
        "evictionPressureTransitionPeriod": "10s",  # default: five minutes
        "nodeStatusUpdateFrequency": "2s",  # default: ten, which delays counting a plugin's devices
    }


def allocatable_mib(memory_mib: int) -> int:
    """Return a node's memory for pods. If Slurm had more, a filler would hold the rest, and a CPU."""
    return memory_mib - int(CALM["memory.available"].removesuffix("Mi"))


def ballast_mib(memory_mib: int, used_mib: int) -> int:
    """Return how much more memory of a node must be used for its kubelet to evict pods."""
    left = int(CALM["memory.available"].removesuffix("Mi")) // 2
    return max(0, memory_mib - used_mib - left)


def proxy(network: Network) -> dict[str, object]:
    """Return kube-proxy's configuration, KubeProxyConfiguration v1alpha1."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": str(network.range),
        "clientConnection": {"kubeconfig": "/etc/kubernetes/proxy.kubeconfig"},
        "conntrack": {"maxPerCore": 0, "min": 0},  # a box may not change the machine's limits
    }


def cni(network: Network, index: int) -> dict[str, object]:
    """Return the pod network: a bridge in the node, addresses from the node's range."""
    subnet = str(network.pods_of(index))
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "hairpinMode": True,
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": subnet}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}, "backend": "nftables"},
        ],
    }


def containerd(*, may_lower_oom_score: bool) -> str:
    """Return containerd's configuration, version 3.

    Args:
        may_lower_oom_score: whether we have CAP_SYS_RESOURCE; without it, lowering would keep every pod from starting.
    """
    restrict = str(not may_lower_oom_score).lower()
    runtime = '[plugins."io.containerd.cri.v1.runtime"'
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE}"
{runtime}]
disable_apparmor = true
restrict_oom_score_adj = {restrict}
{runtime}.containerd]
default_runtime_name = "runc"
{runtime}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
{runtime}.containerd.runtimes.runc.options]
BinaryName = "/usr/sbin/runc"
SystemdCgroup = false
{runtime}.cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "/etc/cni/net.d"
"""


def environment(shape: NodeShape, network: Network, layout: Layout) -> str:
    """Return the shell assignments that init.sh reads."""
    peers = " ".join(
        f"{network.pods_of(other)}={network.address(other)}"
        for other in range(shape.nodes)
        if other != shape.index
    )
    values = {
        "NAME": shape.name,
        "ADDRESS": network.address(shape.index),
        "GATEWAY": network.gateway,
        "PEERS": peers,
        "CGROUP_VERSION": str(layout.version),
        "HIERARCHIES": " ".join(layout.hierarchies),
        "GPUS": str(shape.gpus),
        "DRA": str(shape.dra),
    }
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


def files(
    shape: NodeShape, network: Network, layout: Layout, *, may_lower_oom_score: bool, init: str
) -> dict[Path, str]:
    """Return a node's own part of /etc, credentials aside."""
    return {
        Path("kubernetes/kubelet.json"): json.dumps(kubelet(), indent=1),
        Path("kubernetes/proxy.json"): json.dumps(proxy(network), indent=1),
        Path("kubernetes/node.env"): environment(shape, network, layout),
        Path("kubernetes/init.sh"): init,
        Path("containerd/config.toml"): containerd(may_lower_oom_score=may_lower_oom_score),
        Path("cni/net.d/10-pods.conflist"): json.dumps(cni(network, shape.index), indent=1),
        Path("hosts"): f"127.0.0.1 localhost\n{network.address(shape.index)} {shape.name}\n",
        Path("resolv.conf"): "",
        Path("passwd"): _ACCOUNTS,  # the kubelet and containerd look up users and groups
        Path("group"): _GROUP,
    }
