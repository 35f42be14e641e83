"""The page about batch scripts is what the table of options says."""

from pathlib import Path

from docs.generate import slurmjob_options

PAGE = Path(__file__).parents[2] / "docs/slurmjob-options.md"


def test_the_page_is_the_table() -> None:
    assert PAGE.read_text() == slurmjob_options.render(), "make docs"
