"""There is a plan for any facts about a NodeSet, and nothing is deleted on doubt; each mutant of the plan is noticed."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings

from slurmoperator.nodesets.plan.look import NodeSetFacts
from tests.make.mutants import Changed, hunted
from tests.slurmoperator.nodesets.contradictions import FACTS
from tests.slurmoperator.nodesets.plan_properties import PROPERTIES

EXAMPLES: Final = int(os.environ.get("SLURM_BRIDGE_WORLDS", "200"))
SEEDS: Final = 6000


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)
@settings(max_examples=EXAMPLES)
@given(facts=FACTS)
def test_for_any_facts(holds: Callable[[NodeSetFacts], None], facts: NodeSetFacts) -> None:
    holds(facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMutant:
    """A line of `slurmoperator/nodesets`, changed."""

    name: str
    before: str
    after: str
    file: str = "plan/planning.py"


MUTANTS = [
    PlanMutant(
        name="believes that nodes are free though jobs were not read",
        file="plan/workers.py",
        before="if self.needs_jobs and not self.facts.slurm.has_jobs:",
        after="if False:",
    ),
    PlanMutant(
        name="does not read jobs for workers that have to leave",
        file="plan/workers.py",
        before="        or bool(leaving)\n",
        after="",
    ),
    PlanMutant(
        name="does not read jobs for workers to replace",
        file="plan/workers.py",
        before="        or is_outdated\n",
        after="",
    ),
    PlanMutant(
        name="scales in one worker more",
        file="plan/workers.py",
        before="choosing.workers_to_remove(candidates, case.desired)",
        after="choosing.workers_to_remove(candidates, case.desired - 1)",
    ),
    PlanMutant(
        name="replaces workers though no pod can be made from the template",
        file="plan/workers.py",
        before=" and not facts.template_fault",
        after="",
    ),
    PlanMutant(
        name="replaces workers though the template is not stored",
        file="plan/workers.py",
        before=" and facts.prepared.is_stored",
        after="",
    ),
    PlanMutant(
        name="creates workers that are refused",
        before="if objection is None and (new",
        after="if (new",
    ),
    PlanMutant(
        name="counts the volumes of a refused NodeSet as unneeded",
        before="is_sure = facts.prepared.refusal is None",
        after="is_sure = True",
    ),
    PlanMutant(
        name="counts the volumes of a NodeSet that goes as unneeded",
        before="is_staying = is_sure and not facts.is_leaving",
        after="is_staying = is_sure",
    ),
    PlanMutant(
        name="deletes records though not all Kubernetes nodes can be read",
        file="records.py",
        before=" or facts.unreadable_nodes:",
        after=":",
    ),
    PlanMutant(
        name="deletes records of names that pods have",
        file="records.py",
        before="*facts.hosts, ",
        after="",
    ),
    PlanMutant(
        name="deletes records of its own workers",
        file="records.py",
        before="*(pod.slurm_node for pod in facts.pods), ",
        after="",
    ),
    PlanMutant(
        name="reserves nodes that Slurm does not have",
        file="windows/reservations.py",
        before="        and facts.slurm.listed(pod.slurm_node) is not None\n",
        after="",
    ),
    PlanMutant(
        name="reports states while Slurm is unknown",
        before="    if not facts.slurm.is_known:\n        return  # the last",
        after="    if False:\n        return  # the last",
    ),
    PlanMutant(
        name="forgets that a worker may succeed one with jobs",
        before="    if node is not None and node.is_busy:\n",
        after="    if False:\n",
    ),
    PlanMutant(
        name="takes a node that cannot be read for gone",
        file="plan/placing.py",
        before="unreadable=facts.unreadable_nodes,",
        after="unreadable=(),",
    ),
    PlanMutant(
        name="takes a state that is unknown for that of the last reading",
        file="plan/look.py",
        before="return self.nodes.get(node) if self.is_known else None",
        after="return self.nodes.get(node)",
    ),
    PlanMutant(
        name="makes no plan for other facts after a look at rest",
        before="return facts == replace(before, slurm=slurm, now=facts.now)",
        after="return True",
    ),
    PlanMutant(
        name="makes no plan after the clock was put back",
        before="if facts.now < before.now or",
        after="if",
    ),
    PlanMutant(
        name="does not see after a look at rest that Slurm lists its nodes otherwise",
        before="not self._has_same_nodes(facts):",
        after="False:",
    ),
    PlanMutant(
        name="does not see after a look at rest that Slurm lists nodes of workers otherwise that have no pod",
        before="names = {*pods, *(worker.node for worker in self.plan.workers)}",
        after="names = {*pods}",
    ),
    PlanMutant(
        name="does not see after a look at rest that Slurm lists other nodes to delete",
        before="if nodes is before or records.prunes(facts):",
        after="if nodes is before:",
    ),
    PlanMutant(
        name="takes a look for one at rest though its plan says when to look again",
        file="plan/status.py",
        before="is_lasting = not plan.delays and ",
        after="is_lasting = ",
    ),
    PlanMutant(
        name="takes a look for one at rest though a worker may soon count as late",
        file="plan/status.py",
        before="        pod.ready_since is None or troubles.is_late(pod, facts.now) for",
        after="        True for",
    ),
    PlanMutant(
        name="takes a look for one at rest though its status was another",
        file="plan/status.py",
        before=" or after != facts.node_set.status:",
        after=":",
    ),
    PlanMutant(
        name="does not report another outcome after a look at rest",
        file="plan/status.py",
        before=" and result == rest.outcome:",
        after=":",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_properties_find_a_plan_that(mutant: PlanMutant, tmp_path: Path) -> None:
    change = Changed(
        file=f"slurmoperator/nodesets/{mutant.file}",
        before=mutant.before,
        after=mutant.after,
    )
    program = (
        "from tests.slurmoperator.nodesets.contradictions import facts_of\n"
        "from tests.slurmoperator.nodesets.plan_properties import check\n"
        f"for seed in range({SEEDS}): check(facts_of(seed))"
    )

    hunt = hunted(change, tmp_path, "-c", program, package="slurmoperator")

    assert hunt.returncode == 1, hunt.stderr or "it survived"
    assert "\nAssertionError" in hunt.stderr, hunt.stderr
