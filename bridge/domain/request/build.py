"""Build a workload's placeholder from its request, the administrator's defaults and the policy.

`bridge.domain.request.effective` calls it before every submit; the webhook calls `faults` early,
for the pod alone.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypedDict

from bridge.domain.caps import DEFAULT, Caps
from bridge.domain.model import demand
from bridge.domain.model.claims.by_class import Ways
from bridge.domain.model.demand import Demand
from bridge.domain.model.devices import gres
from bridge.domain.model.devices.room import Task
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.model.identities import Identity
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.model.volumes import Reach
from bridge.domain.request import candidates, overrides
from bridge.domain.request.candidates import Candidates, Pool
from bridge.domain.request.fit import KubeLimits
from bridge.domain.request.overrides import Overrides
from bridge.domain.request.permit import Permit
from bridge.domain.workloads.workload import Workload
from slurmruntime.values import quantities
from slurmruntime.values.faults import Fault, Refusal
from slurmruntime.values.ids import ClusterId, SlurmNode, alone_key

MAX_KINDS = 16
"""The most components of a heterogeneous job.

Slurm starts none of them before all can start, so a gang with more would never start.
"""

_MOST_CHOSEN = 256
"""Kinds of pods for which a choice of nodes is remembered."""

_HOSTNAME = "kubernetes.io/hostname"

DEFAULT_MEMORY_MIB = 256
"""Memory of a pod that requests none; a LimitRange gives the pods of a namespace another request."""

_SIZES = {
    "milli_cpu_per_task": "cpu-per-task",
    "memory_mib_per_node": "mem-per-node",
    "gres": "gres",
}
_NODES = {"min_nodes": "min-nodes", "max_nodes": "max-nodes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The administrator's defaults for all users.

    `bridge.domain.request.rules` decides who may have what.
    """

    cluster: ClusterId
    mcs_label: str = ""
    default_milli_cpu: int = quantities.MILLI
    """Thousandths of a CPU of Kubernetes."""
    milli_per_cpu: int = quantities.MILLI
    """Thousandths of a CPU of Kubernetes that one of Slurm's is."""
    gpu_resources: Mapping[str, str] = field(default_factory=dict)
    """Extended resource → GRES (`nvidia.com/gpu` → `gpu`, or with its type `gpu:a100`)."""
    priority_classes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Priority class → what its pods ask for if neither they nor their owners do. The keys of the
    inner mapping are the names of `overrides.FIELDS`."""
    required_limits: tuple[str, ...] = ()
    """Resources of which no container may use more than it requests (`demand.LIMITABLE`)."""
    hybrid: HybridRule = HybridRule.NONE
    """What keeps native jobs of hybrid nodes off containers that still stop."""
    devices: Ways = field(default_factory=Ways)
    """How pods may ask for devices by resource claims, which become GRES."""
    caps: Caps = DEFAULT


def placeholder(
    pod: Pod,
    asked: Overrides,
    defaults: Defaults,
    pool: Pool,
    *,
    permit: Permit,
    avoid: Sequence[SlurmNode] = (),
    reaches: tuple[Reach, ...] = (),
    gang: Workload | None = None,
) -> PlaceholderSpec:
    """Build the placeholder of a workload.

    Args:
        pod: the pod; for a gang its first member, which the others resemble.
        asked: what the pod and its owners ask for.
        pool: the bridged nodes.
        permit: what the policy has made of the request.
        avoid: nodes that Kubernetes has just been unable to use.
        reaches: the nodes from which each of the workload's volumes can be used.
        gang: the workload; None if the pod is alone.

    Raises:
        Refusal: with everything that is wrong with the request.
    """
    kinds = gang.kinds() if gang else ((pod, 1),)
    problems: list[Fault] = [*faults(pod.demand, asked, defaults, tasks=gang.size if gang else 1)]
    label = gang.shared_label if gang else ""
    problems += _of_several_sizes(asked, len(kinds), label)
    is_on_one_node = label == _HOSTNAME
    components: list[PlaceholderSpec] = []
    hidden = KubeLimits(
        counted=defaults.gpu_resources,
        reaches=reaches,
        hybrid=defaults.hybrid,
        has_whole_node=asked.exclusive or False,
    )
    for like, tasks in kinds:
        size = _size(like, asked, defaults, is_gang=gang is not None)
        choose = partial(
            candidates.choose,
            constraints=asked.constraints or "",
            avoid=avoid,
            hidden=hidden,
            task=_task(size, permit, defaults),
            is_gang=gang is not None,
        )
        where = _chosen(like, pool, choose)
        if label and not is_on_one_node:
            where = candidates.of_several(where, pool, label)
        if where.problem:
            problems.append(Fault("spec", where.problem, is_of_nodes=True))
        components.append(
            PlaceholderSpec(
                identity=_identity(pod, gang, defaults),
                name=asked.job_name or (gang.name if gang else pod.name),
                user=permit.user,
                group=permit.group,
                account=permit.account,
                partition=permit.partition,
                qos=permit.qos,
                reservation=permit.reservation,
                wckey=asked.wckey or "",
                nodes_min=asked.min_nodes if gang else 1,
                nodes_max=asked.max_nodes if gang and not is_on_one_node else 1,
                tasks=tasks,
                **size,
                time_limit_min=_time_limit_min(pod, asked, permit),
                exclusive=asked.exclusive or False,
                constraints=where.constraints,
                required_nodes=where.required_nodes,
                excluded_nodes=where.excluded_nodes,
                licenses=asked.licenses or "",
                priority=permit.priority,
                nice=permit.nice,
                hold=asked.hold or False,
                begin_at=asked.begin_at,
                deadline_at=asked.deadline_at,
                dependency=asked.dependency or "",
                switches=asked.switches or "",
                comment=asked.comment or "",
                mcs_label=defaults.mcs_label,
            )
        )
    if problems:
        raise Refusal(*problems)
    leader, *others = components
    # Licences and dependencies are requested once for all components.
    also = tuple(replace(other, licenses="", dependency="") for other in others)
    return replace(leader, also=also)


def _chosen(like: Pod, pool: Pool, choose: partial[Candidates]) -> Candidates:
    """Choose once for all pods that are alike, until a node changes: among ten thousand it takes 0.1 s."""
    whose = (like.node_selector, like.node_terms, like.tolerations, like.demand, choose.keywords)
    key = hashlib.sha256(repr(whose).encode()).digest()
    if key not in pool.chosen:
        choice = choose(like, pool)
        if len(pool.chosen) >= _MOST_CHOSEN:
            pool.chosen.clear()
        pool.chosen[key] = choice
    return pool.chosen[key]


class _Size(TypedDict):
    """The fields of `PlaceholderSpec` that determine the size of a task."""

    cpus_per_task: int
    memory_mib_per_node: int | None
    memory_mib_per_cpu: int | None
    gres_per_node: str
    gres_per_task: str


def _size(pod: Pod, asked: Overrides, defaults: Defaults, *, is_gang: bool) -> _Size:
    takes = pod.demand
    milli_cpu = asked.milli_cpu_per_task or takes.milli_cpu or defaults.default_milli_cpu
    cpus = quantities.cpus(milli_cpu, defaults.milli_per_cpu)
    requested_mib = takes.memory_mib if takes.memory_bytes else DEFAULT_MEMORY_MIB
    memory_mib = asked.memory_mib_per_node or requested_mib
    counts = demand.gres(takes.extended, defaults.gpu_resources)
    listed = (f"gres/{name}:{count}" for name, count in sorted(counts.items()))
    wanted = asked.gres or ",".join(listed)
    return {
        "cpus_per_task": cpus,
        "memory_mib_per_node": None if is_gang else memory_mib,
        "memory_mib_per_cpu": -(-memory_mib // cpus) if is_gang else None,
        "gres_per_node": "" if is_gang else wanted,
        "gres_per_task": wanted if is_gang else "",
    }


def _task(size: _Size, permit: Permit, defaults: Defaults) -> Task:
    memory_mib = size["memory_mib_per_node"]
    if memory_mib is None:
        memory_mib = (size["memory_mib_per_cpu"] or 0) * size["cpus_per_task"]
    return Task(
        cpus=size["cpus_per_task"],
        memory_mib=memory_mib,
        gres=size["gres_per_node"] or size["gres_per_task"],
        partitions=tuple(filter(None, permit.partition.split(","))),
        milli_per_cpu=defaults.milli_per_cpu,
    )


def _of_several_sizes(asked: Overrides, kinds: int, shared_label: str) -> Iterator[Fault]:
    """Refuse what would mean something different for each size."""
    if kinds > MAX_KINDS:
        yield Fault("spec", f"a gang's pods may have at most {MAX_KINDS} sizes, found {kinds}")
    for attribute, name in (_SIZES | _NODES).items():
        if kinds > 1 and getattr(asked, attribute) is not None:
            words = f"cannot be set for {kinds} sizes of pods at once: leave it out"
            yield Fault(overrides.path(name), words)
    if shared_label and kinds > 1:
        yield Fault(
            "spec",
            f"the pods must share one {shared_label}, but they have {kinds} sizes, and Slurm chooses "
            "nodes for each size separately: let all pods request the same",
        )


def faults(
    wanted: Demand, asked: Overrides, defaults: Defaults, *, tasks: int | None = None
) -> tuple[Fault, ...]:
    """Return where a well-formed request contradicts its pod.

    tasks: how many pods the placeholder is for; None at CREATE, where it is not yet known.
    """
    return (
        *_unlimited(wanted, defaults),
        *_too_little(wanted, asked, defaults),
        *_contradictions(asked, tasks),
    )


def _identity(pod: Pod, gang: Workload | None, defaults: Defaults) -> Identity:
    return Identity(
        cluster=defaults.cluster,
        kind=gang.kind if gang else "Pod",
        namespace=pod.namespace,
        name=gang.name if gang else pod.name,
        key=gang.key if gang else alone_key(pod.uid),
        pods=tuple(member.uid for member in gang.members) if gang else (pod.uid,),
    )


def _unlimited(wanted: Demand, defaults: Defaults) -> Iterator[Fault]:
    for name in defaults.required_limits:
        if name in wanted.unlimited:
            yield Fault(
                f"spec.containers[*].resources.limits[{name}]",
                "expected a limit that equals the request, in each container or for the whole pod: "
                "without it, the pod may use what Slurm gives to others "
                "(setting placement.required_limits)",
            )


def _too_little(wanted: Demand, asked: Overrides, defaults: Defaults) -> Iterator[Fault]:
    """Refuse requests below the pod's own: Slurm would give away again what the pod uses."""
    unit = defaults.milli_per_cpu
    least, cpus = wanted.cpus(unit), quantities.cpus(asked.milli_cpu_per_task or 0, unit)
    if asked.milli_cpu_per_task is not None and cpus < least:
        yield Fault(
            overrides.path("cpu-per-task"),
            f"expected at least the {quantities.cpu_quantity(least, unit)} CPUs that the pod requests, "
            f"found {quantities.cpu_quantity(cpus, unit)}",
        )
    if asked.memory_mib_per_node is not None and asked.memory_mib_per_node < wanted.memory_mib:
        yield Fault(
            overrides.path("mem-per-node"),
            f"expected at least the {wanted.memory_mib}Mi that the pod requests, "
            f"found {asked.memory_mib_per_node}Mi",
        )
    if asked.gres is not None:
        has = gres.by_kind(gres.counted(asked.gres.replace("gres/", "")))
        needed = gres.by_kind(demand.gres(wanted.extended, defaults.gpu_resources))
        for kind, count in needed.items():
            if has.get(kind, 0) < count:
                yield Fault(
                    overrides.path("gres"),
                    f"expected at least the {count} {kind} that the pod requests, found {has.get(kind, 0)}",
                )


