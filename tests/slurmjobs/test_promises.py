"""Each point in which SlurmJobs are to be better than what there was has a test; the table is in docs/slurmjob.md."""

import re
from pathlib import Path

from tests.slurmjobs import argo

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/slurmjob.md"
_ROW = re.compile(
    r"^\| (?P<promise>[^|]+) \| `(?P<file>tests/[\w/]+\.py)`: `(?P<test>test_\w+)` \|$",
    re.MULTILINE,
)


def test_every_promise_names_a_test_that_exists() -> None:
    rows = list(_ROW.finditer(PAGE.read_text()))
    assert len(rows) >= 6
    for row in rows:
        text = (ROOT / row["file"]).read_text()
        assert f"def {row['test']}(" in text, (
            f"{row['promise']}: {row['file']} has no {row['test']}"
        )


def test_a_workflows_conditions_tell_the_ends_apart() -> None:
    success, failure = argo.conditions(PAGE)
    for phase, ended in (
        ("Pending", (False, False)),
        ("Succeeded", (True, False)),
        ("Failed", (False, True)),
    ):
        found = {"status": {"phase": phase}}
        assert ended == (argo.holds(success, found), argo.holds(failure, found)), phase
    assert not argo.holds(success, {}), "an object without a status has not succeeded"
    assert not argo.holds(failure, {})
