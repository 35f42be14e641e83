"""A look at a node: facts are gathered, one plan is made of them, and what carries it out decides nothing."""

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

from bridge.domain.nodes.decision import NodeFacts, NodeOutcome, NodePlan, NodeSettings
from tests.architecture.sources import ROOT, files, module, parsed

ACTUATOR = ROOT / "controllers" / "nodes" / "actuator.py"
GATHERING = ROOT / "controllers" / "nodes" / "gathering.py"
REGISTRATION = ROOT / "bridge" / "domain" / "nodes" / "registration.py"

MECHANICAL = {
    "await nodes.create(self._slurm, spare) is Creation.EXISTS",
    "await nodes.delete(self._slurm, name) is Deletion.BUSY",
    "job is not None",
    "kind",
    "kube_node is None",
    "not await self.act(action)",
    "plan.wanted is None",
    "refusal.error_number not in (JOB_NOT_PENDING, JOB_FINISHED)",
    "str(error) != self._respond_error",
}
"""Every question that the actuator asks: whether something is still there, and what a peer answered."""


def test_a_plan_is_made_in_one_place_and_facts_are_gathered_in_one() -> None:
    calls = [
        (ast.unparse(node.func), module(path))
        for path in files("bridge/domain/nodes", "controllers")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
    ]

    for call in ("registration.plan", "self._gatherer.gather"):
        places = [place for name, place in calls if name == call]
        assert ["controllers.nodes.controller"] == places, call


def test_what_is_worked_out_about_a_node_is_worked_out_once() -> None:
    """Registration asks the record and the standing in one place each, and hands the values on."""
    calls = [
        ast.unparse(node.func)
        for node in ast.walk(parsed(REGISTRATION))
        if isinstance(node, ast.Call)
    ]

    assert 1 == calls.count("node_spec.record") == calls.count("node_state.standing")
    besides = {call for call in calls if call.startswith(("node_spec.", "node_state."))}
    assert {
        "node_spec.record",
        "node_spec.shared_features",
        "node_state.problem",
        "node_state.standing",
    } == besides


def test_what_acts_knows_actions_and_no_rules() -> None:
    assert {"actions", "decision"} == set(imported_of_nodes(ACTUATOR))
    asked = {
        ast.unparse(node.test)
        for node in ast.walk(parsed(ACTUATOR))
        if isinstance(node, ast.If | ast.IfExp | ast.While)
    }
    assert MECHANICAL == asked, "decide it in bridge.domain.nodes.registration"


def test_what_gathers_knows_no_rules() -> None:
    assert not {"registration", "state", "spec"} & set(imported_of_nodes(GATHERING))


def test_facts_and_plans_are_values() -> None:
    for kind in (NodeFacts, NodePlan, NodeOutcome, NodeSettings):
        assert dataclasses.is_dataclass(kind)
        assert getattr(kind, "__dataclass_params__").frozen  # noqa: B009  # not in typeshed
        hints = get_type_hints(kind)
        assert not [name for name, hint in hints.items() if "Callable" in str(hint)]


def imported_of_nodes(path: Path) -> Iterator[str]:
    """The modules of `bridge.domain.nodes` that a file imports, or imports from."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.ImportFrom(module="bridge.domain.nodes", names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=str(name)) if name.startswith("bridge.domain.nodes."):
                yield name.rpartition(".")[2]
