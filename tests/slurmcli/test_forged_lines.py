"""A table is read line by line, by people and by scripts, whatever users named what stands in it."""

from dataclasses import dataclass

import pytest

from slurmcli import output
from slurmcli.output import Format, TableColumn
from slurmclient.cli import rendering


@dataclass(frozen=True)
class Row:
    name: str
    state: str


ROWS = (Row("train\n4711  RUNNING", "PENDING"), Row("next", "RUNNING"))


@pytest.mark.attack(
    "put a line feed into the name of a job, so that a line of `kubectl slurm queue` or of `slurmc list jobs` seems to be another job's, for whom it is cancelled",
    "a cell of a table is one line; line feeds are shown as escapes",
)
def test_a_line_of_a_table_is_about_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    columns = (TableColumn("NAME", "name"), TableColumn("STATE", "state"))
    output.table(ROWS, columns, Format.TABLE, nothing="")
    output.console().print(rendering.table(ROWS, ("name", "state")))

    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    starts = [line[0] for line in lines if line[0] not in ("NAME", "name") and "─" not in line[0]]
    assert [r"train\n4711", "next"] * 2 == starts
