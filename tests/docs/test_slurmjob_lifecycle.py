"""The page of a SlurmJob's lifecycle and the code say the same."""

from pathlib import Path

from docs.generate import slurmjob_lifecycle
from slurmjobs.lifecycle import table
from slurmjobs.lifecycle.table import JobColumn, JobRow

PAGE = Path(__file__).parents[2] / "docs" / "slurmjob-lifecycle.md"


def test_the_page_is_what_the_table_says() -> None:
    assert slurmjob_lifecycle.render() == PAGE.read_text(encoding="utf-8"), (
        "rewrite it: python -m docs.generate.slurmjob_lifecycle > docs/slurmjob-lifecycle.md"
    )


def test_the_table_has_every_row_and_the_page_every_cell() -> None:
    lines = slurmjob_lifecycle.render().splitlines()
    rows = [line for row in JobRow for line in lines if line.startswith(f"| **{row.value}** | ")]

    assert list(JobRow) == list(table.TABLE)
    assert len(JobRow) == sum(line.count(" | ") == len(JobColumn) for line in rows)
    assert not any("|  |" in line for line in lines)
