"""What the doctor says of device profiles, which let pods have resource claims."""

from collections.abc import Sequence

import pytest

from slurmcli.doctor.checks import kube
from slurmcli.doctor.checks.kube import KubeFacts
from slurmruntime.values import findings
from slurmruntime.values.findings import Finding, Severity


def said(
    check: str,
    *,
    version: tuple[int, int] = (1, 36),
    has_profiles: bool = True,
    faults: Sequence[str] | None = (),
    unserved: Sequence[str] | None = (),
) -> Finding:
    facts = KubeFacts(
        version=version,
        skew_s=0.0,
        release="slurm-bridge",
        settings_faults=faults,
        has_profiles=has_profiles,
        unserved=unserved,
    )
    (found,) = [each for each in findings.report(kube.CHECKS, facts) if each.check == check]
    return found


def test_profiles_need_a_kubernetes_that_has_claims() -> None:
    found = said("Kubernetes", version=(1, 33))

    assert Severity.FAULT is found.verdict
    assert "claims" in found.found
    assert Severity.OK is said("Kubernetes", version=(1, 33), has_profiles=False).verdict


def test_a_profile_that_nobody_can_use_is_a_warning() -> None:
    found = said("device profiles", unserved=("no DeviceClass selects x", "no node has y"))

    assert Severity.WARNING is found.verdict
    assert "no DeviceClass selects x; no node has y" == found.found
    assert "controllers.device_profiles" in found.fix


@pytest.mark.parametrize(
    ("faults", "has_profiles", "unserved", "verdict"),
    [
        pytest.param((), True, (), Severity.OK, id="all are served"),
        pytest.param((), False, None, Severity.OK, id="there is none"),
        pytest.param((), True, None, Severity.NOT_CHECKED, id="may not look"),
        pytest.param(None, False, None, Severity.NOT_CHECKED, id="no settings"),
    ],
)
def test_no_warning_without_a_reason(
    faults: Sequence[str] | None,
    has_profiles: bool,
    unserved: Sequence[str] | None,
    verdict: Severity,
) -> None:
    found = said("device profiles", faults=faults, has_profiles=has_profiles, unserved=unserved)

    assert verdict is found.verdict
