"""slurm-exporter's alert rules: promtool accepts them, each one fires when it should, and none does on a healthy day."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.monitoring.judging import alerts, judged, promtool

RULES = Path(__file__).parents[2] / "deploy/exporter/chart/files/rules.yaml"

DAY = 86400
HEALTHY = {
    'slurm_up{source="slurmctld",instance="e"}': "1x60",
    'slurm_up{source="slurmdbd",instance="e"}': "1x60",
    'slurm_exporter_data_fresh{source="jobs",instance="e"}': "1x60",
    'slurm_nodes_by_state{state="IDLE",instance="e"}': "90x60",
    'slurm_nodes_by_state{state="DOWN",instance="e"}': "10x60",
    'slurm_nodes_available{instance="e"}': "95x60",
    'slurm_node_reason_since_timestamp_seconds{node="a",instance="e"}': "0x60",
    'slurm_jobs_by_state{state="PENDING",instance="e"}': "7x60",
    'slurm_jobs_held{instance="e"}': "1x60",
    'slurm_pending_dependent_jobs{instance="e"}': "1x60",
    'slurm_sched_cycles_total{instance="e"}': "0+10x60",
    'slurm_sched_cycle_seconds_total{instance="e"}': "0+1x60",
    'slurm_ctld_dbd_queue{instance="e"}': "10x60",
    'slurm_license_free{license="a",instance="e"}': "1x60",
    'slurm_license_total{license="a",instance="e"}': "10x60",
    'slurm_job_ends_total{partition="p",state="COMPLETED",instance="e"}': "0+10x60",
    'slurm_job_ends_total{partition="p",state="FAILED",instance="e"}': "0+1x60",
    'slurm_exporter_token_expiry_timestamp_seconds{instance="e"}': f"{30 * DAY}x60",
    'slurm_exporter_series_dropped{names="own",chapter="nodes",instance="e"}': "0x60",
}
"""Series by the minute. Clocks of promtool begin at 0."""

SICK: Mapping[str, Mapping[str, str | None]] = {
    "SlurmDown": {'slurm_up{source="slurmctld",instance="e"}': "0x60"},
    "SlurmDbdDown": {'slurm_up{source="slurmdbd",instance="e"}': "0x60"},
    "SlurmDataStale": {'slurm_exporter_data_fresh{source="jobs",instance="e"}': "0x60"},
    "SlurmNodesDown": {'slurm_nodes_available{instance="e"}': "80x60"},
    "SlurmNodeAwayLong": {
        'slurm_node_reason_since_timestamp_seconds{node="a",instance="e"}': f"{-8 * DAY}x60"
    },
    "SlurmNothingStarts": {'slurm_sched_cycles_total{instance="e"}': "10x60"},
    "SlurmSchedulerSlow": {'slurm_sched_cycle_seconds_total{instance="e"}': "0+60x60"},
    "SlurmDbdQueueGrows": {'slurm_ctld_dbd_queue{instance="e"}': "9000x60"},
    "SlurmLicenseExhausted": {'slurm_license_free{license="a",instance="e"}': "0x70"},
    "SlurmJobsFail": {'slurm_job_ends_total{partition="p",state="FAILED",instance="e"}': "0+20x60"},
    "SlurmTokenExpires": {
        'slurm_exporter_token_expiry_timestamp_seconds{instance="e"}': f"{DAY}x60"
    },
    "SlurmSeriesDropped": {
        'slurm_exporter_series_dropped{names="own",chapter="nodes",instance="e"}': "5x60"
    },
}


def test_promtool_accepts_them(prometheus: Path) -> None:
    assert f"{len(alerts(RULES))} rules found" in promtool(
        prometheus, "check", "rules", "--lint=all", "--lint-fatal", str(RULES)
    )


def test_nothing_fires_on_a_healthy_day(prometheus: Path, tmp_path: Path) -> None:
    expected = dict.fromkeys(alerts(RULES), 0)
    assert "SUCCESS" in judged(prometheus, RULES, tmp_path, HEALTHY, expected)


@pytest.mark.parametrize("alert", alerts(RULES))
def test_each_fires_when_it_should_and_alone(prometheus: Path, tmp_path: Path, alert: str) -> None:
    series = {**HEALTHY, **SICK[alert]}
    expected = {name: int(name == alert) for name in alerts(RULES)}
    assert "SUCCESS" in judged(prometheus, RULES, tmp_path, series, expected)
