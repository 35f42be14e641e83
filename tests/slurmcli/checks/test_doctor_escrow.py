"""What the doctor says of slurmctld's scripts and their door."""

import pytest

from slurmcli.doctor.checks import between
from slurmcli.doctor.checks.between import BothFacts
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values import findings, names
from slurmruntime.values.findings import Severity
from slurmruntime.values.ids import KubeNode

HYBRID = {names.HYBRID_NODE_LABEL: "true"}
EXTERNAL = {names.EXTERNAL_NODE_LABEL: "true"}
SCRIPT = ("/etc/slurm/slurm-bridge-escrow",)
BESIDE = ("/opt/site/prolog", *SCRIPT)
OTHER = ("/etc/slurm/slurm-bridge-escrow.d/prolog",)


@pytest.mark.parametrize(
    ("labels", "has_door", "prologs", "verdict", "words"),
    [
        pytest.param(EXTERNAL, False, (), Severity.OK, "no hybrid node", id="nothing to hold"),
        pytest.param(EXTERNAL, True, None, Severity.OK, "no hybrid node", id="door, no hybrid"),
        pytest.param(HYBRID, True, SCRIPT, Severity.OK, "wait for containers", id="both"),
        pytest.param(HYBRID, True, BESIDE, Severity.FAULT, "for the first to end", id="not alone"),
        pytest.param(HYBRID, False, (), Severity.WARNING, "may start while", id="neither"),
        pytest.param(HYBRID, False, None, Severity.WARNING, "may start while", id="off, old Slurm"),
        pytest.param(HYBRID, True, (), Severity.WARNING, "does not run", id="no script"),
        pytest.param(HYBRID, True, OTHER, Severity.WARNING, "does not run", id="another's script"),
        pytest.param(HYBRID, False, SCRIPT, Severity.FAULT, "nothing answers", id="no door"),
        pytest.param(EXTERNAL, False, SCRIPT, Severity.FAULT, "nothing answers", id="all wait"),
        pytest.param(HYBRID, True, None, Severity.NOT_CHECKED, "before 26.05", id="old Slurm"),
        pytest.param(HYBRID, None, (), Severity.NOT_CHECKED, "settings", id="no settings"),
    ],
)
def test_the_doctor_says_whether_native_jobs_wait(
    labels: dict[str, str],
    has_door: bool | None,
    prologs: tuple[str, ...] | None,
    verdict: Severity,
    words: str,
) -> None:
    facts = BothFacts(
        kube_nodes=[KubeNodeFacts(name=KubeNode("k1"), uid="u", labels=labels)],
        slurm_nodes=None,
        cluster=None,
        has_door=has_door,
        prologs=prologs,
    )
    (said,) = [
        each for each in findings.report(between.CHECKS, facts) if each.check == "held native jobs"
    ]

    assert verdict is said.verdict
    assert words in said.found
    assert bool(said.fix) == (verdict in {Severity.WARNING, Severity.FAULT})
