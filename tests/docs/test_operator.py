"""The generated part of the operator's page is fresh."""

from docs.generate import operator
from tests.architecture.sources import ROOT


def test_the_page_is_fresh() -> None:
    page = (ROOT / "docs/operator.md").read_text()

    assert operator.render(page) == page, "make docs"
