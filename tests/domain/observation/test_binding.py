"""Whether one pod cannot be bound, or nobody binds."""

from dataclasses import replace

from bridge.domain.model.pods import Condition, Pod
from bridge.domain.observation.binding import Bindings
from tests.make import lives

NOW = 1000.0
SECOND = 1.0


def told(reason: str, status: str = "False") -> Pod:
    said = Condition(type="PodScheduled", status=status, reason=reason)
    return replace(lives.placed(), conditions=(said,))


def test_a_pod_that_kube_scheduler_has_not_tried_does_not_fail() -> None:
    bindings = Bindings()
    bindings.bound(NOW)

    for pod in (lives.placed(), told("SchedulingGated"), told("", status="True")):
        assert bindings.failing_since(pod, NOW) is None


def test_a_pod_that_suits_no_node_fails_whoever_else_is_bound() -> None:
    bindings, pod = Bindings(), told("Unschedulable")

    assert NOW == bindings.failing_since(pod, NOW)
    assert NOW == bindings.failing_since(pod, NOW + 90 * SECOND)


def test_an_error_counts_only_while_others_are_bound() -> None:
    bindings, pod = Bindings(), told("SchedulerError")
    assert bindings.failing_since(pod, NOW) is None

    bindings.bound(NOW + 10 * SECOND)
    assert NOW + 10 * SECOND == bindings.failing_since(pod, NOW + 10 * SECOND)
    bindings.bound(NOW + 40 * SECOND)
    assert NOW + 10 * SECOND == bindings.failing_since(pod, NOW + 70 * SECOND)
    assert bindings.failing_since(pod, NOW + 71 * SECOND) is None


def test_after_a_lull_the_time_of_an_error_counts_anew() -> None:
    bindings, pod = Bindings(), told("SchedulerError")
    bindings.bound(NOW)
    assert NOW == bindings.failing_since(pod, NOW)

    back = NOW + 180 * SECOND
    bindings.bound(back)

    assert back == bindings.failing_since(pod, back)


def test_an_error_during_an_outage_is_not_held_against_a_pod_that_fails_afterwards() -> None:
    bindings = Bindings()
    bindings.failing_since(told("SchedulerError"), NOW)
    later = NOW + 180 * SECOND

    assert later == bindings.failing_since(told("Unschedulable"), later)


def test_a_pod_that_was_bound_is_forgotten() -> None:
    bindings, pod = Bindings(), told("Unschedulable")
    bindings.failing_since(pod, NOW)

    bindings.forget(pod.uid)

    assert NOW + SECOND == bindings.failing_since(pod, NOW + SECOND)
