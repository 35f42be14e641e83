"""The work of a leader: its queues, and what was set aside."""

from collections.abc import Callable
from typing import get_args

from slurmruntime.process.metrics.registry import CALL_S, Registry
from slurmruntime.values.oddities import Kind


class WorkMetrics:
    """Work queues, what is set aside, and who leads."""

    def __init__(self, registry: Registry) -> None:
        self._depths: dict[str, list[Callable[[], int]]] = {}
        self._queue_depth = registry.gauge("queue_depth", "Keys waiting for a worker.", "queue")
        self._reconciles = registry.counter(
            "reconciles",
            "Keys processed: ok; transient: a peer was unavailable or busy; refused: a peer rejected "
            "the request; crashed.",
            "queue",
            "outcome",
        )
        self._reconcile_s = registry.histogram(
            "reconcile_duration_seconds", "Time one key took.", CALL_S, "queue"
        )
        self._set_aside = registry.counter(
            "set_aside",
            "Objects and responses set aside so that they affect only themselves. odd: the input "
            "cannot be used as it is; crashed: a bug of ours, please report it.",
            "kind",
            "reason",
        )
        for kind in get_args(Kind):  # from the start, so that the first one is an increase
            for reason in ("odd", "crashed"):
                self._set_aside.labels(kind, reason)
        self._set_aside_now = registry.gauge(
            "set_aside_now", "Objects currently set aside, at most 1000.", "kind"
        )
        self._leader = registry.gauge("leader", "1 while this process leads, else 0.", "lease")

    def watch_queue(self, queue: str, depth: Callable[[], int]) -> None:
        """Call `depth` for a queue's depth at every scrape; queues of one name, of a process that leads for two programs, are added up."""
        depths = self._depths.setdefault(queue, [])
        depths.append(depth)
        self._queue_depth.labels(queue).set_function(
            lambda: sum(read_depth() for read_depth in depths)
        )

    def reconciled(self, queue: str, outcome: str, seconds: float) -> None:
        """Record that a worker is done with a key."""
        self._reconciles.labels(queue, outcome).inc()
        self._reconcile_s.labels(queue).observe(seconds)

    def set_aside(self, kind: str, reason: str) -> None:
        """Record that something was set aside; the reason is odd or crashed."""
        self._set_aside.labels(kind, reason).inc()

    def set_aside_now(self, kind: str, count: int) -> None:
        """Record how many of a kind are set aside."""
        self._set_aside_now.labels(kind).set(count)

    def leading(self, lease: str, *, leads: bool) -> None:
        """Record whether this process leads."""
        self._leader.labels(lease).set(leads)
