"""The rules for plans of nodes notice when a line of the plan is wrong. Each mutant changes one, and must be found."""

from pathlib import Path

import pytest

from tests.make.mutants import Changed, hunted

pytestmark = pytest.mark.slow

FACTS = 5000

MUTANTS = {
    "acts on a list of nodes that may be stale": Changed(
        file="bridge/domain/nodes/registration.py",
        before="if not facts.is_confirmed and not is_harmless:",
        after="if False:",
    ),
    "takes every record in Slurm for its own": Changed(
        file="bridge/domain/nodes/registration.py",
        before="if nodes.cluster_feature(settings.publishing.cluster) in slurm_node.features:",
        after="if True:",
    ),
    "deletes a node under its jobs": Changed(
        file="bridge/domain/nodes/registration.py",
        before="    if slurm_node.is_busy:\n        return NodePlan(actions=drain",
        after="    if False:\n        return NodePlan(actions=drain",
    ),
    "deletes a node that jobs name": Changed(
        file="bridge/domain/nodes/registration.py",
        before="if slurm_node.is_busy or facts.named_by == ():",
        after="if True:",
    ),
    "makes a node anew that others took out of service": Changed(
        file="bridge/domain/nodes/registration.py",
        before="case.facts.is_crashed or case.standing.is_by_others:",
        after="case.facts.is_crashed:",
    ),
    "forgets the pods that a node is held for": Changed(
        file="bridge/domain/nodes/registration.py",
        before="elif case.facts.hold is not Hold.HELD:",
        after="elif False:",
    ),
    "creates a node again that Slurm refuses": Changed(
        file="bridge/domain/nodes/registration.py",
        before='if case.facts.refusal is not None and case.is_refused:\n        text = f"Slurm refuses the node',
        after='if case.facts.refusal is not None and False:\n        text = f"Slurm refuses the node',
    ),
    "takes an old refusal for a new one": Changed(
        file="bridge/domain/nodes/registration.py",
        before="wanted=None if case.is_refused else case.wanted,",
        after="wanted=case.wanted,",
    ),
    "taints a node after it was handed out": Changed(
        file="bridge/domain/nodes/registration.py",
        before="actions=(*_taint(kube_node, case.settings), *parking.create(case)),",
        after="actions=(*parking.create(case), *_taint(kube_node, case.settings)),",
    ),
    "lifts a drain while Slurm does not report": Changed(
        file="bridge/domain/nodes/parking.py",
        before="elif all(isinstance(action, Drain) for action in case.standing.to_slurm.actions):",
        after="else:",
    ),
    "lets a parked node into its partitions before it is drained": Changed(
        file="bridge/domain/nodes/parking.py",
        before="if why and not slurm_node.states & node_state.OUT_OF_SERVICE:",
        after="if False:",
    ),
    "releases a node before all is ready": Changed(
        file="bridge/domain/nodes/parking.py",
        before="if why := _not_ready(node):",
        after='if why := "":',
    ),
    "lifts the drain of others when a machine is not shared any more": Changed(
        file="bridge/domain/nodes/state.py",
        before="lift = () if outside else tuple(_lift(slurm_node))",
        after="lift = tuple(_lift(slurm_node))",
    ),
    "ends the pods' turn while their containers stop": Changed(
        file="bridge/domain/nodes/state.py",
        before="return nodes.is_hybrid(kube_node) and (has_tenants or is_kept)",
        after="return nodes.is_hybrid(kube_node) and is_kept",
    ),
    "ends the pods' turn before a pod of their job is seen": Changed(
        file="bridge/domain/nodes/state.py",
        before="is_in_use = slurm_node.is_busy or idle_for < SEEN_WITHIN",
        after="is_in_use = slurm_node.is_busy",
    ),
    "writes over a person's drain": Changed(
        file="bridge/domain/nodes/state.py",
        before="    if is_by_others(slurm_node):\n        return StateChange()",
        after="    if False:\n        return StateChange()",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_rules_find_a_plan_that(mutant: str, tmp_path: Path) -> None:
    hunter = ("-m", "tests.properties.hunt", "node", str(FACTS), "0")

    hunt = hunted(MUTANTS[mutant], tmp_path, *hunter, package="bridge/domain")

    assert hunt.returncode == 1, hunt.stderr or "it survived"
    assert hunt.stdout.startswith("AssertionError: "), hunt.stdout + hunt.stderr
