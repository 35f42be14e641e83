"""What the doctor says of slurmctld's scripts and their door."""

import pytest

from bridge.domain.model.hybrid import HybridRule
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


ESCROW, NONE = HybridRule.ESCROW, HybridRule.NONE
ACCEPTED, TURNS = HybridRule.ACCEPT_OVERLAP, HybridRule.ALTERNATE


@pytest.mark.parametrize(
    ("labels", "rule", "prologs", "verdict", "words"),
    [
        pytest.param(EXTERNAL, NONE, (), Severity.OK, "no hybrid node", id="nothing to hold"),
        pytest.param(EXTERNAL, ESCROW, None, Severity.OK, "no hybrid node", id="door, no hybrid"),
        pytest.param(HYBRID, ESCROW, SCRIPT, Severity.OK, "wait for containers", id="both"),
        pytest.param(
            HYBRID, ESCROW, BESIDE, Severity.FAULT, "for the first to end", id="not alone"
        ),
        pytest.param(HYBRID, NONE, (), Severity.FAULT, "no pod is placed on k1", id="no answer"),
        pytest.param(HYBRID, NONE, None, Severity.FAULT, "no pod is placed", id="none, old Slurm"),
        pytest.param(HYBRID, ACCEPTED, (), Severity.OK, "accepted", id="accepted"),
        pytest.param(HYBRID, TURNS, (), Severity.OK, "in turns", id="in turns"),
        pytest.param(HYBRID, ESCROW, (), Severity.FAULT, "does not run", id="no script"),
        pytest.param(HYBRID, ESCROW, OTHER, Severity.FAULT, "does not run", id="another's script"),
        pytest.param(HYBRID, ACCEPTED, SCRIPT, Severity.FAULT, "nothing answers", id="no door"),
        pytest.param(EXTERNAL, NONE, SCRIPT, Severity.FAULT, "nothing answers", id="all wait"),
        pytest.param(HYBRID, ESCROW, None, Severity.NOT_CHECKED, "before 26.05", id="old Slurm"),
        pytest.param(HYBRID, None, (), Severity.NOT_CHECKED, "settings", id="no settings"),
    ],
)
def test_the_doctor_says_whether_native_jobs_wait(
    labels: dict[str, str],
    rule: HybridRule | None,
    prologs: tuple[str, ...] | None,
    verdict: Severity,
    words: str,
) -> None:
    facts = BothFacts(
        kube_nodes=[KubeNodeFacts(name=KubeNode("k1"), uid="u", labels=labels)],
        slurm_nodes=None,
        cluster=None,
        hybrid=rule,
        prologs=prologs,
    )
    (said,) = [
        each for each in findings.report(between.CHECKS, facts) if each.check == "held native jobs"
    ]

    assert verdict is said.verdict
    assert words in said.found
    assert bool(said.fix) == (verdict in {Severity.WARNING, Severity.FAULT})
