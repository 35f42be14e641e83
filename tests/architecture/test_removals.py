"""The removals can run: the lines that they take out, and the tests that are to notice, are where they say."""

import ast

import pytest

from tests.removals import REMOVALS, ROOT, Removal


@pytest.mark.parametrize("removal", REMOVALS, ids=lambda removal: removal.name)
def test_a_removal_finds_its_lines_and_its_test(removal: Removal) -> None:
    assert 1 == (ROOT / removal.file).read_text().count(removal.before)

    file, *names = removal.test.partition("[")[0].split("::")
    body: list[ast.stmt] = ast.parse((ROOT / file).read_text()).body
    for name in names:
        (found,) = (node for node in body if getattr(node, "name", "") == name)
        body = getattr(found, "body", [])