def _contradictions(asked: Overrides, tasks: int | None) -> Iterator[Fault]:
    least, most = asked.min_nodes or 1, asked.max_nodes
    if tasks is not None and least > tasks:
        run = (
            "a single pod runs on 1 node"
            if tasks == 1
            else f"{tasks} pods run on {tasks} nodes at most"
        )
        yield Fault(overrides.path("min-nodes"), f"{run}, found {least}")
    elif most is not None and most < least:
        yield Fault(overrides.path("max-nodes"), f"expected at least {least}, found {most}")
    if asked.begin_at and asked.deadline_at and asked.deadline_at <= asked.begin_at:
        yield Fault(
            overrides.path("deadline"),
            f"expected a time after begin ({asked.begin_at.isoformat()}), "
            f"found {asked.deadline_at.isoformat()}",
        )


def _time_limit_min(pod: Pod, asked: Overrides, permit: Permit) -> int | None:
    """Return the requested limit; None for the partition's.

    The policy's cap limits it, and applies where Slurm's own limit might be longer.
    """
    limit, most = asked.time_limit_min, permit.time_limit_max_min
    if limit is None and pod.deadline_s is not None:
        limit = max(1, -(-pod.deadline_s // 60))
    return most if limit is None else limit if most is None else min(limit, most)
