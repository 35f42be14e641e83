"""A node that is not wanted in Slurm any more goes last, after its jobs and what names it."""

from dataclasses import replace

import pytest

from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.nodes import named
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import (
    Create,
    Delete,
    Drain,
    Forget,
    RemoveCondition,
    RemoveTaint,
    Rename,
    Uncordon,
    Withdraw,
)
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, SlurmNode
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
        assert named.SOON == decision.again

    def test_one_that_has_no_other_is_submitted_again(self) -> None:
        job = replace(build_job(), required_nodes=(NAME,))

        assert [Withdraw(job_id=job.id, sluid=job.sluid)] == decided(
            None, drained("slurm-bridge: gone from Kubernetes"), named_by=(job,)
        )

    def test_the_record_stays_while_a_running_one_excludes_it(self) -> None:
        """Its lists cannot be changed any more (2073)."""
        job = replace(build_job(), phase=JobPhase.RUNNING, excluded_nodes=(NAME,))
        decision = look(unlabelled(), drained("slurm-bridge: no longer wanted"), named_by=(job,))

        assert ((), named.LATER) == (decision.actions, decision.again)

    def test_they_keep_a_node_that_comes_back_at_once(self) -> None:
        job = replace(build_job(), required_nodes=(NAME,))
        assert Delete(slurm_node=NAME) in decided(
            build.kube_node(**TAINTED), build.slurm_node(cpus=9), named_by=(job,)
        )


class TestJobsThatNameANodeThatHasGone:
    """Somebody else deleted its record: a slurmd's, say."""

    def test_waiting_ones_forget_it(self) -> None:
        (forget,) = decided(None, None, named_by=(names_it(), needs_it()))

        assert isinstance(forget, Forget)
        assert (NAME, [Rename, Withdraw]) == (
            forget.slurm_node,
            [type(change) for change in forget.changes],
        )

    @pytest.mark.parametrize(
        "job",
        [
            pytest.param(replace(lives.job(), excluded_nodes=(NAME,)), id="it runs"),
            pytest.param(
                replace(
                    lives.waiting(),
                    required_nodes=(NAME, NAME),
                    identity=replace(lives.waiting().identity, restores="7"),
                ),
                id="it replaces a lost one",
            ),
        ],
    )
    def test_others_keep_their_lists(self, job: SlurmJob) -> None:
        assert [] == decided(None, None, named_by=(job,))

    def test_a_node_that_is_about_to_be_created_is_not_forgotten(self) -> None:
        kube_node = build.kube_node(**TAINTED)
        actions = decided(kube_node, None, named_by=(names_it(),))
        assert [Create] == [type(action) for action in actions]

    def test_all_are_looked_for_until_none_is_left(self) -> None:
        for jobs in (None, (names_it(),)):
            assert named.SOON == look(None, None, named_by=jobs).again
        assert None is look(None, None, named_by=()).again

    def test_what_waits_is_what_matters(self) -> None:
        running = replace(lives.job(), excluded_nodes=(SlurmNode("k9"),))
        assert {NAME} == named.by_waiting([names_it(), needs_it(), running])


def names_it() -> SlurmJob:
    return replace(build_job(), excluded_nodes=(NAME,))


def needs_it() -> SlurmJob:
    return replace(build_job(), required_nodes=(NAME,))


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
