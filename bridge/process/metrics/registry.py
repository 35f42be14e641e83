"""Every metric slurm-bridge exports, with its meaning and unit.

There is one `Metrics` per process, passed to all that record something. Its methods are named after
our own events, so no other module depends on the library. Names start with `slurm_bridge_` (the
process's own CPU and memory have the usual `process_`); units are seconds and bytes, as Prometheus
recommends.
"""

import importlib.metadata
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from bridge.domain.oddities import Kind

CONTENT_TYPE = CONTENT_TYPE_LATEST

_CALL_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Buckets for requests: from a loopback response to the default time-out."""

_WAIT_S = (0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)
"""Buckets for waits: from the fast path to a day in the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One metric, for the reference."""

    name: str
    kind: str
    """counter, gauge or histogram."""
    meaning: str
    labels: tuple[str, ...]


class Metrics:
    """The metrics of one process, on a registry of its own."""

    def __init__(self, program: str) -> None:
        self.descriptions: list[Description] = []
        disable_created_metrics()  # type: ignore[no-untyped-call]  # otherwise a second series for each
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        Info("slurm_bridge_build", "The program and its version.", registry=self._registry).info(
            {"program": program, "version": importlib.metadata.version("slurm-bridge")}
        )
        self._slurm_requests = self._counter(
            "slurm_requests", "Requests to slurmrestd and slurmctld.", "operation", "outcome"
        )
        self._slurm_request_s = self._histogram(
            "slurm_request_duration_seconds", "Time until Slurm answered.", _CALL_S, "operation"
        )
        self._kube_requests = self._counter(
            "kube_requests", "Requests to the API server.", "operation", "outcome"
        )
        self._kube_request_s = self._histogram(
            "kube_request_duration_seconds",
            "Time until the API server answered.",
            _CALL_S,
            "operation",
        )
        self._admission_reviews = self._counter(
            "admission_reviews", "Pods reviewed at CREATE.", "verdict"
        )
        self._admission_review_s = self._histogram(
            "admission_review_duration_seconds", "Time one review took.", _CALL_S
        )
        self._policy_reloads = self._counter(
            "policy_reloads",
            "Readings of the policy: loaded, or refused because of faults.",
            "outcome",
        )
        self._policy_rules = self._gauge("policy_rules", "Rules of the policy in force.")
        self._policy_is_current = self._gauge(
            "policy_is_current",
            "1 if the policy in force is that of the settings file, 0 if the file has faults and the "
            "last valid policy is kept.",
        )
        self._extender_calls = self._counter(
            "extender_calls", "Calls of kube-scheduler.", "verb", "outcome"
        )
        self._extender_call_s = self._histogram(
            "extender_call_duration_seconds", "Time one call took.", _CALL_S, "verb"
        )
        self._queue_depth = self._gauge("queue_depth", "Keys waiting for a worker.", "queue")
        self._reconciles = self._counter(
            "reconciles",
            "Keys processed: ok; transient: a peer was unavailable or busy; refused: a peer rejected "
            "the request; crashed.",
            "queue",
            "outcome",
        )
        self._reconcile_s = self._histogram(
            "reconcile_duration_seconds", "Time one key took.", _CALL_S, "queue"
        )
        self._set_aside = self._counter(
            "set_aside",
            "Objects and responses set aside so that they affect only themselves. odd: the input "
            "cannot be used as it is; crashed: a bug of ours, please report it.",
            "kind",
            "reason",
        )
        for kind in get_args(Kind):  # from the start, so that the first one is an increase
            for reason in ("odd", "crashed"):
                self._set_aside.labels(kind, reason)
        self._set_aside_now = self._gauge(
            "set_aside_now", "Objects currently set aside, at most 1000.", "kind"
        )
        self._decisions = self._counter("decisions", "Actions decided on.", "action")
        self._pods = self._gauge(
            "pods", "Pods handled by this leader, by their row of docs/lifecycle.md.", "row"
        )
        self._nodes = self._gauge(
            "nodes",
            "Nodes wanted in Slurm, by the reason of their condition SlurmState.",
            "state",
        )
        self._other_pods = self._gauge(
            "other_pods",
            "Pods on Slurm's nodes that Slurm did not place, by namespace (the 50 with the most).",
            "namespace",
        )
        self._placeholders = self._gauge(
            "placeholders", "Our placeholders in Slurm, by state.", "state"
        )
        self._evictions_held_back = self._gauge(
            "evictions_held_back", "Pods that the circuit breaker keeps; 0 while it is closed."
        )
        self._submitted_s = self._histogram(
            "pod_submitted_seconds", "From a pod's CREATE to its placeholder's submit.", _WAIT_S
        )
        self._bound_s = self._histogram(
            "pod_bound_seconds", "From a pod's CREATE to its Binding.", _WAIT_S
        )
        self._step_s = self._histogram(
            "step_duration_seconds",
            "Steps of a pod's life: queue (submit to start in Slurm), pin (start to un-gated), "
            "complete (last container's end to the report to Slurm).",
            _WAIT_S,
            "step",
        )
        self._waiting = self._gauge(
            "waiting_workloads",
            "Workloads waiting in Slurm, by Slurm's reason as last read.",
            "reason",
        )
        self._evictions = self._counter(
            "evictions", "Pods evicted before they had ended, by cause.", "cause"
        )
        self._orphans = self._counter(
            "orphans_cancelled", "Placeholders cancelled because their pods no longer existed."
        )
        self._orphans_held_back = self._gauge(
            "orphans_held_back",
            "Placeholders without pods that are not cancelled without an operator's word.",
        )
        self._leader = self._gauge("leader", "1 while this process leads, else 0.", "lease")
        self._snapshot_age_s = self._gauge(
            "snapshot_age_seconds", "Age of the newest complete snapshot of Slurm's jobs."
        )
        self._clock_skew_s = self._gauge(
            "clock_skew_seconds",
            "slurmctld's clock minus this machine's, beyond what the response time explains.",
        )
        self._certificate_expires_s = self._gauge(
            "certificate_expiry_timestamp_seconds", "When the served certificate ends, Unix time."
        )

        self._authority_expires_s = self._gauge(
            "authority_expiry_timestamp_seconds", "When our newest CA ends, Unix time."
        )
        self._token_expires_s = self._gauge(
            "slurm_token_expiry_timestamp_seconds",
            "When the Slurm token ends, Unix time; +Inf: it does not say.",
        )
        self._webhook_works = self._gauge(
            "webhook_works",
            "1 if the API server got the webhook's response at the last test, else 0.",
        )

    def slurm_call(self, operation: str, seconds: float, outcome: str) -> None:
        """Record a finished request to Slurm; the `on_call` hook of `bridge.slurm`."""
        self._slurm_requests.labels(operation, outcome).inc()
        self._slurm_request_s.labels(operation).observe(seconds)

    def kube_call(self, operation: str, seconds: float, outcome: str) -> None:
        """Record a finished request to the API server; the `on_call` hook of `bridge.kube`."""
        self._kube_requests.labels(operation, outcome).inc()
        self._kube_request_s.labels(operation).observe(seconds)

    def admission_review(self, verdict: str, seconds: float) -> None:
        """Record a response of the webhook."""
        self._admission_reviews.labels(verdict).inc()
        self._admission_review_s.observe(seconds)

    def policy_loaded(self, rules: int) -> None:
        """Record that the policy of the settings file is in force."""
        self._policy_reloads.labels("loaded").inc()
        self._policy_rules.set(rules)
        self._policy_is_current.set(1)

    def policy_refused(self) -> None:
        """Record that the changed settings file has faults."""
        self._policy_reloads.labels("refused").inc()
        self._policy_is_current.set(0)

    def extender_call(self, verb: str, outcome: str, seconds: float) -> None:
        """Record a response of the extender."""
        self._extender_calls.labels(verb, outcome).inc()
        self._extender_call_s.labels(verb).observe(seconds)

    def nodes(self, by_state: Mapping[str, int]) -> None:
        """Record the nodes by state, after a reading of Slurm's nodes."""
        _replace(self._nodes, by_state)

    def other_pods(self, by_namespace: Mapping[str, int]) -> None:
        """Record the pods that Slurm did not place on its nodes."""
        _replace(self._other_pods, by_namespace)

    def watch_queue(self, queue: str, depth: Callable[[], int]) -> None:
        """Call `depth` for a queue's depth at every scrape."""
        self._queue_depth.labels(queue).set_function(depth)

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

    def decided(self, action: str) -> None:
        """Record an action the lifecycle has decided on."""
        self._decisions.labels(action).inc()

    def pod_moved(self, before: str | None, now: str | None) -> None:
        """Record that a pod changed its row of the lifecycle; None: it is new, or gone."""
        if before is not None:
            self._pods.labels(before).dec()
        if now is not None:
            self._pods.labels(now).inc()

    def placeholders(self, by_state: Mapping[str, int]) -> None:
        """Replace the counts of our placeholders."""
        _replace(self._placeholders, by_state)

    def waiting(self, by_reason: Mapping[str, int]) -> None:
        """Replace the counts of workloads that wait in Slurm."""
        _replace(self._waiting, by_reason)

    def stepped(self, step: str, seconds: float) -> None:
        """Record the duration of a step of a pod's life."""
        self._step_s.labels(step).observe(seconds)

    def evicted(self, cause: str) -> None:
        """Record that a pod was evicted, or ended at its gate."""
        self._evictions.labels(cause).inc()

    def orphan_cancelled(self) -> None:
        """Record that a placeholder without pods was cancelled."""
        self._orphans.inc()

    def orphans_held_back(self, placeholders: int) -> None:
        """Record how many placeholders without pods are kept."""
        self._orphans_held_back.set(placeholders)

    def evictions_held_back(self, pods: int) -> None:
        """Record how many evictions the circuit breaker holds back."""
        self._evictions_held_back.set(pods)

    def submitted(self, since_create_s: float) -> None:
        """Record that a pod's placeholder was submitted."""
        self._submitted_s.observe(since_create_s)

    def bound(self, since_create_s: float) -> None:
        """Record that a pod was bound."""
        self._bound_s.observe(since_create_s)

    def leading(self, lease: str, *, leads: bool) -> None:
        """Record whether this process leads."""
        self._leader.labels(lease).set(leads)

    def watch_snapshot_age(self, age_s: Callable[[], float]) -> None:
        """Call `age_s` for the age of the newest snapshot of Slurm at every scrape."""
        self._snapshot_age_s.set_function(age_s)

    def watch_clock(self, skew_s: Callable[[], float]) -> None:
        """Call `skew_s` for the difference of the clocks at every scrape."""
        self._clock_skew_s.set_function(skew_s)

    def watch_certificate(self, expires_at: Callable[[], datetime]) -> None:
        """Call `expires_at` for the end of the served certificate at every scrape."""
        self._certificate_expires_s.set_function(lambda: expires_at().timestamp())

    def authority(self, ends_at: datetime) -> None:
        """Record when the newest CA ends."""
        self._authority_expires_s.set(ends_at.timestamp())

    def webhook_works(self, works: bool) -> None:  # noqa: FBT001  # the only argument
        """Record the result of testing the webhook through the API server."""
        self._webhook_works.set(works)

    def watch_token(self, expires_at: Callable[[], datetime | None]) -> None:
        """Call `expires_at` for the end of the Slurm token at every scrape."""

        def timestamp() -> float:
            ends_at = expires_at()
            return math.inf if ends_at is None else ends_at.timestamp()

        self._token_expires_s.set_function(timestamp)

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format (`CONTENT_TYPE`)."""
        return generate_latest(self._registry)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        self._describe(f"{name}_total", "counter", meaning, labels)
        return Counter(f"slurm_bridge_{name}", meaning, labels, registry=self._registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        self._describe(name, "gauge", meaning, labels)
        return Gauge(f"slurm_bridge_{name}", meaning, labels, registry=self._registry)

    def _histogram(
        self, name: str, meaning: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        self._describe(name, "histogram", meaning, labels)
        return Histogram(
            f"slurm_bridge_{name}", meaning, labels, buckets=buckets, registry=self._registry
        )

    def _describe(self, name: str, kind: str, meaning: str, labels: Sequence[str]) -> None:
        self.descriptions.append(
            Description(
                name=f"slurm_bridge_{name}", kind=kind, meaning=meaning, labels=tuple(labels)
            )
        )


def _replace(gauge: Gauge, counts: Mapping[str, int]) -> None:
    """Set a gauge's counts by label and drop all other labels."""
    gauge.clear()
    for label, count in counts.items():
        gauge.labels(label).set(count)
