"""Requests to us: reviews, calls of kube-scheduler and of slurmctld's scripts; also policy and certificates."""

from collections.abc import Callable
from datetime import datetime

from slurmruntime.process.metrics.registry import CALL_S, Registry


class WebhookMetrics:
    """Reviews, and whether they reach the API server."""

    def __init__(self, registry: Registry) -> None:
        self._admission_reviews = registry.counter(
            "admission_reviews", "Pods reviewed at CREATE.", "verdict"
        )
        self._admission_review_s = registry.histogram(
            "admission_review_duration_seconds", "Time one review took.", CALL_S
        )
        self._webhook_works = registry.gauge(
            "webhook_works",
            "1 if the API server got the webhook's response at the last test, else 0.",
        )

    def review(self, verdict: str, seconds: float) -> None:
        """Record a response of the webhook."""
        self._admission_reviews.labels(verdict).inc()
        self._admission_review_s.observe(seconds)

    def works(self, works: bool) -> None:  # noqa: FBT001  # the only argument
        """Record the result of testing the webhook through the API server."""
        self._webhook_works.set(works)


class ExtenderMetrics:
    """Calls of kube-scheduler."""

    def __init__(self, registry: Registry) -> None:
        self._extender_calls = registry.counter(
            "extender_calls", "Calls of kube-scheduler.", "verb", "outcome"
        )
        self._extender_call_s = registry.histogram(
            "extender_call_duration_seconds", "Time one call took.", CALL_S, "verb"
        )

    def call(self, verb: str, outcome: str, seconds: float) -> None:
        """Record a response of the extender."""
        self._extender_calls.labels(verb, outcome).inc()
        self._extender_call_s.labels(verb).observe(seconds)


class EscrowMetrics:
    """Messages of slurmctld's scripts."""

    def __init__(self, registry: Registry) -> None:
        self._messages = registry.counter(
            "escrow_messages",
            "Messages of PrologSlurmctld and EpilogSlurmctld, by the answer: go, wait (repeated later), told (an end was reported), "
            "or unauthorized and malformed.",
            "outcome",
        )

    def answered(self, outcome: str) -> None:
        """Record an answer."""
        self._messages.labels(outcome).inc()


class LoopMetrics:
    """Event loops, and how long they stood still."""

    def __init__(self, registry: Registry) -> None:
        self._standstill_s = registry.gauge(
            "loop_longest_standstill_seconds",
            "The longest time that an event loop stood still, in the last five to ten minutes, to 0.05 s; "
            "meanwhile it renews no lease and answers no probe. main: the program's; scheduler: the one that answers kube-scheduler.",
            "loop",
        )

    def watch_standstill(self, loop: str, longest_s: Callable[[], float]) -> None:
        """Call `longest_s` for a loop's longest standstill at every scrape."""
        self._standstill_s.labels(loop).set_function(longest_s)


class PolicyMetrics:
    """The policy in force."""

    def __init__(self, registry: Registry) -> None:
        self._policy_reloads = registry.counter(
            "policy_reloads",
            "Readings of the policy: loaded, or refused because of faults.",
            "outcome",
        )
        self._policy_rules = registry.gauge("policy_rules", "Rules of the policy in force.")
        self._policy_is_current = registry.gauge(
            "policy_is_current",
            "1 if the policy in force is that of the settings file, 0 if the file has faults and the "
            "last valid policy is kept.",
        )

    def loaded(self, rules: int) -> None:
        """Record that the policy of the settings file is in force."""
        self._policy_reloads.labels("loaded").inc()
        self._policy_rules.set(rules)
        self._policy_is_current.set(1)

    def refused(self) -> None:
        """Record that the changed settings file has faults."""
        self._policy_reloads.labels("refused").inc()
        self._policy_is_current.set(0)


class CertificateMetrics:
    """When certificates expire."""

    def __init__(self, registry: Registry) -> None:
        self._certificate_expires_s = registry.gauge(
            "certificate_expiry_timestamp_seconds",
            "When the served certificate expires, Unix time.",
        )
        self._authority_expires_s = registry.gauge(
            "authority_expiry_timestamp_seconds", "When our newest CA expires, Unix time."
        )

    def watch(self, expires_at: Callable[[], datetime]) -> None:
        """Call `expires_at` for the expiry of the served certificate at every scrape."""
        self._certificate_expires_s.set_function(lambda: expires_at().timestamp())

    def authority(self, ends_at: datetime) -> None:
        """Record when the newest CA expires."""
        self._authority_expires_s.set(ends_at.timestamp())
