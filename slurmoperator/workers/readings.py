"""What readings of Slurm prove about workers: in memory only, a new leader starts from nothing.

A reading proves something only if it is complete and began after our own last write about the node
had taken effect. A write whose reply was lost may still take effect for a while.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from slurmoperator.workers.situation import BUSY, WorkerObservation
from slurmruntime.model.nodes import SlurmNodeFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReading:
    """Slurm's nodes and jobs in one reading."""

    began_s: float
    """On the monotonic clock, before the first request was sent."""
    is_complete: bool
    nodes: Mapping[str, SlurmNodeFacts]
    with_jobs: Collection[str]
    """The nodes named by jobs that have not ended."""


@dataclass(slots=True)
class WorkerReadings:
    """Results of reads and writes, by node."""

    lost_reply_s: float
    """How long a request whose reply was lost may still take effect."""
    _last: WorkerReading | None = None
    _sure_from_s: dict[str, float] = field(default_factory=dict)
    _quiet: dict[str, int] = field(default_factory=dict)
    _observations: dict[str, WorkerObservation] = field(default_factory=dict)
    """Those already made; the next reading or write changes what is known."""

    def wrote(self, node: str, at_s: float, *, is_lost: bool = False) -> None:
        """Record a write whose reply came, or was lost, at that moment."""
        self._sure_from_s[node] = at_s + (self.lost_reply_s if is_lost else 0.0)
        self._quiet.pop(node, None)
        self._observations.pop(node, None)

    def read(self, reading: WorkerReading) -> None:
        """Record a successful reading; `failed` records the others."""
        if self._last is not None and reading.began_s <= self._last.began_s:
            return
        self._last = reading
        self._observations.clear()
        if not reading.is_complete:
            self._quiet.clear()
            return
        for name in {*self._quiet, *reading.nodes}:
            if self._is_quiet(name, reading):
                self._quiet[name] = self._quiet.get(name, 0) + 1
            else:
                self._quiet.pop(name, None)

    def failed(self) -> None:
        """Forget everything: Slurm could not be read."""
        self._last = None
        self._quiet.clear()
        self._observations.clear()

    def seen(self, node: str) -> WorkerObservation:
        """Return what is known of a node now."""
        if node not in self._observations:
            self._observations[node] = self._observe(node)
        return self._observations[node]

    def _observe(self, node: str) -> WorkerObservation:
        last = self._last
        if last is None or not last.is_complete or not self._is_after(node, last):
            return WorkerObservation(is_sure=False)
        return WorkerObservation(
            is_sure=True,
            node=last.nodes.get(node),
            has_jobs=node in last.with_jobs,
            quiet_readings=self._quiet.get(node, 0),
        )

    def _is_after(self, node: str, reading: WorkerReading) -> bool:
        return reading.began_s >= self._sure_from_s.get(node, float("-inf"))

    def _is_quiet(self, name: str, reading: WorkerReading) -> bool:
        node = reading.nodes.get(name)
        return (
            node is not None
            and "DRAIN" in node.states
            and not node.states & BUSY
            and name not in reading.with_jobs
            and self._is_after(name, reading)
        )
