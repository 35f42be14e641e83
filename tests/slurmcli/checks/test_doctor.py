"""What the doctor says of facts; that it gets them right is shown on real clusters (tests/slurmcli)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bridge.domain.model.hybrid import HybridRule
from bridge.domain.observation import clocks
from slurmcli.doctor.checks import between, kube, slurm
from slurmcli.doctor.checks.between import BothFacts
from slurmcli.doctor.checks.kube import KubeFacts
from slurmcli.doctor.checks.slurm import Host, SlurmFacts, Trouble
from slurmruntime.model import nodes
from slurmruntime.model.nodes import Allocatable, KubeNodeFacts, SlurmNodeFacts
from slurmruntime.model.slurm_conf import Conf, Partition, Preemption
from slurmruntime.values import findings, names
from slurmruntime.values.findings import Finding, Severity
from slurmruntime.values.ids import ClusterId, KubeNode, SlurmNode
from tests.make.lives import NOW

SCHEDULER: dict[str, Any] = {
    "profiles": [{"schedulerName": names.SCHEDULER_NAME, "plugins": {"multiPoint": {}}}],
    "extenders": [{"filterVerb": "filter", "bindVerb": "bind"}],
}
KUBE = KubeFacts(
    version=(1, 36),
    skew_s=0.4,
    release="slurm-bridge",
    settings_faults=(),
    scheduler=SCHEDULER,
    webhooks=frozenset({"mutating", "validating"}),
    admission="",
    bindings=frozenset({*kube.ALWAYS_BOUND, "elsewhere", "taint", "daemonsets"}),
    lease_ages={"extender": 0.0, "controllers": 0.0},
    denied=(),
    selected_namespaces=2,
    refused_daemon_sets=(),
    key_holders={},
)
CONTROLLER = Host(
    setting="slurm.controller_host",
    name="slurmctld.hpc",
    addresses=("10.0.0.7",),
    as_it_is=("10.0.0.7",),
)
SLURM = SlurmFacts(
    url="http://slurmrestd:6820",
    hosts=(Host(setting="slurm.url", name="slurmrestd", addresses=("10.0.0.8",)), CONTROLLER),
    release=(26, 5),
    skew_s=-0.5,
    token_expires_at=NOW + timedelta(days=30),
    now=NOW,
    partitions=(Partition(name="all", state="UP", nodes=4, is_default=True),),
    slurm_nodes=4,
    has_gpus=True,
    conf=Conf(
        scheduler_parameters=("batch_sched_delay=0", "sched_interval=1", "bf_interval=1"),
        gres_types=("gpu",),
        enforce_part_limits="ALL",
        max_node_count=100,
        min_job_age_s=300,
        select_type="select/cons_tres",
    ),
)
CLUSTER = ClusterId("here")
NODE = KubeNodeFacts(name=KubeNode("k1"), uid="u", labels={names.EXTERNAL_NODE_LABEL: "true"})
TWIN = SlurmNodeFacts(
    name=SlurmNode("k1"),
    states=frozenset({"IDLE", "EXTERNAL"}),
    features=(nodes.cluster_feature(CLUSTER),),
)
HYBRID = replace(NODE, labels={names.HYBRID_NODE_LABEL: "true"})
BOTH = BothFacts(kube_nodes=[NODE], slurm_nodes=[TWIN], cluster=CLUSTER, hybrid=HybridRule.NONE)


def report(facts: KubeFacts | SlurmFacts | BothFacts) -> Sequence[Finding]:
    match facts:
        case KubeFacts():
            return findings.report(kube.CHECKS, facts)
        case SlurmFacts():
            return findings.report(slurm.CHECKS, facts)
        case BothFacts():
            return findings.report(between.CHECKS, facts)


@pytest.mark.parametrize("facts", [KUBE, SLURM, BOTH])
def test_finds_nothing_wrong_where_nothing_is(facts: KubeFacts | SlurmFacts | BothFacts) -> None:
    assert {Severity.OK} == {finding.verdict for finding in report(facts)}


def scheduler(**changes: Any) -> dict[str, Any]:
    return {**SCHEDULER, **changes}


def profile(*disabled: str) -> dict[str, Any]:
    plugins = {"multiPoint": {"disabled": [{"name": name} for name in disabled]}}
    return scheduler(profiles=[{"schedulerName": names.SCHEDULER_NAME, "plugins": plugins}])


@pytest.mark.parametrize(
    ("facts", "check", "verdict", "words"),
    [
        (replace(KUBE, version=(1, 29)), "Kubernetes", Severity.FAULT, "1.29"),
        (replace(KUBE, skew_s=-90.0), "Kubernetes clock", Severity.FAULT, "-90 s"),
        (replace(KUBE, settings_faults=None), "settings", Severity.FAULT, "no ConfigMap"),
        (replace(KUBE, settings_faults=("x", "y")), "settings", Severity.FAULT, "x; y"),
        (
            replace(KUBE, scheduler=scheduler(profiles=[])),
            "scheduler profile",
            Severity.FAULT,
            "no profile",
        ),
        (
            replace(KUBE, scheduler=profile("SchedulingGates")),
            "scheduler profile",
            Severity.FAULT,
            "disables SchedulingGates",
        ),
        (
            replace(KUBE, scheduler=scheduler(extenders=[])),
            "scheduler profile",
            Severity.FAULT,
            "no extender",
        ),
        (
            replace(
                KUBE,
                scheduler=scheduler(extenders=[{**SCHEDULER["extenders"][0], "ignorable": True}]),
            ),
            "scheduler profile",
            Severity.FAULT,
            "ignorable",
        ),
        (
            replace(KUBE, webhooks=frozenset({"mutating"})),
            "webhook configurations",
            Severity.FAULT,
            "no validating",
        ),
        (replace(KUBE, admission="x509"), "webhook", Severity.FAULT, "x509"),
        (
            replace(KUBE, bindings=frozenset({"keys"})),
            "policies",
            Severity.FAULT,
            "binding, bypass",
        ),
        (
            replace(KUBE, lease_ages={"extender": None, "controllers": 7.0}),
            "leaders",
            Severity.FAULT,
            "the extender has no leader; the leader of the controllers has been silent for 7 s",
        ),
        (
            replace(KUBE, denied=("extender: patch pods",)),
            "rights",
            Severity.FAULT,
            "extender: patch pods",
        ),
        (replace(KUBE, selected_namespaces=0), "namespaces", Severity.WARNING, "no namespace"),
        (
            replace(KUBE, without_effect=("kube-system", KUBE.release)),
            "namespaces",
            Severity.WARNING,
            "kube-system is excluded (excludedNamespaces): its label has no effect",
        ),
        (
            replace(KUBE, refused_daemon_sets=("logs/collector",)),
            "DaemonSets",
            Severity.WARNING,
            "logs/collector",
        ),
        (
            replace(SLURM, trouble=Trouble.UNREACHABLE, words="refused"),
            "slurmrestd",
            Severity.FAULT,
            "does not answer: refused",
        ),
        (
            replace(SLURM, hosts=(replace(CONTROLLER, addresses=(), as_it_is=()),)),
            "hosts of Slurm",
            Severity.WARNING,
            "do not resolve from here: slurmctld.hpc (slurm.controller_host)",
        ),
        (
            replace(SLURM, hosts=(replace(CONTROLLER, addresses=("10.96.0.1",)),)),
            "hosts of Slurm",
            Severity.FAULT,
            "slurmctld.hpc (slurm.controller_host) is 10.96.0.1 through a search path, and 10.0.0.7",
        ),
        (
            replace(SLURM, trouble=Trouble.REFUSED, words="no"),
            "slurmrestd",
            Severity.FAULT,
            "refuses the token",
        ),
        (
            replace(SLURM, trouble=Trouble.TOO_OLD, words="v0.0.42"),
            "slurmrestd",
            Severity.FAULT,
            "too old",
        ),
        (
            replace(SLURM, conf=Conf(preempt_modes=("SUSPEND", "GANG"))),
            "PreemptMode",
            Severity.FAULT,
            "PreemptMode=GANG; PreemptMode=SUSPEND",
        ),
        (
            replace(SLURM, qos={"low": Preemption(modes=("SUSPEND",))}),
            "PreemptMode",
            Severity.FAULT,
            "QOS low has PreemptMode=SUSPEND",
        ),
        (
            replace(SLURM, qos={"low": Preemption(grace_s=60), "high": Preemption()}),
            "GraceTime",
            Severity.WARNING,
            "QOS low has GraceTime=60",
        ),
        (
            replace(
                SLURM,
                partitions=tuple(
                    replace(one, preemption=Preemption(grace_s=5)) for one in SLURM.partitions
                ),
            ),
            "GraceTime",
            Severity.WARNING,
            "has GraceTime=5",
        ),
        (replace(SLURM, token_expires_at=NOW), "Slurm token", Severity.FAULT, "expired"),
        (
            replace(SLURM, token_expires_at=NOW + timedelta(hours=5)),
            "Slurm token",
            Severity.WARNING,
            "in 5 h",
        ),
        (replace(SLURM, release=(25, 5)), "Slurm release", Severity.WARNING, "only as a number"),
        (replace(SLURM, release=(25, 11)), "Slurm release", Severity.WARNING, "several sizes"),
        (replace(SLURM, controller_responds=False), "slurmctld", Severity.FAULT, "does not answer"),
        (replace(SLURM, skew_s=61.0), "Slurm clock", Severity.FAULT, "+61 s"),
        (replace(SLURM, partition="gpu"), "partition", Severity.FAULT, "no partition gpu"),
        (replace(SLURM, partitions=()), "partition", Severity.FAULT, "no partition is the default"),
        (
            replace(SLURM, partitions=(replace(SLURM.partitions[0], nodes=0),)),
            "partition's nodes",
            Severity.FAULT,
            "has no nodes",
        ),
        (
            replace(SLURM, partitions=(replace(SLURM.partitions[0], state="DOWN"),)),
            "partition's state",
            Severity.FAULT,
            "is DOWN",
        ),
        (replace(SLURM, slurm_nodes=100), "MaxNodeCount", Severity.FAULT, "already has 100 nodes"),
        (
            replace(BOTH, kube_nodes=[]),
            "nodes",
            Severity.WARNING,
            "no node is handed to Slurm",
        ),
        (
            replace(
                BOTH,
                kube_nodes=[
                    NODE,
                    replace(
                        NODE,
                        name=KubeNode("k2"),
                        labels={**NODE.labels, names.SLURM_NODE_NAME_LABEL: "k1"},
                    ),
                ],
            ),
            "node names",
            Severity.FAULT,
            "claim one Slurm node: k1",
        ),
        (
            replace(BOTH, cluster=ClusterId("elsewhere")),
            "whose nodes",
            Severity.FAULT,
            "another cluster registered these names in Slurm: k1",
        ),
        (replace(BOTH, slurm_nodes=[]), "nodes on both sides", Severity.FAULT, "no such node"),
        (
            replace(
                BOTH,
                slurm_nodes=[
                    replace(TWIN, states=frozenset({"IDLE", "DRAIN"}), reason="bad memory")
                ],
            ),
            "drained nodes",
            Severity.WARNING,
            "k1 (bad memory)",
        ),
        (
            replace(
                BOTH,
                kube_nodes=[
                    replace(HYBRID, allocatable=Allocatable(extended={"nvidia.com/gpu": 4}))
                ],
                slurm_nodes=[replace(TWIN, gres="gpu:4")],
                gpu_resources={"nvidia.com/gpu": "gpu"},
            ),
            "exact devices",
            Severity.WARNING,
            "k1: the kubelet and slurmd each choose among 4 gpu",
        ),
        (
            replace(BOTH, kube_nodes=[HYBRID], cpu_managers={KubeNode("k1"): "static"}),
            "CPU managers",
            Severity.FAULT,
            "the CPU manager of k1 is static, its label says nothing",
        ),
    ],
)
def test_finds_what_is_wrong_and_says_the_fix(
    facts: KubeFacts | SlurmFacts | BothFacts, check: str, verdict: Severity, words: str
) -> None:
    (found,) = [finding for finding in report(facts) if finding.check == check]

    assert verdict is found.verdict
    assert words in found.found
    assert found.fix


@pytest.mark.parametrize(
    ("change", "check", "verdict"),
    [
        ({"scheduler_parameters": ("bf_interval=1",)}, "SchedulerParameters", Severity.WARNING),
        ({"gres_types": ()}, "GresTypes", Severity.FAULT),
        ({"enforce_part_limits": "NO"}, "EnforcePartLimits", Severity.WARNING),
        ({"min_job_age_s": 10}, "MinJobAge", Severity.FAULT),
        ({"select_type": "select/linear"}, "SelectType", Severity.FAULT),
    ],
)
def test_reads_slurm_conf(change: dict[str, Any], check: str, verdict: Severity) -> None:
    assert SLURM.conf is not None
    facts = replace(SLURM, conf=replace(SLURM.conf, **change))

    (found,) = [finding for finding in report(facts) if finding.check == check]

    assert verdict is found.verdict
    assert found.fix


def test_takes_nothing_for_well_that_nobody_looked_at() -> None:
    blind_kube = replace(
        KUBE,
        skew_s=None,
        scheduler=None,
        webhooks=None,
        admission=None,
        bindings=None,
        lease_ages=None,
        denied=None,
        selected_namespaces=None,
        refused_daemon_sets=None,
        key_holders=None,
        has_profiles=True,
    )
    blind_slurm = SlurmFacts(trouble=Trouble.NOT_SET, now=NOW)
    blind_both = replace(BOTH, slurm_nodes=None)

    said = [*report(blind_kube), *report(blind_slurm), *report(blind_both)]

    looked_at = {finding.check for finding in said if finding.verdict is Severity.OK}
    both = {"nodes", "node names", "CPU managers", "node agents", "held native jobs"}
    assert {"Kubernetes", "settings", *both} == looked_at
    assert {Severity.OK, Severity.NOT_CHECKED} == {finding.verdict for finding in said}


def test_every_check_has_a_name_of_its_own() -> None:
    checks = [*kube.CHECKS, *slurm.CHECKS, *between.CHECKS]

    assert len(checks) == len(set(checks))


@pytest.mark.parametrize(
    ("told_s", "skew_s"),
    [
        pytest.param(20, 0.0, id="within"),
        pytest.param(10, 0.0, id="cut-off-to-a-whole-second"),
        pytest.param(5, -4.5, id="behind"),
        pytest.param(40, 10.0, id="ahead"),
    ],
)
def test_an_answer_that_took_long_is_no_clock_that_is_wrong(told_s: float, skew_s: float) -> None:
    asked, answered = (datetime.fromtimestamp(at_s, UTC) for at_s in (10.5, 30.0))
    told = datetime.fromtimestamp(told_s, UTC)
    assert skew_s == clocks.skew_s(told, asked=asked, answered=answered)
