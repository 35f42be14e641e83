"""`doctor`: find the faults of an installation and name the fixes. Exit code 2 if there is a fault."""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bridge.domain.model.hybrid import HybridRule
from slurmcli import access, output, resolving
from slurmcli.access import Access
from slurmcli.clusters import operator
from slurmcli.doctor import slurm as examine_slurm
from slurmcli.doctor.checks import between, kube, slurm
from slurmcli.doctor.checks.between import BothFacts
from slurmcli.doctor.kube import KubeExaminer
from slurmcli.line.options import FormatOption, ReleaseNamespace, Way
from slurmcli.output import Format
from slurmoperator.diagnosis import checks
from slurmruntime.values import findings, names
from slurmruntime.values.findings import Finding, Severity

FAULTY = 2
"""Exit code."""

_STYLES = {
    Severity.OK: "green",
    Severity.WARNING: "yellow",
    Severity.FAULT: "bold red",
    Severity.NOT_CHECKED: "dim",
}


def command(
    *,
    way: Way,
    release_namespace: ReleaseNamespace = names.RELEASE_NAMESPACE,
    form: FormatOption = Format.TABLE,
) -> None:
    """Find what is wrong with the installation and how to fix it. Changes nothing."""
    report = access.run(way, lambda opened: _examine(opened, way, release_namespace))
    if form in (Format.JSON, Format.YAML):
        output.document([output.plain(finding) for finding in report], form)
    else:
        _print(report)
    is_faulty = any(finding.verdict is Severity.FAULT for finding in report)
    sys.exit(FAULTY if is_faulty else 0)


async def _examine(opened: Access, way: Way, release: str) -> Sequence[Finding]:
    kubernetes = await KubeExaminer(opened.kube, release=release, now=_now).examine()
    faults = kubernetes.facts.settings_faults
    are_settings_good = faults is not None and not faults
    facts, slurm_nodes = await examine_slurm.examine(
        opened.slurm,
        url=way.slurm_url,
        token=_token(way),
        hosts=resolving.hosts(kubernetes.settings.slurm) if are_settings_good else None,
        partition=kubernetes.settings.slurm.partition,
        has_gpus=any(
            node.allocatable.extended.get(resource)
            for node in kubernetes.nodes
            for resource in kubernetes.settings.controllers.gpu_resources
        ),
        now=_now,
    )
    both = BothFacts(
        kube_nodes=kubernetes.nodes,
        slurm_nodes=slurm_nodes,
        cluster=kubernetes.cluster,
        gpu_resources=kubernetes.settings.controllers.gpu_resources,
        milli_per_cpu=kubernetes.settings.slurm.milli_cpu_per_cpu,
        hybrid=HybridRule(kubernetes.settings.nodes.hybrid) if are_settings_good else None,
        prologs=facts.conf.prologs if facts.conf else None,
        cpu_managers=kubernetes.cpu_managers,
        pins_cores=kubernetes.settings.agent.pin_cores if are_settings_good else None,
        agents=kubernetes.agents,
    )
    in_pods = await operator.examine(opened.kube, release, skew_s=kubernetes.facts.skew_s or 0.0)
    return [
        *findings.report(kube.CHECKS, kubernetes.facts),
        *findings.report(slurm.CHECKS, facts),
        *findings.report(between.CHECKS, both),
        *findings.report(checks.CHECKS, in_pods),
    ]


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  # a person runs a command now


def _token(way: Way) -> str:
    if way.slurm_token_file:
        return Path(way.slurm_token_file).read_text(encoding="ascii").strip()
    return os.environ.get("SLURM_JWT", "")


def _print(report: Sequence[Finding]) -> None:
    width = max(len(finding.check) for finding in report)
    for finding in report:
        verdict = finding.verdict.value.ljust(len(Severity.NOT_CHECKED))
        mark = (verdict, _STYLES[finding.verdict])
        output.line(mark, "  ", finding.check.ljust(width), "  ", finding.found)
        if finding.fix:
            output.line(" " * (len(Severity.NOT_CHECKED) + width + 4), (finding.fix, "cyan"))
    bad = sum(finding.verdict is Severity.FAULT for finding in report)
    doubtful = sum(finding.verdict is Severity.WARNING for finding in report)
    output.line(f"{len(report)} checks, {bad} faults, {doubtful} warnings")
