"""docs/security.md and the tests of attacks say the same: none is listed that is not tried, none is tried that is not listed."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALL_LISTED = (
    "tests/integration/test_attacks.py",
    "tests/fuzz/test_endpoints.py",
    "tests/fuzz/test_floods.py",
)
"""Files whose every test is an attack."""


def attacks_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = (node.name for node in ast.walk(tree) if isinstance(node, functions))
    return {f"{file}::{name}" for name in names if name.startswith("test_")}


def listed() -> list[str]:
    page = (ROOT / "docs/security.md").read_text()
    rows = page.partition("## Attacks")[2].splitlines()
    cells = [row.strip("| ").split(" | ") for row in rows if row.startswith("| ")][2:]
    assert all(len(row) == 3 for row in cells), [row for row in cells if len(row) != 3]
    return [re.fullmatch(r"`(\S+)`", row[2])[1] for row in cells]  # type: ignore[index]  # fails as it should


def test_every_attack_of_the_list_is_tried() -> None:
    named = listed()
    there = {
        test for file in {test.partition("::")[0] for test in named} for test in attacks_in(file)
    }

    assert [] == [test for test in named if test not in there]
    assert len(set(named)) == len(named)


def test_every_attack_that_is_tried_is_in_the_list() -> None:
    tried = {test for file in ALL_LISTED for test in attacks_in(file)}

    assert set() == tried - set(listed())
