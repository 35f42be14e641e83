"""docs/devices.md says of each thing by which test it was seen to hold, or why it does not hold."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "devices.md"
VERDICTS = {"yes", "in part", "counts only", "left out", "refused", "no"}
HEADING = ["what", "holds", "seen by, or why not"]


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row not in (HEADING, ["---", "---", "---"])]


def test_each_row_has_a_verdict_with_what_it_stands_on() -> None:
    found = rows()

    assert found
    assert [] == [row for row in found if len(row) != len(HEADING) or row[1] not in VERDICTS]
    assert [] == [what for what, holds, seen in found if holds == "yes" and "`tests/" not in seen]
    assert [] == [what for what, holds, seen in found if holds != "yes" and "Why not" not in seen]


def test_each_thing_is_named_once() -> None:
    named = [what for what, _, _ in rows()]

    assert len(named) == len(set(named))


def test_every_test_is_told_from_the_next() -> None:
    """A mention that is written in another way is not checked to exist."""
    page = PAGE.read_text(encoding="utf-8")

    assert page.count("::test_") == len(re.findall(r"`tests/[\w/]+\.py::test_\w+`", page))
