"""Describe a Kubernetes node for Slurm, and find how Slurm's record of it differs from that.

The description is what is left of the node beside the pods that belong to it. Some differences can
be changed in place; for others, the node has to be deleted and created again.
"""

import fnmatch
import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bridge.domain.model import demand
from bridge.domain.model.claims import profiles
from bridge.domain.model.demand import Demand
from bridge.domain.model.devices import gres
from bridge.domain.nodes.actions import (
    NodeAction,
    SetAddress,
    SetFeatures,
    SetTopology,
    SetWeight,
)
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts, SlurmNodeSpec
from slurmruntime.values import names, numbers, quantities
from slurmruntime.values.faults import Fault
from slurmruntime.values.ids import ClusterId

_PLAIN = re.compile(r"[A-Za-z0-9_.:/-]+")
"""One word of node_conf, which cannot start another key."""

MOST_DEVICES = 1024
"""Of one kind on a node: each is named in GresConf, and a kubelet may report any number."""

_MOST_LABELS = 512
_MOST_CHARACTERS = 32_768
"""Of a node's labels that are published: slurmctld keeps every feature of any node, and a kubelet may write
any number. Node Feature Discovery sets some 150."""

_LARGEST_WEIGHT = 2**32 - 2
"""`man slurm.conf`, "Weight"."""

_SHOWN = 80
"""The number of characters of a faulty value to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publishing:
    """The administrator's settings."""

    cluster: ClusterId
    node_features: tuple[str, ...] = ()
    """Label keys to publish as features; `*` and `?` match."""
    gpu_resources: Mapping[str, str] = field(default_factory=dict)
    """Extended resource → GRES (`nvidia.com/gpu` → `gpu`, or with its type `gpu:a100`)."""
    milli_per_cpu: int = quantities.MILLI
    """Thousandths of a CPU of Kubernetes that one of Slurm's is."""
    gpu_type_labels: tuple[str, ...] = ()
    """Labels that name the GPU type, for GRES `gpu` without one; the first that a node has is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A node's record in Slurm as it should be, and how the one that is there differs."""

    wanted: SlurmNodeSpec | None
    """None if there are faults."""
    faults: tuple[Fault, ...] = ()
    """What is set on the node that Slurm cannot take."""
    lacks: str = ""
    """What keeps it from being registered; "" if nothing does."""
    shrunk: str = ""
    """Why Slurm must stop offering the node as it is; "" if it need not."""
    grown: str = ""
    """Why an idle node should be created again; "" if it should not."""
    devices: str = ""
    """Which devices Slurm has and Kubernetes lacks; "" if none."""
    changes: tuple[NodeAction, ...] = ()
    """What Slurm can change in place, also while jobs run."""
    partitions: tuple[str, ...] = ()
    """Partitions that the node should be in and is not."""
    features: tuple[str, ...] = ()
    """Those of a record that belongs to a slurmd, with ours (`shared_features`); else none."""


def record(
    kube_node: KubeNodeFacts,
    daemons: Demand,
    slurm_node: SlurmNodeFacts | None,
    publishing: Publishing,
) -> Record:
    """Describe the node, and compare Slurm's record with that, if there is one.

    daemons: the total demand of the pods that belong to the node: DaemonSets' and static ones.
    """
    if problems := faults(kube_node, publishing):
        return Record(wanted=None, faults=problems)
    wanted = spec(kube_node, daemons, publishing)
    if slurm_node is None:
        return Record(wanted=wanted, lacks=_lacks(wanted))
    return Record(
        wanted=wanted,
        shrunk=_shrunk(slurm_node, wanted),
        grown=_grown(slurm_node, wanted),
        devices=_missing_devices(slurm_node, wanted),
        changes=tuple(_changes(slurm_node, wanted)),
        partitions=tuple(
            name for name in partitions(kube_node) if name not in slurm_node.partitions
        ),
        features=()
        if slurm_node.is_external
        else shared_features(slurm_node, wanted.features, publishing),
    )


