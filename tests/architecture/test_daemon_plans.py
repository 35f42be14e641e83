"""A look at an object of the control plane, or at a SlurmCluster, gathers once, plans once, acts and reports."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, files, parsed

DAEMONS = ROOT / "slurmoperator" / "daemons"
CLUSTERS = ROOT / "slurmoperator" / "clusters"
PURE = (
    *(DAEMONS / f"{name}.py" for name in ("situation", "planning", "conditions")),
    DAEMONS / "trials.py",
    *(CLUSTERS / f"{name}.py" for name in ("planning", "expanding", "yielding", "summary")),
)
DECIDES = {
    "planning",
    "changes",
    "trials",
    "rest_tls",
    "rotation",
    "naming",
    "token_policy",
    "tokens",
}
"""Modules of whose functions a part that acts calls none."""


def calls(tree: ast.AST) -> Iterator[str]:
    """What is called, as it is written, here or on a thread."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = ast.unparse(node.func)
            yield ast.unparse(node.args[0]) if function == "asyncio.to_thread" else function


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions and methods of a module."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("folder", [DAEMONS, CLUSTERS], ids=lambda folder: folder.name)
def test_the_plan_is_called_once_and_in_one_place(folder: Path) -> None:
    places = [
        (path.stem, function.name)
        for path in files(str(folder.relative_to(ROOT)))
        for function in functions(path)
        for call in calls(function)
        if call == "planning.plan"
    ]
    assert [("loop", "_look")] == places


@pytest.mark.parametrize("folder", [DAEMONS, CLUSTERS], ids=lambda folder: folder.name)
def test_a_look_gathers_then_plans_then_acts_then_reports(folder: Path) -> None:
    (look,) = (function for function in functions(folder / "loop.py") if function.name == "_look")
    text = ast.unparse(look)
    steps = ("gather(", "planning.plan", "act(", "_report(")
    places = [text.rindex(step) for step in steps]
    assert places == sorted(places), text


def test_gathering_asks_nobody_twice() -> None:
    for function in functions(DAEMONS / "gathering.py"):
        awaited = Counter(
            ast.unparse(node.value) for node in ast.walk(function) if isinstance(node, ast.Await)
        )
        repeated = {call: count for call, count in awaited.items() if count > 1}
        assert not repeated, f"{function.name} reads {repeated}"


@pytest.mark.parametrize("path", PURE, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_what_is_pure_waits_for_nobody(path: Path) -> None:
    waits = [
        node
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.AsyncWith | ast.AsyncFor)
    ]
    assert not waits


def test_facts_and_plans_are_frozen_values_without_callables() -> None:
    for path in (DAEMONS / "situation.py", CLUSTERS / "planning.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                (decorator,) = node.decorator_list
                assert "frozen=True" in ast.unparse(decorator), node.name
                for line in node.body:
                    if isinstance(line, ast.AnnAssign):
                        assert "Callable" not in ast.unparse(line.annotation), node.name


def test_acting_decides_nothing() -> None:
    made = [
        call for call in calls(parsed(DAEMONS / "acting.py")) if call.partition(".")[0] in DECIDES
    ]
    assert not made


def test_no_refusal_is_handed_from_layer_to_layer() -> None:
    tested = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files("slurmoperator/daemons", "slurmoperator/clusters", "slurmoperator/keys")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "isinstance"
        and {"Refused", "Fault"} & set(ast.unparse(node.args[1]).split(" | "))
    ]
    assert not tested
