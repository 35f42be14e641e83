"""The page and the code list the same annotations."""

from pathlib import Path

from docs.generate import annotations

PAGE = Path(__file__).parents[2] / "docs" / "annotations.md"


def test_the_tables_are_what_is_parsed() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == annotations.render(page), "make docs"
    assert page.count("| `partition` | ") == 1
