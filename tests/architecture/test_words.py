"""Texts that users read have words that they know: strings of the code, pages, charts and definitions of kinds."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import GENERATED, ROOT, files, parsed, strings

PRIVATE = {
    "told": r"told(?! apart)",
    "whoever": r"who(?:so)?ever",
    "anew": r"anew",
    "somebody": r"(?<![\"=])(?:nobody|somebody|anybody)(?!\")",  # but not the Unix user
    "stranger": r"strangers?",
    "is to be": r"(?:is|are|was|were) to (?:be|have)",
    "what is there": r"(?:what|that) (?:is|are|was|were) (?:there|gone|wanted)",
    "of which": r"of which",
    "in words": r"in words",
    "see to": r"see[sn]? to",
    "for so long": r"for so long",
}
"""Our own idioms, which say less than the field's words: name who acts, and what is reported, created again or desired."""

LEFT: dict[str, int] = {
    "agent": 0,
    "bridge": 0,
    "webhook": 0,
    "extender": 0,
    "controllers": 0,
    "leader": 0,
    "slurmjobs": 0,
    "slurmoperator": 9,  # in scripts of pod templates: another comment would restart the daemons
    "slurmcli": 0,
    "slurmruntime": 1,
    "client/slurmclient": 0,
    "exporter/slurmexporter": 0,
    "dev/sandbox": 0,
    "dev/benchmarks": 13,
    "docs": 226,
    "deploy": 0,
}
"""How often each folder still has one. It only shrinks."""

_WORDS = re.compile(
    "|".join(rf"(?P<w{i}>\b{idiom}\b)" for i, idiom in enumerate(PRIVATE.values())), re.IGNORECASE
)
_PAGES = (".md", ".yaml", ".tpl", ".txt")


@pytest.mark.parametrize("folder", sorted(LEFT))
def test_texts_have_no_private_words(folder: str) -> None:
    private = Counter(
        (str(path.relative_to(ROOT)), word) for path, text in texts(folder) for word in words(text)
    )

    assert private.total() <= LEFT[folder], dict(private)
    assert private.total() == LEFT[folder], f"{dict(private)}: fewer than allowed, so lower LEFT"


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("its workers are told so", ["told"]),
        ("Whoever deletes it, nobody creates it anew.", ["whoever", "somebody", "anew"]),
        ("3 workers are there that are to be drained", ["is to be"]),
        ("waits for what is there", ["what is there"]),
        ("PVC x was deleted; recreating it", []),
    ],
)
def test_private_words_are_noticed(text: str, private: list[str]) -> None:
    assert private == list(words(text))


def words(text: str) -> Iterator[str]:
    """The private words in a text, as PRIVATE calls them."""
    names = tuple(PRIVATE)
    for match in _WORDS.finditer(text):
        yield names[int((match.lastgroup or "w0")[1:])]


def texts(folder: str) -> Iterator[tuple[Path, str]]:
    """Every text in a folder that users read: strings with a space in code, whole pages and charts."""
    if folder in {"docs", "deploy"}:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in _PAGES:
                yield path, path.read_text()
        return
    for path in files(folder):
        if str(path.relative_to(ROOT)) not in GENERATED:
            for text in strings(parsed(path)):
                if " " in text:
                    yield path, text
