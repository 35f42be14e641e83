"""The page about caps is what the table says."""

from pathlib import Path

from docs.generate import caps as caps_page

PAGE = Path(__file__).parents[2] / "docs/caps.md"


def test_the_page_is_the_table() -> None:
    assert PAGE.read_text() == caps_page.render(), "make docs"
