"""The generated pages of slurm-operator are fresh."""

from docs.generate import nodeset_lifecycle, operator
from tests.architecture.sources import ROOT


def test_the_page_of_the_operator_is_fresh() -> None:
    page = (ROOT / "docs/operator.md").read_text()

    assert operator.render(page) == page, "make docs"


def test_the_page_of_the_lifecycle_is_fresh() -> None:
    assert nodeset_lifecycle.render() == (ROOT / "docs/nodeset-lifecycle.md").read_text()
