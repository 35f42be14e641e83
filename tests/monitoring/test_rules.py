"""The alert rules: promtool accepts them, each one fires when it should, and none does on a healthy day."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.monitoring.judging import alerts, judged, promtool

RULES = Path(__file__).parents[2] / "deploy/chart/files/rules.yaml"

DAY = 86400
HEALTHY = {
    'slurm_bridge_build_info{program="webhook",instance="w"}': "1x60",
    'slurm_bridge_build_info{program="extender",instance="e"}': "1x60",
    'slurm_bridge_build_info{program="controllers",instance="c"}': "1x60",
    'slurm_bridge_leader{lease="slurm-bridge-extender",instance="e"}': "1x60",
    'slurm_bridge_leader{lease="slurm-bridge-controllers",instance="c"}': "1x60",
    'slurm_bridge_snapshot_age_seconds{instance="e"}': "1x60",
    'slurm_bridge_slurm_requests_total{operation="job.get",outcome="ok"}': "0+100x60",
    'slurm_bridge_slurm_requests_total{operation="job.get",outcome="not_found"}': "0+90x60",
    'slurm_bridge_slurm_requests_total{operation="job.get",outcome="unavailable"}': "0+1x60",
    'slurm_bridge_kube_requests_total{operation="LIST pods",outcome="ok"}': "0+100x60",
    'slurm_bridge_kube_requests_total{operation="LIST pods",outcome="conflict"}': "0+50x60",
    'slurm_bridge_reconciles_total{queue="pods",outcome="crashed"}': "0x60",
    'slurm_bridge_queue_depth{queue="pods"}': "5000x3 0x60",
    'slurm_bridge_admission_review_duration_seconds_bucket{le="0.01"}': "0+100x60",
    'slurm_bridge_admission_review_duration_seconds_bucket{le="+Inf"}': "0+100x60",
    'slurm_bridge_evictions_total{cause="SlurmCancelled"}': "0+50x60",
    'slurm_bridge_evictions_total{cause="SlurmNodeFail"}': "0x60",
    "slurm_bridge_orphans_cancelled_total": "0x60",
    "slurm_bridge_orphans_held_back": "0x60",
    'slurm_bridge_clock_skew_seconds{instance="c"}': "-2x60",
    'slurm_bridge_pods{row="placed"}': "5x2 0x60",
    'slurm_bridge_certificate_expiry_timestamp_seconds{instance="w"}': f"{90 * DAY}x60",
    'slurm_bridge_certificate_expiry_timestamp_seconds{instance="c"}': "0x60",
    'slurm_bridge_slurm_token_expiry_timestamp_seconds{instance="e"}': f"{30 * DAY}x60",
    'slurm_bridge_slurm_token_expiry_timestamp_seconds{instance="w"}': "0x60",
    "slurm_bridge_evictions_held_back": "0x60",
    "slurm_bridge_pods_without_job": "0x60",
    "slurm_bridge_webhook_works": "1x60",
    'slurm_bridge_loop_longest_standstill_seconds{loop="main",instance="e"}': "0.1x5 3x8 0.1x60",
    "slurm_bridge_policy_is_current": "1x60",
    'slurm_bridge_agent_pods{cores="untold",instance="a"}': "3x60",
    'slurm_bridge_agent_pods{cores="missing",instance="a"}': "0x5 1x2 0x53",
}
"""Series by the minute. Clocks of promtool begin at 0."""

SICK: Mapping[str, Mapping[str, str | None]] = {
    "SlurmBridgeNoLeader": {
        'slurm_bridge_leader{lease="slurm-bridge-extender",instance="e"}': "0x60"
    },
    "SlurmBridgeAbsent": {'slurm_bridge_build_info{program="webhook",instance="w"}': None},
    "SlurmBridgeCannotReadSlurm": {
        'slurm_bridge_snapshot_age_seconds{instance="e"}': "0+60x60",
    },
    "SlurmBridgeSlurmFails": {
        'slurm_bridge_slurm_requests_total{operation="job.get",outcome="unavailable"}': "0+60x60"
    },
    "SlurmBridgeKubernetesFails": {
        'slurm_bridge_kube_requests_total{operation="LIST pods",outcome="forbidden"}': "0+60x60"
    },
    "SlurmBridgeReconcileCrashes": {
        'slurm_bridge_reconciles_total{queue="pods",outcome="crashed"}': "0x55 1x10"
    },
    "SlurmBridgeCrashes": {
        'slurm_bridge_set_aside_total{kind="pod",reason="crashed"}': "0x55 1x10"
    },
    "SlurmBridgeSetAside": {'slurm_bridge_set_aside_now{kind="slurm_job"}': "2x60"},
    "SlurmBridgeQueueDoesNotDrain": {'slurm_bridge_queue_depth{queue="pods"}': "500x60"},
    "SlurmBridgeLoopStoodStill": {
        'slurm_bridge_loop_longest_standstill_seconds{loop="main",instance="e"}': "3x60"
    },
    "SlurmBridgeWebhookSlow": {
        'slurm_bridge_admission_review_duration_seconds_bucket{le="0.01"}': "0x60",
        'slurm_bridge_admission_review_duration_seconds_bucket{le="2.5"}': "0+100x60",
    },
    "SlurmBridgeEvictions": {
        'slurm_bridge_evictions_total{cause="SlurmNodeFail"}': "0x55 30x10",
    },
    "SlurmBridgeOrphans": {"slurm_bridge_orphans_cancelled_total": "0x55 1x10"},
    "SlurmBridgeOrphansHeldBack": {"slurm_bridge_orphans_held_back": "24x60"},
    "SlurmBridgeOtherPods": {
        'slurm_bridge_other_pods{namespace="kube-system"}': "9x60",
        'slurm_bridge_other_pods{namespace="intruder"}': "0x30 1x30",
    },
    "SlurmBridgeClock": {'slurm_bridge_clock_skew_seconds{instance="c"}': "-3600x60"},
    "SlurmBridgePodsNotBound": {'slurm_bridge_pods{row="placed"}': "3x60"},
    "SlurmBridgeCertificateExpires": {
        'slurm_bridge_certificate_expiry_timestamp_seconds{instance="w"}': f"{5 * DAY}x90"
    },
    "SlurmBridgeTokenExpires": {
        'slurm_bridge_slurm_token_expiry_timestamp_seconds{instance="e"}': f"{DAY}x60"
    },
    "SlurmBridgeEvictionsHeldBack": {"slurm_bridge_evictions_held_back": "12x60"},
    "SlurmBridgePodsWithoutJob": {"slurm_bridge_pods_without_job": "3x60"},
    "SlurmBridgeWebhookDoesNotWork": {"slurm_bridge_webhook_works": "0x60"},
    "SlurmBridgePolicyNotCurrent": {"slurm_bridge_policy_is_current": "0x60"},
    "SlurmBridgeCoresNotPinned": {
        'slurm_bridge_agent_pods{cores="failed",instance="a"}': "1x60",
    },
}


def test_promtool_accepts_them(prometheus: Path) -> None:
    assert f"{len(alerts(RULES))} rules found" in promtool(
        prometheus, "check", "rules", "--lint=all", "--lint-fatal", str(RULES)
    )


def test_nothing_fires_on_a_healthy_day(prometheus: Path, tmp_path: Path) -> None:
    assert "SUCCESS" in judged(
        prometheus, RULES, tmp_path, HEALTHY, dict.fromkeys(alerts(RULES), 0)
    )


def test_nothing_fires_where_one_process_leads_both(prometheus: Path, tmp_path: Path) -> None:
    series = {name.replace('instance="c"', 'instance="e"'): said for name, said in HEALTHY.items()}
    del series['slurm_bridge_build_info{program="extender",instance="e"}']
    del series['slurm_bridge_build_info{program="controllers",instance="e"}']
    series['slurm_bridge_build_info{program="leader",instance="e"}'] = "1x60"

    assert "SUCCESS" in judged(prometheus, RULES, tmp_path, series, dict.fromkeys(alerts(RULES), 0))


@pytest.mark.parametrize("alert", alerts(RULES))
def test_each_fires_when_it_should_and_alone(prometheus: Path, tmp_path: Path, alert: str) -> None:
    series = {**HEALTHY, **SICK[alert]}
    expected = {name: int(name == alert) for name in alerts(RULES)}

    assert "SUCCESS" in judged(prometheus, RULES, tmp_path, series, expected)
