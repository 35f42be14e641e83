"""What the doctor says of admission policies: each binding that the chart makes has to be there."""

from dataclasses import replace

import pytest

from slurmcli.doctor.checks import kube
from slurmcli.doctor.checks.kube import KubeFacts
from slurmruntime.values import findings
from slurmruntime.values.findings import Finding, Severity

ALL = frozenset({*kube.ALWAYS_BOUND, "elsewhere", "taint", "daemonsets"})
INSTALLED = KubeFacts(
    version=(1, 36), skew_s=0.0, release="slurm-bridge", settings_faults=(), bindings=ALL
)


def policies(facts: KubeFacts) -> Finding:
    (found,) = (each for each in findings.report(kube.CHECKS, facts) if each.check == "policies")
    return found


@pytest.mark.parametrize(
    ("facts", "missing"),
    [
        *((replace(INSTALLED, bindings=ALL - {name}), name) for name in sorted(ALL)),
        (replace(INSTALLED, has_profiles=True), "claims, claims-by-resource, templates"),
        (
            replace(INSTALLED, has_profiles=True, bindings=ALL | {"claims"}),
            "claims-by-resource, templates",
        ),
        (replace(INSTALLED, selecting_terms=3), "elsewhere-1, elsewhere-2"),
        (replace(INSTALLED, webhook_has_last_word=False), "impossible"),
        (
            replace(INSTALLED, serves_slurm_jobs=True),
            "accounts-pods-companions, companions, companions-kept, slurmjobs",
        ),
        (replace(INSTALLED, direct_denies=False), "accounts-pods-elsewhere"),
    ],
)
def test_each_binding_that_is_missing_is_named(facts: KubeFacts, missing: str) -> None:
    found = policies(facts)

    assert Severity.FAULT is found.verdict
    assert f"policies are missing or not bound: {missing}" == found.found
    assert "helm upgrade" in found.fix


@pytest.mark.parametrize(
    "facts",
    [
        INSTALLED,
        replace(
            INSTALLED,
            bindings=ALL - {"taint", "daemonsets"} | {"accounts-pods-elsewhere"},
            has_taint=False,
        ),
        replace(INSTALLED, bindings=ALL - {"elsewhere"}, selecting_terms=0),
    ],
)
def test_what_the_chart_does_not_make_is_not_missed(facts: KubeFacts) -> None:
    assert Severity.OK is policies(facts).verdict
