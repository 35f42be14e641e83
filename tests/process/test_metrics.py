import math
import re
from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from slurmruntime.process.metrics import Metrics
from tests.make.samples import value


def test_every_metric_has_a_prefix_a_meaning_and_a_base_unit() -> None:
    families = list(text_string_to_metric_families(Metrics("test").registry.exposition().decode()))

    assert len(families) > 20
    for family in families:
        assert family.name.startswith(("slurm_bridge_", "process_"))
        assert family.documentation.endswith(".")
        if family.type == "histogram":
            assert family.name.endswith("_seconds")
        assert not re.search(r"_(ms|minutes|mib|days)$", family.name)


def test_two_of_them_do_not_meet() -> None:
    one, other = Metrics("one"), Metrics("other")
    one.pods.decided("Wait")

    assert 1 == value(one, "slurm_bridge_decisions_total", action="Wait")
    assert math.isnan(value(other, "slurm_bridge_decisions_total", action="Wait"))


def test_calls_are_counted_by_outcome_and_timed_by_operation() -> None:
    metrics = Metrics("test")
    metrics.slurm.call("job.submit", 0.25, "ok")
    metrics.slurm.call("job.submit", 0.5, "unavailable")
    metrics.kube.call("patch", 1.0, "conflict")
    metrics.extender.call("bind", "bound", 0.1)
    metrics.webhook.review("allowed", 0.1)
    metrics.work.reconciled("pods", "ok", 0.1)

    assert 1 == value(
        metrics, "slurm_bridge_slurm_requests_total", operation="job.submit", outcome="ok"
    )
    assert 0.75 == value(
        metrics, "slurm_bridge_slurm_request_duration_seconds_sum", operation="job.submit"
    )
    assert 1 == value(
        metrics, "slurm_bridge_kube_requests_total", operation="patch", outcome="conflict"
    )
    assert 1 == value(metrics, "slurm_bridge_extender_calls_total", verb="bind", outcome="bound")
    assert 1 == value(metrics, "slurm_bridge_admission_reviews_total", verdict="allowed")
    assert 1 == value(metrics, "slurm_bridge_reconciles_total", queue="pods", outcome="ok")


def test_counts_of_what_is_gone_go() -> None:
    metrics = Metrics("test")
    metrics.placeholders.count({"waiting": 2, "running": 1})
    metrics.placeholders.count({"running": 3})

    assert math.isnan(value(metrics, "slurm_bridge_placeholders", state="waiting"))
    assert 3 == value(metrics, "slurm_bridge_placeholders", state="running")


def test_pods_are_counted_where_they_are() -> None:
    metrics = Metrics("extender")

    for before, now in [(None, "gated"), (None, "gated"), ("gated", "terminal"), ("gated", None)]:
        metrics.pods.moved(before, now)

    assert 0 == value(metrics, "slurm_bridge_pods", row="gated")
    assert 1 == value(metrics, "slurm_bridge_pods", row="terminal")


def test_what_is_watched_is_asked_at_every_scrape() -> None:
    metrics = Metrics("test")
    queue = ["a"]
    metrics.work.watch_queue("pods", queue.__len__)
    metrics.slurm.watch_snapshot_age(lambda: 1.5)
    metrics.certificates.watch(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    queue.append("b")

    assert 2 == value(metrics, "slurm_bridge_queue_depth", queue="pods")
    assert 1.5 == value(metrics, "slurm_bridge_snapshot_age_seconds")
    assert 1767225600 == value(metrics, "slurm_bridge_certificate_expiry_timestamp_seconds")


def test_the_process_itself_is_measured() -> None:
    metrics = Metrics("test")

    assert value(metrics, "process_cpu_seconds_total") > 0
    assert value(metrics, "process_resident_memory_bytes") > 2**20
