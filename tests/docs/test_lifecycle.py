"""The page and the code say the same."""

from pathlib import Path

from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.table import Column, Row
from docs.generate import lifecycle as lifecycle_page

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"


def test_the_page_is_what_the_table_says() -> None:
    assert lifecycle_page.render() == PAGE.read_text(encoding="utf-8"), (
        "rewrite it: python -m docs.generate.lifecycle > docs/lifecycle.md"
    )


def test_the_table_has_every_row_and_the_page_every_cell() -> None:
    lines = lifecycle_page.render().splitlines()
    table = [line for row in Row for line in lines if line.startswith(f"| **{row.value}** | ")]

    assert list(Row) == list(lifecycle.TABLE)
    assert len(Row) == sum(line.count(" | ") == len(Column) for line in table)
    assert not any("|  |" in line for line in lines)


def test_the_page_numbers_the_steps_before_the_table_in_their_order() -> None:
    _, _, after = lifecycle_page.render().partition("These rules apply before the table")
    steps, _, _ = after.partition("And this one applies after it")
    numbered = [line for line in steps.splitlines() if line.startswith(tuple("123456789"))]

    assert len(lifecycle.BEFORE) == len(numbered)
    for number, (step, line) in enumerate(zip(lifecycle.BEFORE, numbered, strict=True), start=1):
        assert line == f"{number}. {' '.join((step.__doc__ or '').split())}"


def test_every_row_has_a_rule_in_every_column_but_unknown() -> None:
    for row, cells in lifecycle.TABLE.items():
        for column in Column:
            if column is not Column.UNKNOWN:
                assert callable(cells.rule(column)), (row, column)
