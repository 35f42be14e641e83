"""What the doctor says of node agents."""

from collections.abc import Collection

import pytest

from slurmcli.doctor.checks import between
from slurmcli.doctor.checks.between import BothFacts
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values import findings, names
from slurmruntime.values.findings import Severity
from slurmruntime.values.ids import KubeNode

EXTERNAL = {names.EXTERNAL_NODE_LABEL: "true"}
FOR_AGENTS = {**EXTERNAL, names.CPU_MANAGER_LABEL: "none"}
K1 = KubeNode("k1")


def facts(
    labels: dict[str, str],
    alive: Collection[KubeNode] | None,
    *,
    manager: str = "none",
    pins_cores: bool | None = True,
) -> BothFacts:
    return BothFacts(
        kube_nodes=[KubeNodeFacts(name=K1, uid="u", labels=labels)],
        slurm_nodes=None,
        cluster=None,
        cpu_managers={K1: manager} if manager else {},
        pins_cores=pins_cores,
        agents=alive,
    )


@pytest.mark.parametrize(
    ("seen", "verdict", "words"),
    [
        pytest.param(facts(EXTERNAL, None, pins_cores=False), Severity.OK, "is off", id="off"),
        pytest.param(
            facts(FOR_AGENTS, {K1}, pins_cores=None), Severity.NOT_CHECKED, "settings", id="unread"
        ),
        pytest.param(facts(EXTERNAL, {K1}), Severity.WARNING, "no external", id="no label"),
        pytest.param(facts(FOR_AGENTS, {K1}), Severity.OK, "on 1 nodes", id="pinned"),
        pytest.param(facts(FOR_AGENTS, {K1}, manager=""), Severity.OK, "on 1", id="not asked"),
        pytest.param(
            facts(FOR_AGENTS, {K1}, manager="static"), Severity.FAULT, "is static", id="static"
        ),
        pytest.param(facts(FOR_AGENTS, ()), Severity.WARNING, "ready on k1", id="away"),
        pytest.param(facts(FOR_AGENTS, None), Severity.NOT_CHECKED, "listed", id="hidden"),
    ],
)
def test_the_doctor_says_where_cores_are_pinned(
    seen: BothFacts, verdict: Severity, words: str
) -> None:
    (said,) = [
        each for each in findings.report(between.CHECKS, seen) if each.check == "node agents"
    ]

    assert verdict is said.verdict
    assert words in said.found
    assert bool(said.fix) == (verdict in {Severity.WARNING, Severity.FAULT})
