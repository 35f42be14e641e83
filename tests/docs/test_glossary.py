"""The glossary says what the code says."""

from pathlib import Path

import pytest

from docs.generate import glossary

PAGE = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_the_page_is_what_the_docstrings_say() -> None:
    assert glossary.render() == PAGE.read_text(encoding="utf-8"), "make docs"


def test_terms_are_sorted() -> None:
    assert [*glossary.TERMS] == sorted(glossary.TERMS, key=str.casefold)


def test_a_term_without_a_definition_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"slurmruntime\.values\.names\.NOWHERE has no docstring"):
        glossary.meaning("slurmruntime.values.names.NOWHERE")