def faults(kube_node: KubeNodeFacts, publishing: Publishing) -> tuple[Fault, ...]:
    """Return what is set on the node that Slurm cannot take."""
    return (
        *_address(kube_node),
        *_devices(kube_node, publishing),
        *_published(kube_node, publishing),
        *_words(kube_node, names.PARTITIONS_ANNOTATION),
        *_words(kube_node, names.TOPOLOGY_ANNOTATION),
        *_number(kube_node, names.WEIGHT_ANNOTATION, least=0, most=_LARGEST_WEIGHT),
        *_number(kube_node, names.THREADS_ANNOTATION, least=1, most=1024),
        *_fine_cpus(kube_node, publishing),
    )


def spec(kube_node: KubeNodeFacts, daemons: Demand, publishing: Publishing) -> SlurmNodeSpec:
    """Describe the node; call this only if there are no `faults`.

    daemons: the total demand of the pods that belong to the node: DaemonSets' and static ones.
    """
    allocatable = kube_node.allocatable
    left = {
        name: count - daemons.extended.get(name, 0) for name, count in allocatable.extended.items()
    }
    listed, gres_conf = _gres(devices(kube_node, left, publishing))
    threads = numbers.integer(kube_node.annotations.get(names.THREADS_ANNOTATION, "1")) or 1
    cpus = max(0, allocatable.milli_cpu - daemons.milli_cpu) // publishing.milli_per_cpu
    return SlurmNodeSpec(
        name=nodes.slurm_name(kube_node),
        address=kube_node.internal_ip,
        cpus=cpus // threads * threads,
        memory_mib=max(0, allocatable.memory_bytes - daemons.memory_bytes) // quantities.MIB,
        features=tuple(dict.fromkeys(_features(kube_node, publishing))),
        gres=listed,
        gres_conf=gres_conf,
        topology=kube_node.annotations.get(names.TOPOLOGY_ANNOTATION, ""),
        weight=numbers.integer(
            kube_node.annotations.get(names.WEIGHT_ANNOTATION, "1"), most=_LARGEST_WEIGHT
        )
        or 0,
        threads_per_core=threads,
    )


def devices(
    kube_node: KubeNodeFacts, extended: Mapping[str, int], publishing: Publishing
) -> Counter[str]:
    """Count the node's devices behind these extended resources, as Slurm counts them.

    `{"nvidia.com/gpu": 2}` becomes `{"gpu:a100": 2}`. Devices of claims get the type that their
    profile says, or none: pods ask for them, and look them up, under just that name.
    """
    counts: Counter[str] = Counter()
    for resource, count in extended.items():
        for name, number in demand.gres({resource: count}, publishing.gpu_resources).items():
            is_claimed = resource.startswith(profiles.COUNTED)
            counted = name if is_claimed else _typed(name, kube_node, publishing)
            counts[counted] += max(0, number)
    return +counts


def partitions(kube_node: KubeNodeFacts) -> tuple[str, ...]:
    """Return the partitions that an administrator wants the node in."""
    listed = kube_node.annotations.get(names.PARTITIONS_ANNOTATION, "")
    return tuple(filter(None, map(str.strip, listed.split(","))))


def shared_features(
    slurm_node: SlurmNodeFacts, ours: Iterable[str], publishing: Publishing
) -> tuple[str, ...]:
    """Return the features for a slurmd's node: its own, and ours in place of our earlier ones."""
    own = [
        feature
        for feature in slurm_node.features
        if feature not in marks(publishing.cluster)
        and feature.partition("=")[0] != names.TAINTS_FEATURE
        and not _is_published(feature.partition("=")[0], publishing)
    ]
    return tuple(dict.fromkeys([*own, *ours]))


def marks(cluster: ClusterId) -> tuple[str, str]:
    """Return the features that mark a node as bridged, and by which cluster."""
    return (names.BRIDGED_FEATURE, nodes.cluster_feature(cluster))


def _lacks(wanted: SlurmNodeSpec) -> str:
    if not wanted.address:
        return "the kubelet has reported no InternalIP"
    if not wanted.cpus or not wanted.memory_mib:
        return "nothing is left of it beside the DaemonSets' pods"
    return ""


