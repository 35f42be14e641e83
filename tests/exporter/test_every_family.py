"""Every family of the four name sets beside squeue, sinfo, sdiag, sacct, sshare, scontrol and sacctmgr.

A family that is served and that no comparison covers fails: a new one brings its own, or the reason in `UNSAID`.
"""

import re
from collections.abc import Iterator, Mapping

import pytest

from sandbox import ports
from sandbox.client import Sandbox
from slurmexporter.families import catalogue
from slurmexporter.families.chapter import Chapter
from tests.exporter import expected_own, sdiag_names
from tests.exporter.conftest import running_exporter
from tests.exporter.expected import Labels, of_jobs, of_nodes
from tests.exporter.expected_own import EMPTY, UNSAID
from tests.exporter.expected_vpenso import of_vpenso
from tests.exporter.seeded import Evidence, gathered

CHAPTERS = [
    pytest.param(names, chapter, id=f"{names}-{chapter.name}")
    for names, chapters in catalogue.NAMES.items()
    for chapter in chapters
]


@pytest.fixture(scope="module")
def evidence(cluster: Sandbox) -> Iterator[Evidence]:
    """What an exporter and the commands say of one seeded queue."""
    port = ports.choose(["exporter"], dice=expected_own.dice())["exporter"]
    options = ("--interval=200ms", "--job-info", "--efficiency")
    with running_exporter(cluster, *options, port=port) as exporter:
        yield gathered(cluster, exporter)
    cluster.run("scontrol", "delete", "reservation=maint")
    cluster.run("scontrol", "update", "node=node-3", "state=resume")


@pytest.mark.parametrize(("names", "chapter"), CHAPTERS)
def test_a_chapter_is_what_the_commands_say(
    names: str, chapter: Chapter, evidence: Evidence
) -> None:
    wrong: dict[str, object] = {}
    for family in chapter.families:
        if family.name in UNSAID:
            continue
        if family.name in sdiag_names.series(names):
            if family.name in evidence.statistics[names]:
                wrong[family.name] = evidence.statistics[names][family.name]
            continue
        ours, says = _compared(names, family.name, evidence)
        if says is None:
            wrong[family.name] = "no command is asked about it: add a comparison"
        elif fault := expected_own.difference(ours, says):
            wrong[family.name] = fault
    assert {} == wrong


def _compared(
    names: str, name: str, evidence: Evidence
) -> tuple[Mapping[Labels, float], expected_own.Says | None]:
    """What we and the commands say of a family."""
    if names == "own":
        return expected_own.compared(name, evidence)
    ours = evidence.pages[names].get(name, {})
    if name == "slurm_account_fairshare":  # sshare prints none for accounts; vpenso makes it 0
        accounts = [row for row in evidence.shares if not row["User"]]
        return ours, {(("account", r["Account"]),): float(r["FairShare"] or 0) for r in accounts}
    if names == "vpenso":
        return ours, of_vpenso(name, evidence.seen)
    is_slinky = names == "slinky"
    says = of_jobs(name, evidence.seen, arrays_are_one=is_slinky) or of_nodes(name, evidence.seen)
    return ours, says


@pytest.mark.parametrize("names", catalogue.NAMES)
def test_every_family_is_served(names: str, evidence: Evidence) -> None:
    """Beside those of `EMPTY`: else a family that is never written would equal no series of a command's."""
    page = evidence.pages[names].keys() | (evidence.ended.keys() if names == "own" else set())
    shown = {re.sub("_(bucket|sum|count)$", "", name) for name in page} | page
    families = {family.name for part in catalogue.NAMES[names] for family in part.families}
    assert {name for name in EMPTY if name in families} == families - shown
    assert names != "own" or UNSAID.keys() <= families, "a reason for a family that is gone"
