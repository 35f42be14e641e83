"""The page of slurm-exporter's metrics is what its tables say."""

from pathlib import Path

from docs.generate import exporter as exporter_page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_tables_say() -> None:
    assert (DOCS / "exporter-metrics.md").read_text() == exporter_page.render(), "make docs"