def _changes(slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec) -> Iterator[NodeAction]:
    name = slurm_node.name
    if set(slurm_node.features) != set(wanted.features):
        yield SetFeatures(slurm_node=name, features=wanted.features)
    if wanted.address and slurm_node.address != wanted.address:
        yield SetAddress(slurm_node=name, address=wanted.address)
    if nodes.topology_parts(slurm_node.topology) != nodes.topology_parts(wanted.topology):
        yield SetTopology(slurm_node=name, topology=wanted.topology)
    if slurm_node.weight != wanted.weight:
        yield SetWeight(slurm_node=name, weight=wanted.weight)


def _shrunk(slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec) -> str:
    """Explain why Slurm must stop offering the node as it is; "" if it need not.

    Fewer CPUs or less memory left in Kubernetes are no reason while jobs run: fillers hold the
    difference. Otherwise anyone who may create pods could drain every node.
    """
    if not slurm_node.is_busy and slurm_node.cpus > wanted.cpus:
        return f"Slurm has {slurm_node.cpus} CPUs, Kubernetes has {wanted.cpus} left"
    if not slurm_node.is_busy and slurm_node.memory_mib > wanted.memory_mib:
        return f"Slurm has {slurm_node.memory_mib} MiB, Kubernetes has {wanted.memory_mib} left"
    if slurm_node.threads_per_core != wanted.threads_per_core:
        return f"Slurm has {slurm_node.threads_per_core} threads per core, not {wanted.threads_per_core}"
    if gres.plain(slurm_node.gres) != wanted.gres:
        return f"Slurm has GRES {slurm_node.gres!r}, Kubernetes has {wanted.gres!r}"
    if _partition_features(slurm_node.features) != _partition_features(wanted.features):
        # Partitions defined by a NodeSet do not follow a live change of features.
        return "its partitions changed"
    return ""


def _grown(slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec) -> str:
    """Explain why an idle node should be re-created; "" if it should not.

    This is not worth a drain: a DaemonSet's pod that is being replaced looks the same.
    """
    if "NOT_RESPONDING" in slurm_node.states:
        return "Slurm tried to reach a slurmd there"
    if slurm_node.cpus < wanted.cpus:
        return f"Slurm has {slurm_node.cpus} CPUs, Kubernetes has {wanted.cpus} left"
    if slurm_node.memory_mib < wanted.memory_mib:
        return f"Slurm has {slurm_node.memory_mib} MiB, Kubernetes has {wanted.memory_mib} left"
    return ""


def _missing_devices(slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec) -> str:
    if not slurm_node.gres:
        return ""
    has = gres.counted(wanted.gres)
    had = gres.counted(slurm_node.gres)
    if all(has.get(name, 0) >= count for name, count in had.items()):
        return ""
    present = wanted.gres or "none"
    return f"devices are missing: Slurm has {slurm_node.gres}, Kubernetes has {present}"


def _partition_features(features: Iterable[str]) -> frozenset[str]:
    """Return the features a NodeSet may select; those from labels contain a `=`."""
    return frozenset(feature for feature in features if "=" not in feature)


def _fine_cpus(kube_node: KubeNodeFacts, publishing: Publishing) -> Iterator[Fault]:
    """Refuse settings that count real CPUs where Slurm's CPUs are parts of one."""
    if publishing.milli_per_cpu == quantities.MILLI:
        return
    setting = f"setting slurm.milli_cpu_per_cpu is {publishing.milli_per_cpu}"
    if nodes.is_hybrid(kube_node):
        yield Fault(
            f"metadata.labels[{names.HYBRID_NODE_LABEL}]",
            f"a slurmd offers whole CPUs, and {setting}: remove the label, or let another "
            "slurm-bridge serve the hybrid nodes",
        )
    if kube_node.annotations.get(names.THREADS_ANNOTATION, "1") != "1":
        yield Fault(
            f"metadata.annotations[{names.THREADS_ANNOTATION}]",
            f"expected none, or 1: threads are parts of real cores, and {setting}",
        )


def _features(kube_node: KubeNodeFacts, publishing: Publishing) -> Iterator[str]:
    """Yield our marks, the taints, the partitions the node belongs to, and the chosen labels."""
    yield from marks(publishing.cluster)
    yield nodes.taints_feature(kube_node)
    yield from partitions(kube_node)
    yield from _label_features(kube_node, publishing)


