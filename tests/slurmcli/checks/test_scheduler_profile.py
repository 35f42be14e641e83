"""What the doctor says of a kube-scheduler that serves pods which only the extender is to bind."""

from dataclasses import replace

import pytest

from slurmcli.doctor.checks import kube
from slurmcli.doctor.checks.kube import KubeFacts
from slurmruntime.values import findings, names
from slurmruntime.values.findings import Severity

OURS = {"schedulerName": names.SCHEDULER_NAME}
KUBE = KubeFacts(version=(1, 36), skew_s=0.0, release="slurm-bridge", settings_faults=())


@pytest.mark.parametrize(
    ("scheduler", "verdict"),
    [
        (names.binder(names.SCHEDULER_NAME), Severity.FAULT),
        (names.binder("another-release"), Severity.OK),
    ],
)
def test_two_must_not_bind_the_same_pods(scheduler: str, verdict: Severity) -> None:
    profiles = [OURS, {"schedulerName": scheduler}]
    extender = {"filterVerb": "filter", "bindVerb": "bind"}
    facts = replace(KUBE, scheduler={"profiles": profiles, "extenders": [extender]})

    report = findings.report(kube.CHECKS, facts)
    (found,) = (each for each in report if each.check == "scheduler profile")

    assert verdict is found.verdict
