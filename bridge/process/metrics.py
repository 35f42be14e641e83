"""Every metric slurm-bridge exports, with its meaning and unit.

One `Metrics` per process, handed to whoever counts; the methods say what happened in our words, so nobody else knows
the library. Names begin with `slurm_bridge_` (the process's own CPU and memory have the usual `process_`), units are
seconds and bytes, as Prometheus wants them.
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
"""Requests: a loopback answer to the default time-out."""

_WAIT_S = (0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)
"""From the fast path to a day in the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One metric, for the reference."""

    name: str
    kind: str
    """counter, gauge or histogram."""
    meaning: str
    labels: tuple[str, ...]


class Metrics:
    """What one process counts, on a registry of its own."""

    def __init__(self, program: str) -> None:
        self.descriptions: list[Description] = []
        disable_created_metrics()  # type: ignore[no-untyped-call]  # else a second series for each
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        Info(
            "slurm_bridge_build", "Which program of which version this is.", registry=self._registry
        ).info({"program": program, "version": importlib.metadata.version("slurm-bridge")})
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
            "Readings of the policy: loaded, or refused for its faults.",
            "outcome",
        )
        self._policy_rules = self._gauge("policy_rules", "Rules of the policy in force.")
        self._policy_is_current = self._gauge(
            "policy_is_current",
            "1 if the policy in force is what the settings file says, 0 if that has faults and the last good one is kept.",
        )
        self._extender_calls = self._counter(
            "extender_calls", "Calls of kube-scheduler.", "verb", "outcome"
        )
        self._extender_call_s = self._histogram(
            "extender_call_duration_seconds", "Time one call took.", _CALL_S, "verb"
        )
        self._queue_depth = self._gauge("queue_depth", "Keys that wait for a worker.", "queue")
        self._reconciles = self._counter(
            "reconciles",
            "Keys worked on: ok; transient: a peer was away or busy; refused: a peer said no; crashed.",
            "queue",
            "outcome",
        )
        self._reconcile_s = self._histogram(
            "reconcile_duration_seconds", "Time one key took.", _CALL_S, "queue"
        )
        self._set_aside = self._counter(
            "set_aside",
            "Objects and answers set aside so that they cost only themselves. odd: what somebody wrote cannot be taken as it "
            "stands; crashed: an error of ours, to be reported.",
            "kind",
            "reason",
        )
        for kind in get_args(Kind):  # from the start, so that the first one is an increase
            for reason in ("odd", "crashed"):
                self._set_aside.labels(kind, reason)
        self._set_aside_now = self._gauge(
            "set_aside_now", "What is set aside at the moment, at most 1000.", "kind"
        )
        self._decisions = self._counter("decisions", "Actions decided on.", "action")
        self._pods = self._gauge(
            "pods", "Pods in this leader's hands, by their row of docs/lifecycle.md.", "row"
        )
        self._nodes = self._gauge(
            "nodes",
            "Nodes that Slurm shall have, by the reason of their condition SlurmState.",
            "state",
        )
        self._placeholders = self._gauge(
            "placeholders", "Placeholders of ours in Slurm, by state.", "state"
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
            "complete (last container's end to Slurm told).",
            _WAIT_S,
            "step",
        )
        self._waiting = self._gauge(
            "waiting_workloads",
            "Workloads that wait in Slurm, by its reason as last read.",
            "reason",
        )
        self._evictions = self._counter(
            "evictions", "Pods that had to go although they had not ended, by cause.", "cause"
        )
        self._orphans = self._counter(
            "orphans_cancelled", "Placeholders cancelled because their pods were gone for good."
        )
        self._leader = self._gauge("leader", "1 while this process leads, else 0.", "lease")
        self._snapshot_age_s = self._gauge(
            "snapshot_age_seconds", "Age of the newest complete picture of Slurm's jobs."
        )
        self._certificate_expires_s = self._gauge(
            "certificate_expiry_timestamp_seconds", "When the served certificate ends, Unix time."
        )

        self._authority_expires_s = self._gauge(
            "authority_expiry_timestamp_seconds", "When the newest CA of ours ends, Unix time."
        )
        self._token_expires_s = self._gauge(
            "slurm_token_expiry_timestamp_seconds",
            "When the Slurm token ends, Unix time; +Inf: it does not say.",
        )
        self._webhook_works = self._gauge(
            "webhook_works",
            "1 if the API server got the webhook's answer at the last test, else 0.",
        )

    def slurm_call(self, operation: str, seconds: float, outcome: str) -> None:
        """A request to Slurm ended: `bridge.slurm`'s `on_call` hook."""
        self._slurm_requests.labels(operation, outcome).inc()
        self._slurm_request_s.labels(operation).observe(seconds)

    def kube_call(self, operation: str, seconds: float, outcome: str) -> None:
        """A request to the API server ended: `bridge.kube`'s `on_call` hook."""
        self._kube_requests.labels(operation, outcome).inc()
        self._kube_request_s.labels(operation).observe(seconds)

    def admission_review(self, verdict: str, seconds: float) -> None:
        """The webhook has answered."""
        self._admission_reviews.labels(verdict).inc()
        self._admission_review_s.observe(seconds)

    def policy_loaded(self, rules: int) -> None:
        """The policy of the settings file is in force."""
        self._policy_reloads.labels("loaded").inc()
        self._policy_rules.set(rules)
        self._policy_is_current.set(1)

    def policy_refused(self) -> None:
        """The settings file has changed and has faults."""
        self._policy_reloads.labels("refused").inc()
        self._policy_is_current.set(0)

    def extender_call(self, verb: str, outcome: str, seconds: float) -> None:
        """The extender has answered."""
        self._extender_calls.labels(verb, outcome).inc()
        self._extender_call_s.labels(verb).observe(seconds)

    def nodes(self, by_state: Mapping[str, int]) -> None:
        """Slurm's list of nodes was read."""
        _replace(self._nodes, by_state)

    def watch_queue(self, queue: str, depth: Callable[[], int]) -> None:
        """Ask for a queue's depth at every scrape."""
        self._queue_depth.labels(queue).set_function(depth)

    def reconciled(self, queue: str, outcome: str, seconds: float) -> None:
        """A worker is through with a key."""
        self._reconciles.labels(queue, outcome).inc()
        self._reconcile_s.labels(queue).observe(seconds)

    def set_aside(self, kind: str, reason: str) -> None:
        """Something was set aside; reason: odd, crashed."""
        self._set_aside.labels(kind, reason).inc()

    def set_aside_now(self, kind: str, count: int) -> None:
        """So many of a kind are set aside."""
        self._set_aside_now.labels(kind).set(count)

    def decided(self, action: str) -> None:
        """The lifecycle has decided on an action."""
        self._decisions.labels(action).inc()

    def pod_moved(self, before: str | None, now: str | None) -> None:
        """A pod has gone from one row of the lifecycle to another; None: it has come, or is gone."""
        if before is not None:
            self._pods.labels(before).dec()
        if now is not None:
            self._pods.labels(now).inc()

    def placeholders(self, by_state: Mapping[str, int]) -> None:
        """All placeholders of ours, counted anew."""
        _replace(self._placeholders, by_state)

    def waiting(self, by_reason: Mapping[str, int]) -> None:
        """All workloads that wait in Slurm, counted anew."""
        _replace(self._waiting, by_reason)

    def stepped(self, step: str, seconds: float) -> None:
        """A step of a pod's life is done."""
        self._step_s.labels(step).observe(seconds)

    def evicted(self, cause: str) -> None:
        """A pod was sent away, or ended at its gate."""
        self._evictions.labels(cause).inc()

    def orphan_cancelled(self) -> None:
        """A placeholder without pods was cancelled."""
        self._orphans.inc()

    def evictions_held_back(self, pods: int) -> None:
        """The circuit breaker has counted."""
        self._evictions_held_back.set(pods)

    def submitted(self, since_create_s: float) -> None:
        """A pod's placeholder was submitted."""
        self._submitted_s.observe(since_create_s)

    def bound(self, since_create_s: float) -> None:
        """A pod was bound."""
        self._bound_s.observe(since_create_s)

    def leading(self, lease: str, *, leads: bool) -> None:
        """This process has become the leader, or is it no longer."""
        self._leader.labels(lease).set(leads)

    def watch_snapshot_age(self, age_s: Callable[[], float]) -> None:
        """Ask for the age of the picture of Slurm at every scrape."""
        self._snapshot_age_s.set_function(age_s)

    def watch_certificate(self, expires_at: Callable[[], datetime]) -> None:
        """Ask for the end of the served certificate at every scrape."""
        self._certificate_expires_s.set_function(lambda: expires_at().timestamp())

    def authority(self, ends_at: datetime) -> None:
        """The leader has looked at the CA."""
        self._authority_expires_s.set(ends_at.timestamp())

    def webhook_works(self, works: bool) -> None:  # noqa: FBT001  # there is nothing else to say
        """The webhook was tested through the API server."""
        self._webhook_works.set(works)

    def watch_token(self, expires_at: Callable[[], datetime | None]) -> None:
        """Ask for the end of the Slurm token at every scrape."""

        def timestamp() -> float:
            ends_at = expires_at()
            return math.inf if ends_at is None else ends_at.timestamp()

        self._token_expires_s.set_function(timestamp)

    def exposition(self) -> bytes:
        """Everything, in Prometheus' text format (`CONTENT_TYPE`)."""
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
    """Forget labels that are no longer there."""
    gauge.clear()
    for label, count in counts.items():
        gauge.labels(label).set(count)
