"""What was measured of pods with claims and without, and what follows from it. Pure."""

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.goals import Goal

_MOST_WRITES, _MOST_MS, _MOST_TIMES = 2, 20, 1.3
_ASKS_KUBERNETES = " → Kubernetes "
_WRITES = ("POST ", "PUT ", "PATCH ", "DELETE ")
_OF_NO_POD = ("leases", "events", "POST pods")
"""Leases are written by the clock, as are the pods by which the controllers test the webhook (a dry run); Events tell of waiting."""
_COUNTER = "apiserver_request_total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """Pods that came at once."""

    pods: int
    wall_s: float
    """From the first CREATE until all were bound."""
    p50_s: float
    """CREATE to bound of one of them."""
    ours: Mapping[str, int]
    """Requests of our services to Slurm and Kubernetes, by service and operation."""
    everyones: Mapping[str, int]
    """Writes that the API server served, by operation; the CREATEs of the pods are among them."""
    cpu_s: Mapping[str, float]
    """CPU time by part, until two seconds after the last was bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What was measured of pods that have a claim, or of those that have none."""

    single_s: Sequence[float]
    """CREATE to bound of pods that came one by one."""
    floods: Sequence[Flood]

    @property
    def single_p50_s(self) -> float:
        """Return the median of single pods."""
        return statistics.median(self.single_s)

    @property
    def wall_s(self) -> float:
        """Return the median time until all of a flood were bound."""
        return statistics.median(flood.wall_s for flood in self.floods)

    @property
    def p50_s(self) -> float:
        """Return the median of floods' medians."""
        return statistics.median(flood.p50_s for flood in self.floods)

    @property
    def writes(self) -> float:
        """Return our services' writes about a pod."""
        return sum(sum(our_writes(flood.ours).values()) for flood in self.floods) / self._pods

    @property
    def requests(self) -> Mapping[str, float]:
        """Return our services' requests per pod, by service and operation."""
        return self._per_pod(flood.ours for flood in self.floods)

    @property
    def served(self) -> Mapping[str, float]:
        """Return the writes per pod that the API server served, by operation."""
        return self._per_pod(flood.everyones for flood in self.floods)

    @property
    def cpu_ms(self) -> Mapping[str, float]:
        """Return the CPU time per pod, by part, in milliseconds."""
        found = self._per_pod(flood.cpu_s for flood in self.floods)
        return {part: 1000 * seconds for part, seconds in found.items()}

    @property
    def _pods(self) -> int:
        return sum(flood.pods for flood in self.floods)

    def _per_pod(self, counts: Iterator[Mapping[str, float]]) -> Mapping[str, float]:
        found: Counter[str] = Counter()
        for each in counts:
            found.update(each)
        return {name: count / self._pods for name, count in sorted(found.items())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Pods of one namespace, either way."""

    without: Way
    claiming: Way

    @property
    def more_single_ms(self) -> float:
        """Return how much longer a single pod takes with a claim."""
        return 1000 * (self.claiming.single_p50_s - self.without.single_p50_s)

    @property
    def more_wall_s(self) -> float:
        """Return how much longer a flood takes with claims."""
        return self.claiming.wall_s - self.without.wall_s

    @property
    def times(self) -> float:
        """Return how many times as long a flood takes with claims."""
        return self.claiming.wall_s / self.without.wall_s


def goals(ours: Ways) -> Iterator[Goal]:
    """Yield what claims may add, and what they do."""
    yield Goal(
        name="API writes of ours per pod: more",
        found=ours.claiming.writes - ours.without.writes,
        limit=_MOST_WRITES,
        unit="",
    )
    yield Goal(
        name="CREATE to bound, single pods, median: more",
        found=ours.more_single_ms,
        limit=_MOST_MS,
        unit="ms",
    )
    yield Goal(name="CREATE to all bound: times", found=ours.times, limit=_MOST_TIMES, unit="")


def floor_times(ours: Ways, plain: Ways) -> float:
    """Return the lowest factor to be had: our pods without claims, and what kube-scheduler alone takes longer for claims.

    It writes as often for a claim as we do, and so do Kubernetes' own controllers in either case.
    """
    return (ours.without.wall_s + plain.more_wall_s) / ours.without.wall_s


def our_writes(calls: Mapping[str, int]) -> Counter[str]:
    """Return which calls of our services wrote something about pods to Kubernetes, by operation."""
    found: Counter[str] = Counter()
    for name, count in calls.items():
        _, is_kubernetes, operation = name.partition(_ASKS_KUBERNETES)
        if is_kubernetes and operation.startswith(_WRITES) and not operation.endswith(_OF_NO_POD):
            found[operation] += count
    return found


def served_writes(exposition: str) -> Counter[str]:
    """Return the writes about pods and claims that an API server has served, by operation, whoever sent them."""
    found: Counter[str] = Counter()
    lines = (line for line in exposition.splitlines() if line.startswith(_COUNTER))
    for family in text_string_to_metric_families("\n".join(lines)):
        for sample in family.samples:
            labels = sample.labels
            verb, resource = labels["verb"], labels["resource"]
            is_written = f"{verb} " in _WRITES and not labels.get("dry_run")
            if is_written and resource in {"pods", "resourceclaims"}:
                what = "/".join(filter(None, (resource, labels["subresource"])))
                found[f"{verb} {what}"] += int(sample.value)
    return found