def _label_features(kube_node: KubeNodeFacts, publishing: Publishing) -> Iterator[str]:
    for key, value in sorted(kube_node.labels.items()):
        if _is_published(key, publishing):
            yield f"{key}={value}"


def _is_published(key: str, publishing: Publishing) -> bool:
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in publishing.node_features)


def _typed(name: str, kube_node: KubeNodeFacts, publishing: Publishing) -> str:
    """Add the GPU type from the node's labels.

    `gpu` with the label `nvidia.com/gpu.product: NVIDIA-A100` becomes `gpu:nvidia-a100`.
    """
    if name != "gpu":
        return name
    types = (kube_node.labels.get(label) for label in publishing.gpu_type_labels)
    gpu_type = next(filter(None, types), "")
    return f"{name}:{gpu_type.lower()}" if gpu_type else name


def _gres(counts: Mapping[str, int]) -> tuple[str, str]:
    """Return `gpu:a100:2,nic:1` and its GresConf: a record for each, joined by `+`.

    Slurm splits there for nodes without slurmd, and wants files for each record
    (`gres_add_dynamic_gres`). They are names for counting; nothing opens them.
    """
    records = []
    used: Counter[str] = Counter()
    ordered = sorted(counts.items())
    for name, count in ordered:
        kind, _, model = name.partition(":")
        first = used[kind]
        used[kind] += count
        files = ",".join(f"file={kind}-{index}" for index in range(first, first + count))
        model = f"type={model}," if model else ""
        records.append(f"count={count},name={kind},{model}{files}")
    listed = ",".join(f"{name}:{count}" for name, count in ordered)
    return listed, "+".join(records)


def _address(kube_node: KubeNodeFacts) -> Iterator[Fault]:
    """Yield a fault for a host name: slurmctld would resolve it, for up to 10 s, at every job start.

    Python takes any text behind a `%` for an IPv6 zone; kubelets report none.
    """
    try:
        address = ipaddress.ip_address(kube_node.internal_ip or "::")
    except ValueError:
        is_plain = False
    else:
        is_plain = not getattr(address, "scope_id", None)
    if not is_plain:
        yield Fault(
            "status.addresses[InternalIP]",
            f"expected an IP address, found {kube_node.internal_ip[:_SHOWN]!r}",
        )


def _devices(kube_node: KubeNodeFacts, publishing: Publishing) -> Iterator[Fault]:
    for resource in publishing.gpu_resources:
        count = kube_node.allocatable.extended.get(resource, 0)
        if count > MOST_DEVICES:
            yield Fault(
                f"status.allocatable[{resource}]",
                f"expected at most {MOST_DEVICES} devices, found {count}",
            )


def _published(kube_node: KubeNodeFacts, publishing: Publishing) -> Iterator[Fault]:
    published = [*_label_features(kube_node, publishing)]
    characters = sum(map(len, published))
    if len(published) > _MOST_LABELS or characters > _MOST_CHARACTERS:
        yield Fault(
            "metadata.labels",
            f"expected at most {_MOST_LABELS} labels, {_MOST_CHARACTERS} characters in all, that setting "
            f"controllers.node_features publishes, found {len(published)} and {characters}: remove "
            "some, or let the setting name fewer",
        )


def _words(kube_node: KubeNodeFacts, key: str) -> Iterator[Fault]:
    for part in map(str.strip, kube_node.annotations.get(key, "").split(",")):
        if part and not _PLAIN.fullmatch(part):
            yield Fault(
                f"metadata.annotations[{key}]",
                f"expected names separated by commas, found {part!r}",
            )


def _number(kube_node: KubeNodeFacts, key: str, *, least: int, most: int) -> Iterator[Fault]:
    text = kube_node.annotations.get(key)
    if text is None:
        return
    number = numbers.integer(text, most=most)
    if number is None or number < least:
        yield Fault(
            f"metadata.annotations[{key}]",
            f"expected a whole number from {least} to {most}, found {text[:_SHOWN]!r}",
        )
