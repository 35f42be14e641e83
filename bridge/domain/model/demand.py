"""A pod's demand on a node: kube-scheduler's arithmetic, in Kubernetes' and in Slurm's units.

Source: KEP-753 (sidecars), KEP-688 (overhead), KEP-2837 (pod-level resources); the same sum as
`PodRequests` of k8s.io/component-helpers/resource.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

from slurmruntime.values import quantities

NOTHING: Mapping[str, str] = MappingProxyType({})

LIMITABLE = ("cpu", "memory", "ephemeral-storage")
"""Resources of which the kubelet lets a container without a limit use what it finds. Kubernetes
accepts limits of others only if they equal the requests."""


class Resources(NamedTuple):
    """A container's (or a pod's own) `resources`: resource name → quantity as written."""

    requests: Mapping[str, str] = NOTHING
    limits: Mapping[str, str] = NOTHING
    sidecar: bool = False
    """An init container with `restartPolicy: Always`: it keeps running beside the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Whole MiB and CPUs, as Slurm counts; the exact Kubernetes amounts are for the fit check."""

    milli_cpu: int = 0
    """As Kubernetes accounts for it, in thousandths of a CPU, not rounded up; 0 if the pod requests
    none."""
    memory_bytes: int = 0
    ephemeral_storage_bytes: int = 0
    extended: Mapping[str, int] = field(default_factory=dict)
    """Every other resource (`nvidia.com/gpu`, `hugepages-2Mi`) → count, by its Kubernetes name;
    never 0."""
    pods: int = 1
    """The number of pods that have this demand together."""
    unlimited: tuple[str, ...] = field(default=(), compare=False)
    """The resources in `LIMITABLE` of which some container may use more than it requests."""

    @property
    def memory_mib(self) -> int:
        """Whole MiB; at least 1, because Slurm reads 0 as the whole node."""
        return max(1, quantities.mebibytes(self.memory_bytes))

    def cpus(self, milli_per_cpu: int) -> int:
        """Return the CPUs of Slurm that it takes; at least 1, because Slurm gives no job less.

        milli_per_cpu: how many thousandths of a Kubernetes CPU one CPU of Slurm is.
        """
        return max(1, quantities.cpus(self.milli_cpu, milli_per_cpu))


def of(
    containers: Iterable[Resources],
    init_containers: Iterable[Resources] = (),
    overhead: Mapping[str, str] = NOTHING,
    pod_resources: Resources | None = None,
) -> Demand:
    """Sum up one pod's demand.

    Raises ValueError for what is not a quantity; the API server lets no such value through.
    """
    containers, init_containers = tuple(containers), tuple(init_containers)
    amounts = _aggregate(containers, init_containers)
    if pod_resources is not None:
        _put_pod_level(amounts, pod_resources)
    for name, quantity in overhead.items():
        amounts[name] = amounts.get(name, Decimal(0)) + quantities.parse(quantity)
    unlimited = tuple(_unlimited((*containers, *init_containers), pod_resources))
    return replace(from_amounts(amounts), unlimited=unlimited)


def from_amounts(amounts: Mapping[str, Decimal]) -> Demand:
    """Sort resource amounts into their fields; the only place that rounds to Slurm's units."""
    rest = dict(amounts)
    return Demand(
        milli_cpu=quantities.milli(rest.pop("cpu", Decimal(0))),
        memory_bytes=quantities.round_up(rest.pop("memory", Decimal(0))),
        ephemeral_storage_bytes=quantities.round_up(rest.pop("ephemeral-storage", Decimal(0))),
        extended={name: quantities.round_up(amount) for name, amount in rest.items() if amount > 0},
    )


def total(demands: Iterable[Demand]) -> Demand:
    """Add up several pods' demand; `cpus` and `memory_mib` round the sum, not the parts."""
    milli_cpu = memory_bytes = ephemeral_storage_bytes = pods = 0
    extended: Counter[str] = Counter()
    for demand in demands:
        milli_cpu += demand.milli_cpu
        memory_bytes += demand.memory_bytes
        ephemeral_storage_bytes += demand.ephemeral_storage_bytes
        pods += demand.pods
        extended.update(demand.extended)
    return Demand(
        milli_cpu=milli_cpu,
        memory_bytes=memory_bytes,
        ephemeral_storage_bytes=ephemeral_storage_bytes,
        extended=dict(extended),
        pods=pods,
    )


def gres(extended: Mapping[str, int], gpu_resources: Mapping[str, str]) -> Mapping[str, int]:
    """Translate extended resources to GRES and skip the others.

    `{"nvidia.com/gpu": 2}` becomes `{"gpu": 2}`, or with a type `{"gpu:a100": 2}`.

    Args:
        extended: Kubernetes resource name → count.
        gpu_resources: Kubernetes resource name → GRES name, with a type where there is one.
    """
    counts: Counter[str] = Counter()
    for name, count in extended.items():
        if name in gpu_resources:
            counts[gpu_resources[name]] += count
    return dict(counts)


def _aggregate(
    containers: Iterable[Resources], init_containers: Iterable[Resources]
) -> dict[str, Decimal]:
    """Return the pod's peak demand.

    The peak is while an init container runs beside the sidecars before it, or afterwards.
    """
    together: dict[str, Decimal] = {}
    for container in containers:
        _add(together, _requests(container))
    sidecars: dict[str, Decimal] = {}
    most_while_starting: dict[str, Decimal] = {}
    for container in init_containers:
        requests = _requests(container)
        if container.sidecar:
            _add(sidecars, requests)
            _add(together, requests)
            _raise_to(most_while_starting, sidecars)
        else:
            _add(requests, sidecars)
            _raise_to(most_while_starting, requests)
    _raise_to(together, most_while_starting)
    return together


def _requests(resources: Resources) -> dict[str, Decimal]:
    """Treat a limit without a request as a request, as the API server's defaulting does."""
    return {
        name: quantities.parse(quantity)
        for name, quantity in {**resources.limits, **resources.requests}.items()
    }


def _put_pod_level(amounts: dict[str, Decimal], pod_resources: Resources) -> None:
    """Replace the containers' sum by pod-level requests, or limits where there are none."""
    for name, quantity in pod_resources.limits.items():
        if _is_pod_level(name):
            amounts.setdefault(name, quantities.parse(quantity))
    for name, quantity in pod_resources.requests.items():
        if _is_pod_level(name):
            amounts[name] = quantities.parse(quantity)


def _unlimited(containers: Iterable[Resources], pod_resources: Resources | None) -> Iterator[str]:
    pod_level = pod_resources or Resources()
    for name in LIMITABLE:
        if not _is_limited(name, pod_level) and not all(
            _is_limited(name, container) for container in containers
        ):
            yield name


def _is_limited(name: str, resources: Resources) -> bool:
    """Check whether the limit is the request; without a request, the limit stands in for it."""
    limit = resources.limits.get(name)
    if limit is None:
        return False
    request = resources.requests.get(name, limit)
    return request == limit or quantities.parse(request) >= quantities.parse(limit)


def _is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _add(amounts: dict[str, Decimal], more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, Decimal(0)) + amount


def _raise_to(amounts: dict[str, Decimal], least: Mapping[str, Decimal]) -> None:
    for name, amount in least.items():
        amounts[name] = max(amounts.get(name, Decimal(0)), amount)
