"""docs/security.md lists the bounds of all doors, with the values of the code and the tests that hold them."""

import ast
import re
from pathlib import Path

import pytest

from docs.generate import bounds

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_bounds_of_the_code() -> None:
    page = (ROOT / "docs/security.md").read_text()
    assert page == bounds.render(page), "make docs"
    assert f"| `{bounds.BOUNDS[-1].test}` |" in page


@pytest.mark.parametrize("test", sorted({one.test for one in bounds.BOUNDS}))
def test_the_test_of_a_bound_is_one(test: str) -> None:
    file, *names = test.split("::")
    body: list[ast.stmt] = ast.parse((ROOT / file).read_text()).body
    for name in names:
        (node,) = (one for one in body if getattr(one, "name", "") == name)
        body = getattr(node, "body", [])


def test_every_door_is_in_the_table() -> None:
    """Each program that listens calls `serve`, or has a door of its own."""
    listening = {
        str(path.relative_to(ROOT))
        for folder in ("agent", "bridge", "controllers", "extender", "leader", "slurmjobs", "slurmoperator", "slurmruntime", "webhook", "exporter")
        for path in (ROOT / folder).rglob("*.py")
        if "await serve(" in path.read_text() or "sock_accept(" in path.read_text()
    }  # fmt: skip
    assert {
        "bridge/escrow/service.py",
        "exporter/slurmexporter/door/reception.py",
        "extender/__main__.py",
        "slurmruntime/process/accepting.py",
        "slurmruntime/process/health.py",
        "webhook/__main__.py",
    } == listening


def test_the_tests_of_broken_files_are_some() -> None:
    page = (ROOT / "docs/reliability.md").read_text()
    _, _, listed = page.partition("## Files that change or break")
    rows = re.findall(r"`(tests/[\w/]+\.py)::(?:\w+::)?(\w+)`", listed.partition("\n## ")[0])
    assert len(rows) > 10
    for file, name in rows:
        assert f"def {name}(" in (ROOT / file).read_text()
