"""A node that is not wanted in Slurm any more goes last, after its jobs and what names it."""

from dataclasses import replace

import pytest

from bridge.domain import names
from bridge.domain.ids import KubeNode, SlurmNode
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.nodes import KubeNodeFacts
from bridge.domain.nodes import registration
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import (
    Delete,
    Drain,
    RemoveCondition,
    RemoveTaint,
    Rename,
    Uncordon,
    Withdraw,
)
from tests.make import lives
from tests.make import placing as build
from tests.make.registration import BUSY, NAME, TAINTED, decided, drained, look, unlabelled


@pytest.mark.parametrize(
    "kube_node",
    [
        pytest.param(unlabelled(**TAINTED), id="unlabelled"),
        pytest.param(build.kube_node(is_deleting=True, **TAINTED), id="being deleted"),
        pytest.param(None, id="gone"),
    ],
)
def test_a_node_that_is_not_wanted_any_more_goes_when_its_jobs_have(
    kube_node: KubeNodeFacts | None,
) -> None:
    busy = decided(kube_node, build.slurm_node(**BUSY))
    idle = decided(kube_node, build.slurm_node())
    idle_and_drained = decided(kube_node, drained("slurm-bridge: no longer wanted"))

    assert [Drain] == [type(action) for action in busy]
    assert [Drain, Delete] == [type(action) for action in idle]
    assert [Delete(slurm_node=NAME)] == idle_and_drained


def test_the_taint_goes_last() -> None:
    kube_node = unlabelled(**TAINTED)

    assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(kube_node, None)
    assert [] == decided(unlabelled(), None)
    assert [] == decided(None, None)


class TestJobsThatNameANodeThatLeaves:
    """Slurm refuses every update of a job that names a node which is gone."""

    def test_waiting_ones_forget_it_before_it_goes(self) -> None:
        job = replace(build_job(), required_nodes=(NAME, SlurmNode("k2")), excluded_nodes=(NAME,))

        assert [
            Rename(
                job_id=job.id,
                sluid=job.sluid,
                required_nodes=(SlurmNode("k2"),),
                excluded_nodes=(),
            )
        ] == decided(unlabelled(), drained("slurm-bridge: no longer wanted"), named_by=(job,))

    def test_nothing_goes_before_they_are_known(self) -> None:
        """One that was submitted a moment ago is in no reading yet."""
        decision = look(unlabelled(), build.slurm_node(), named_by=None)

        assert [Drain] == [type(action) for action in decision.actions]
        assert registration.SOON == decision.again

    def test_one_that_has_no_other_is_submitted_again(self) -> None:
        job = replace(build_job(), required_nodes=(NAME,))

        assert [Withdraw(job_id=job.id, sluid=job.sluid)] == decided(
            None, drained("slurm-bridge: gone from Kubernetes"), named_by=(job,)
        )

    def test_the_record_stays_while_a_running_one_excludes_it(self) -> None:
        """Its lists cannot be changed any more (2073)."""
        job = replace(build_job(), phase=JobPhase.RUNNING, excluded_nodes=(NAME,))
        decision = look(unlabelled(), drained("slurm-bridge: no longer wanted"), named_by=(job,))

        assert ((), registration.LATER) == (decision.actions, decision.again)

    def test_they_keep_a_node_that_comes_back_at_once(self) -> None:
        job = replace(build_job(), required_nodes=(NAME,))
        assert Delete(slurm_node=NAME) in decided(
            build.kube_node(**TAINTED), build.slurm_node(cpus=9), named_by=(job,)
        )


def build_job() -> SlurmJob:
    return lives.waiting()


def test_nothing_of_ours_is_left_on_a_node_that_is_not_wanted() -> None:
    kube_node = unlabelled(
        annotations={names.CORDON_ANNOTATION: "ops"},
        is_unschedulable=True,
        conditions=(node_state.problem("Drained", ""),),
        **TAINTED,
    )

    assert [RemoveTaint, Uncordon, RemoveCondition] == [
        type(action) for action in decided(kube_node, None)
    ]
