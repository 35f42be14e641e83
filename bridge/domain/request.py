"""The effective request: pod, annotations and defaults put together, checked against what is allowed, as a placeholder.

Checked here before every submit, because only here owners are seen; the webhook asks `faults` early, for the pod alone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bridge.domain import candidates, demand, overrides
from bridge.domain.candidates import Pool
from bridge.domain.demand import Demand
from bridge.domain.faults import Fault
from bridge.domain.ids import ClusterId, SlurmNode
from bridge.domain.overrides import Overrides
from bridge.domain.placeholder import Identity, PlaceholderSpec
from bridge.domain.pods import Pod

RESTRICTED = ("account", "qos", "reservation", "priority", "nice")
"""Fields that give a job what others lack; refused unless the administrator lists them.

We submit as root, and Slurm grants root what it would refuse the user (a priority, another's reservation).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the administrator has set: on whose account jobs run, defaults, and what users may choose."""

    cluster: ClusterId
    user: str = ""
    group: str = ""
    account: str = ""
    partition: str = ""
    mcs_label: str = ""
    default_cpus: int = 1
    default_memory_mib: int = 256
    default_time_limit_min: int | None = None
    allowed_fields: frozenset[str] = frozenset()
    """Which of `RESTRICTED` users may set."""
    gpu_resources: Mapping[str, str] = field(default_factory=dict)
    """Extended resource → GRES (`nvidia.com/gpu` → `gpu`, or with its type `gpu:a100`)."""


def build(
    pod: Pod,
    asked: Overrides,
    policy: Policy,
    pool: Pool,
    *,
    avoid: Sequence[SlurmNode] = (),
) -> PlaceholderSpec | tuple[Fault, ...]:
    """Write the placeholder of a single pod, or say everything that speaks against it.

    Args:
        pod: the pod.
        asked: the root owner's annotations with the pod's own laid over them (`Overrides.under`).
        policy: the administrator's settings.
        pool: the bridged nodes.
        avoid: nodes that Kubernetes could not take a moment ago.
    """
    where = candidates.choose(pod, pool, constraints=asked.constraints or "", avoid=avoid)
    problems = (Fault("spec", where.problem),) if where.problem else ()
    if found := (*faults(pod.demand, asked, policy), *problems):
        return found
    return PlaceholderSpec(
        identity=Identity(
            cluster=policy.cluster,
            kind="Pod",
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            pods=(pod.uid,),
        ),
        name=asked.job_name or pod.name,
        user=policy.user,
        group=policy.group,
        account=asked.account or policy.account,
        partition=asked.partition or policy.partition,
        qos=asked.qos or "",
        reservation=asked.reservation or "",
        wckey=asked.wckey or "",
        cpus_per_task=asked.cpus_per_task or _cpus(pod.demand, policy),
        memory_mib_per_node=asked.memory_mib_per_node or _memory_mib(pod.demand, policy),
        gres_per_node=asked.gres
        or _gres_text(demand.gres(pod.demand.extended, policy.gpu_resources)),
        time_limit_min=_time_limit_min(pod, asked, policy),
        exclusive=asked.exclusive or False,
        constraints=where.constraints,
        required_nodes=where.required_nodes,
        excluded_nodes=() if where.required_nodes else _avoidable(avoid, pool),
        licenses=asked.licenses or "",
        priority=asked.priority,
        nice=asked.nice,
        hold=asked.hold or False,
        begin_at=asked.begin_at,
        deadline_at=asked.deadline_at,
        dependency=asked.dependency or "",
        switches=asked.switches or "",
        comment=asked.comment or "",
        mcs_label=policy.mcs_label,
    )


def faults(wanted: Demand, asked: Overrides, policy: Policy) -> tuple[Fault, ...]:
    """Say what of a well-formed request is not allowed, or contradicts the pod it is for."""
    return (
        *_forbidden(asked, policy),
        *_too_little(wanted, asked, policy),
        *_contradictions(asked),
    )


def _forbidden(asked: Overrides, policy: Policy) -> Iterator[Fault]:
    if asked.user_id is not None:
        yield Fault(overrides.path("user-id"), "refused: the administrator sets the jobs' user")
    if asked.group_id is not None:
        yield Fault(overrides.path("group-id"), "refused: the administrator sets the jobs' group")
    for name in RESTRICTED:
        if getattr(asked, name) is not None and name not in policy.allowed_fields:
            yield Fault(
                overrides.path(name),
                "refused: the administrator does not let users set it (placement.allowed_fields)",
            )


def _too_little(wanted: Demand, asked: Overrides, policy: Policy) -> Iterator[Fault]:
    """Slurm would hand out again what the pod uses."""
    if asked.cpus_per_task is not None and asked.cpus_per_task < wanted.cpus:
        yield Fault(
            overrides.path("cpu-per-task"),
            f"expected at least the {wanted.cpus} CPUs that the pod requests, found {asked.cpus_per_task}",
        )
    if asked.memory_mib_per_node is not None and asked.memory_mib_per_node < wanted.memory_mib:
        yield Fault(
            overrides.path("mem-per-node"),
            f"expected at least the {wanted.memory_mib}Mi that the pod requests, "
            f"found {asked.memory_mib_per_node}Mi",
        )
    if asked.gres is not None:
        has = _by_kind(_counts(asked.gres))
        for kind, count in _by_kind(demand.gres(wanted.extended, policy.gpu_resources)).items():
            if has.get(kind, 0) < count:
                yield Fault(
                    overrides.path("gres"),
                    f"expected at least the {count} {kind} that the pod requests, found {has.get(kind, 0)}",
                )


def _contradictions(asked: Overrides) -> Iterator[Fault]:
    least, most = asked.min_nodes or 1, asked.max_nodes
    if least > 1:
        yield Fault(overrides.path("min-nodes"), f"a single pod runs on 1 node, found {least}")
    elif most is not None and most < least:
        yield Fault(overrides.path("max-nodes"), f"expected at least {least}, found {most}")
    if asked.begin_at and asked.deadline_at and asked.deadline_at <= asked.begin_at:
        yield Fault(
            overrides.path("deadline"),
            f"expected a moment after begin ({asked.begin_at.isoformat()}), "
            f"found {asked.deadline_at.isoformat()}",
        )


def _cpus(wanted: Demand, policy: Policy) -> int:
    return wanted.cpus if wanted.milli_cpu else policy.default_cpus


def _memory_mib(wanted: Demand, policy: Policy) -> int:
    return wanted.memory_mib if wanted.memory_bytes else policy.default_memory_mib


def _time_limit_min(pod: Pod, asked: Overrides, policy: Policy) -> int | None:
    if asked.time_limit_min is not None:
        return asked.time_limit_min
    if pod.deadline_s is not None:
        return max(1, -(-pod.deadline_s // 60))
    return policy.default_time_limit_min


def _gres_text(counts: Mapping[str, int]) -> str:
    return ",".join(f"gres/{name}:{count}" for name, count in sorted(counts.items()))


def _counts(gres: str) -> Mapping[str, int]:
    """`gres/gpu:a100:2,gres/shard` is `{"gpu:a100": 2, "shard": 1}`."""
    counts: Counter[str] = Counter()
    for part in gres.split(","):
        name, _, count = part.removeprefix("gres/").rpartition(":")
        if count.isdecimal():
            counts[name] += int(count)
        else:
            counts[part.removeprefix("gres/")] += 1
    return counts


def _by_kind(counts: Mapping[str, int]) -> Mapping[str, int]:
    """Types left out: `gpu:a100` and `gpu:h100` are both `gpu`."""
    kinds: Counter[str] = Counter()
    for name, count in counts.items():
        kinds[name.partition(":")[0]] += count
    return kinds


def _avoidable(avoid: Sequence[SlurmNode], pool: Pool) -> tuple[SlurmNode, ...]:
    """Slurm refuses names it does not know, and with every node excluded the job could never start."""
    known = tuple(node for node in avoid if node in pool.nodes)
    return known if len(known) < len(pool.nodes) else ()
