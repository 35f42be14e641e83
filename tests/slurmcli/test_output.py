"""What users named their jobs does nothing to an administrator's terminal, and scripts get it back as it was."""

import json
from dataclasses import dataclass
from typing import Final

import pytest
import yaml

from slurmcli import output
from slurmcli.output import Format, TableColumn

HOSTILE: Final = "[/x] \x1b]0;owned\x07 \u202egnp.exe \x9b2J \x7f"
COLUMNS: Final = (TableColumn("NAME", "name"),)


@dataclass(frozen=True)
class Row:
    name: str


def is_harmless(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize("form", Format)
def test_a_table_and_its_data(form: Format, capsys: pytest.CaptureFixture[str]) -> None:
    output.table([Row(HOSTILE)], COLUMNS, form, nothing="")
    out = capsys.readouterr().out
    assert is_harmless(out)
    if form is Format.JSON:
        assert json.loads(out) == [{"name": HOSTILE}]
    elif form is Format.YAML:
        assert yaml.safe_load(out) == [{"name": HOSTILE}]
    else:
        assert r"[/x] \u001b]0;owned\u0007 \u202egnp.exe" in out


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    output.line((HOSTILE, "bold"), f"\n{HOSTILE}")
    output.titled([("why", f"a\nwhat to do  {HOSTILE}"), ("empty", "")])
    output.out(HOSTILE)
    output.say(HOSTILE)
    printed = capsys.readouterr()
    assert is_harmless(printed.out)
    assert is_harmless(printed.err)
    assert [r"  why  a\nwhat to do"] == [
        line[:20] for line in printed.out.splitlines() if "why" in line
    ], "no text can pass for a line of ours"
