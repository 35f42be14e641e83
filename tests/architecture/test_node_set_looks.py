"""A look at a NodeSet is four steps: gathering decides nothing, the plan is made once from plain facts, and acting decides nothing."""

import ast
from collections.abc import Callable, Iterator

import pytest

from tests.architecture.sources import ROOT, files, parsed

NODESETS = ROOT / "slurmoperator" / "nodesets"
PLAN = "slurmoperator.nodesets.plan"
FACTS = {f"{PLAN}.look"}
"""What gathering makes, without the plan."""
DECIDING = (
    "slurmoperator.workers.",
    *(
        f"slurmoperator.nodesets.{subject}"
        for subject in (
            "pod_conditions.node_states",
            "revisions.retaining",
            "volumes.unneeded",
            "windows.reservations",
        )
    ),
)
"""The rules, and the half of each subject that decides."""
PLAIN = {"slurmoperator.workers.actions"}
"""What the plan has decided, as values."""


def test_a_node_set_is_planned_in_one_place_and_once() -> None:
    calls = [
        (path.name, call.lineno)
        for path in files("slurmoperator/nodesets")
        for call in plans(parsed(path))
    ]
    assert [name for name, _ in calls] == ["loop.py"], calls


def test_its_plan_waits_for_nothing() -> None:
    waiting = [
        (path.name, node.lineno)
        for path in files("slurmoperator/nodesets/plan")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.AsyncFunctionDef | ast.Await)
    ]
    assert not waiting, waiting


def test_its_facts_hold_no_functions() -> None:
    assert not list(functions_in_fields(parsed(NODESETS / "plan" / "look.py")))
    assert not list(functions_in_fields(parsed(NODESETS / "plan" / "planning.py")))


def test_gathering_knows_only_the_facts() -> None:
    assert not list(decisions_of_gathering(parsed(NODESETS / "gathering.py")))


def test_acting_decides_nothing() -> None:
    assert not list(decisions_of_acting(parsed(NODESETS / "actuator.py")))


def plans(tree: ast.Module) -> Iterator[ast.expr]:
    """Every call of the plan, one in a loop twice."""
    for node in ast.walk(tree):
        is_loop = isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.comprehension)
        for inner in ast.walk(node) if is_loop else (node,):
            if isinstance(inner, ast.Call) and ast.unparse(inner.func).endswith("planning.plan"):
                yield inner


def functions_in_fields(tree: ast.Module) -> Iterator[str]:
    """Fields of classes that hold functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and "Callable" in ast.unparse(node.annotation):
            yield ast.unparse(node)


def decisions_of_gathering(tree: ast.Module) -> Iterator[str]:
    """What it imports of the plan and of the rules, and what it subscribes to."""
    for name in imported(tree):
        if name.startswith(PLAN) and name not in FACTS:
            yield name
        if name.startswith(DECIDING):
            yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "follow":
            yield ast.unparse(node)


def decisions_of_acting(tree: ast.Module) -> Iterator[str]:
    """What it imports of the rules, what it calls of the plan, and what it asks of the facts or the plan before it acts."""
    for name in imported(tree):
        if name.startswith(DECIDING) and name not in PLAIN:
            yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PLAN):
            yield from (alias.name for alias in node.names if alias.name[0].islower())
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            names = {name.id for name in ast.walk(node.test) if isinstance(name, ast.Name)}
            if names & {"facts", "plan", "step"}:
                yield ast.unparse(node.test)


def imported(tree: ast.Module) -> Iterator[str]:
    """The modules that it imports, or imports names from."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(name)):
                yield name
            case _:
                pass


@pytest.mark.parametrize(
    ("look", "source"),
    [
        (functions_in_fields, "class Facts:\n    seen: Callable[[str], bool]"),
        (decisions_of_gathering, "from slurmoperator.nodesets.plan.planning import plan"),
        (decisions_of_gathering, "from slurmoperator.workers.table import decide"),
        (decisions_of_gathering, "self._views.follow(controller, uid, interest)"),
        (decisions_of_acting, "from slurmoperator.workers.choosing import workers_to_remove"),
        (decisions_of_acting, "from slurmoperator.nodesets.plan.planning import plan"),
        (decisions_of_acting, "if facts.is_leaving:\n    stop()"),
        (decisions_of_acting, "if view is None or plan.window is None:\n    stop()"),
        (decisions_of_acting, "delete(step.needed) if step.needed else stop()"),
        (decisions_of_acting, "delete() if worker.facts.goes else keep(facts)\nif facts: pass"),
    ],
)
def test_a_decision_in_the_wrong_place_is_noticed(
    look: Callable[[ast.Module], Iterator[str]], source: str
) -> None:
    assert list(look(ast.parse(source)))


def test_a_second_plan_and_one_in_a_loop_are_noticed() -> None:
    twice = ast.parse("planning.plan(facts)\nplanning.plan(facts)")
    looped = ast.parse("for facts in all_facts:\n    planning.plan(facts)")
    assert (2, 2) == (len(list(plans(twice))), len(list(plans(looped))))
