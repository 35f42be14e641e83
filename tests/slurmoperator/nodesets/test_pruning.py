"""Which nodes Slurm is to forget."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.nodesets.records import nodes_to_delete
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode

GONE: Mapping[str, Any] = {
    "states": frozenset({"DOWN", "DYNAMIC_NORM", "NOT_RESPONDING"}),
    "features": ("gpu",),
}


def node(name: str = "a", **changes: Any) -> SlurmNodeFacts:
    return SlurmNodeFacts(name=SlurmNode(name), **{**GONE, **changes})


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        (True, {}),
        (True, {"states": frozenset({"IDLE", "DRAIN", "DYNAMIC_NORM", "NOT_RESPONDING"})}),
        (True, {"features": ("big", "gpu")}),
        (False, {"name": "b"}),  # somebody has that name
        (False, {"features": ("gpus",)}),
        (False, {"states": frozenset({"DOWN", "DYNAMIC_NORM"})}),  # it answers
        (False, {"states": frozenset({"DOWN", "NOT_RESPONDING"})}),  # slurm.conf has it
        (False, {"states": frozenset({"EXTERNAL", *GONE["states"]})}),  # a bridge's
        (False, {"states": frozenset({"ALLOCATED", *GONE["states"]})}),
        (False, {"alloc_cpus": 1}),
    ],
)
def test_a_node_is_forgotten_only_if_nothing_speaks_for_it(
    changes: Mapping[str, Any], *, expected: bool
) -> None:
    found = nodes_to_delete([node(**changes)], feature="gpu", needed={"b"})
    assert found == ((SlurmNode("a"),) if expected else ())


STATES = ("IDLE", "DOWN", "DRAIN", "ALLOCATED", "DYNAMIC_NORM", "NOT_RESPONDING", "EXTERNAL")


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.frozensets(st.sampled_from(STATES)), max_size=6),
    st.frozensets(st.sampled_from("abcdef")),
)
def test_whoever_answers_has_jobs_or_is_needed_stays(
    states: Mapping[str, frozenset[str]], needed: frozenset[str]
) -> None:
    listed = [node(name, states=each) for name, each in states.items()]
    found = nodes_to_delete(listed, feature="gpu", needed=needed)
    assert sorted(found) == [*found]
    for name in found:
        assert name not in needed
        assert "NOT_RESPONDING" in states[name]
        assert not states[name] & {"ALLOCATED", "EXTERNAL"}
