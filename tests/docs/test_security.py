"""docs/security.md is a threat model by actor: it lists the attacks that tests try, and nothing else."""

import ast
import re
from collections import Counter
from pathlib import Path

from docs.generate import attacks

ROOT = Path(__file__).parents[2]
ALL_LISTED = (
    "tests/integration/test_attacks.py",
    "tests/fuzz/test_endpoints.py",
    "tests/fuzz/test_floods.py",
)
"""Files whose every test is an attack."""


def defined_in(file: str) -> set[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = (
        node.name
        for node in ast.parse((ROOT / file).read_text()).body
        if isinstance(node, functions)
    )
    return {f"{file}::{name}" for name in names if name.startswith("test_")}


def test_the_page_lists_the_attacks_that_are_tried() -> None:
    page = (ROOT / "docs/security.md").read_text()

    assert page == attacks.render(page), "make docs"
    listed = page.partition("<!-- attacks -->")[2]
    assert listed.count(" | `tests/") == len(list(attacks.attacks())) > 0


def test_every_test_of_attacks_is_one() -> None:
    listed = {one.test.partition("[")[0] for one in attacks.attacks()}
    tried = {test for file in ALL_LISTED for test in defined_in(file)}

    assert set() == tried - listed


def test_no_attack_is_listed_twice_nor_breaks_the_table() -> None:
    listed = list(attacks.attacks())

    for texts in ([one.what for one in listed], [one.test for one in listed]):
        assert [] == [text for text, count in Counter(texts).items() if count > 1]
    assert [] == [one for one in listed if {"|", "\n"} & set(one.what + one.why)]


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)", (ROOT / "docs/security.md").read_text())
    defined = {file: defined_in(file) for file, _ in named}

    assert [] == [test for test in named if "::".join(test) not in defined[test[0]]]


def test_each_actor_tries_something() -> None:
    assert {*attacks.ACTORS} == {one.actor for one in attacks.attacks()}


def test_no_actor_is_given_to_a_test_or_file_that_tries_nothing() -> None:
    tests = {one.test.partition("[")[0] for one in attacks.attacks()}

    assert {*attacks.BY_FILE} <= {test.partition("::")[0] for test in tests}
    assert {*attacks.BY_TEST} <= {test.partition("::")[2] for test in tests}
