"""Texts of others reach a terminal, a condition or an Event only through `visible`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmclient.cli import rendering
from slurmruntime.values.faults import published
from slurmruntime.values.visible import visible, visible_line
from tests.architecture.sources import PRODUCT, ROOT, files, parsed

DOORS = {
    "agent/__main__.py",  # how it is called
    "bridge/settings/configuration.py",  # the administrator's own settings, to the administrator
    "client/slurmclient/cli/rendering.py",
    "exporter/slurmexporter/program/cli.py",  # its own words
    "slurmcli/output.py",
    "slurmjobs/companions/collector.py",  # like the next, alone with the standard library
    "slurmjobs/companions/follower.py",
    "slurmruntime/process/logging.py",
}
"""Modules that print."""
PRINTS = re.compile(
    r"(typer|click)\.(echo|secho)|(rich\.)?print|(sys\.)?(stdout|stderr)(\.buffer)?\.write|(rich\.\w+\.)?(Console|Text)|(Console\(\)|console\(\)|screen)\.(print|out|log)"
)
PUBLISHED = {"message", "note"}
"""Fields of conditions, Events and answers that show texts of others."""


def printing(tree: ast.AST) -> Iterator[str]:
    """Calls that print, or that lay out a text for a terminal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and PRINTS.fullmatch(ast.unparse(node.func)):
            yield f"{node.lineno}: {ast.unparse(node.func)}"


def unpublished(tree: ast.AST) -> Iterator[str]:
    """Messages and notes that are shortened for publishing, but may act on the reader's terminal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            fields = [
                (key.value, value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            ]
        elif isinstance(node, ast.Call):
            fields = [(keyword.arg, keyword.value) for keyword in node.keywords]
        else:
            continue
        for name, value in fields:
            called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
            if name in PUBLISHED and called.rpartition(".")[2] == "shortened":
                yield f"{value.lineno}: {name}"


def places(path: Path, lines: Iterator[str]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line}" for line in lines]


def test_only_the_doors_print() -> None:
    printed = [
        place
        for path in files(*PRODUCT, "client/slurmclient", "exporter/slurmexporter")
        if str(path.relative_to(ROOT)) not in DOORS
        for place in places(path, printing(parsed(path)))
    ]
    assert [] == printed


def test_what_is_published_went_through_visible() -> None:
    raw = [place for path in files(*PRODUCT) for place in places(path, unpublished(parsed(path)))]
    assert [] == raw


@pytest.mark.parametrize(
    "source",
    ["print(a)", "typer.echo(a, err=True)", "sys.stderr.write(a)", "Console().print(a)", "Text(a)"],
)
def test_a_way_around_is_seen(source: str) -> None:
    assert list(printing(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ['{"message": shortened(a)}', "Condition(message=faults.shortened(a))"]
)
def test_a_message_that_is_only_shortened_is_seen(source: str) -> None:
    assert list(unpublished(ast.parse(source)))


TEXTS = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "\x00\x07\x08\x1b\x7f\x85\x9b\u061c\u200e\u200f\u2028\u202e\u2066\u2069\n\r\t"
        ),
    )
)


@given(TEXTS)
def test_nothing_in_a_visible_text_acts(text: str) -> None:
    shown = visible(text)
    assert all(
        character.isprintable() or character == "\n" or _is_harmless(character)
        for character in shown
    )
    assert visible(shown) == shown
    assert "\n" not in visible_line(text)
    assert rendering.visible(text) == shown


@given(TEXTS)
def test_a_published_text_is_published_as_it_is(text: str) -> None:
    """Otherwise a condition would be written again at each look."""
    once = published(text, 24)
    assert published(once, 24) == once
    assert len(once.encode(errors="replace")) <= 24


@pytest.mark.parametrize("text", ["a" * 5000, "\x1b" * 30, "é" * 30])
def test_what_is_left_out_of_a_published_text_is_marked(text: str) -> None:
    assert published(text, 24).endswith("…")
    assert published("a" * 24, 24) == "a" * 24


def _is_harmless(character: str) -> bool:
    """Spaces, unassigned and private characters: they print nothing, and move nothing but to the right."""
    return not re.match(
        r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", character
    )
