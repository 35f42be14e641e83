"""What an administrator's answer about hybrid nodes means for a pod."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bridge.domain.model import hybrid
from bridge.domain.model.hybrid import RECENT, HybridRule
from bridge.domain.request import candidates
from bridge.domain.request.fit import KubeLimits
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode
from tests.make import lives, placing

SHARED = placing.kube_node("k1", labels={names.HYBRID_NODE_LABEL: "true"})
EXTERNAL = placing.kube_node("k2")
BEGAN = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
SLURMDS = frozenset({"IDLE"})


@pytest.mark.parametrize("rule", HybridRule)
@pytest.mark.parametrize("has_whole_node", [False, True])
def test_external_nodes_take_pods_whatever_the_answer(
    rule: HybridRule, *, has_whole_node: bool
) -> None:
    assert "" == hybrid.why_refused(EXTERNAL, rule, has_whole_node=has_whole_node)
    assert "" == hybrid.why_unheld(EXTERNAL, rule, asked_at=None, started_at=None)
    assert "" == hybrid.why_open(placing.slurm_node(), rule)


def test_without_an_answer_hybrid_nodes_take_none() -> None:
    for has_whole_node in (False, True):
        why = hybrid.why_refused(SHARED, HybridRule.NONE, has_whole_node=has_whole_node)
        assert "nodes.hybrid does not say" in why
    assert "" == hybrid.why_refused(SHARED, HybridRule.ACCEPT_OVERLAP, has_whole_node=False)


def test_in_turns_they_take_those_whose_job_shares_the_node_with_none() -> None:
    rule = HybridRule.ALTERNATE
    assert "exclusive" in hybrid.why_refused(SHARED, rule, has_whole_node=False)
    assert "" == hybrid.why_refused(SHARED, rule, has_whole_node=True)


@pytest.mark.parametrize(
    ("job_nodes", "cpus", "is_whole"),
    [
        (("k1",), 8, True),
        (("k1",), 7, False),
        (("k1", "k2"), 16, True),
        (("k1", "k2"), 15, False),
        (("k1", "gone"), 16, False),
        ((), 0, False),
    ],
)
def test_a_job_has_whole_nodes_if_it_has_all_of_their_cpus(
    job_nodes: tuple[str, ...], cpus: int, *, is_whole: bool
) -> None:
    """Without those that CoreSpecCount keeps."""
    records = {
        SlurmNode(name): placing.slurm_node(name, cpus=10, offered_cpus=8) for name in ("k1", "k2")
    }
    job = replace(lives.job(), nodes=tuple(map(SlurmNode, job_nodes)), cpus=cpus)
    assert is_whole is hybrid.has_whole_nodes(job, records)


@pytest.mark.parametrize(
    ("asked_at", "started_at", "is_held"),
    [
        (BEGAN - timedelta(seconds=1), BEGAN, True),
        (BEGAN + timedelta(hours=9), BEGAN, True),
        (BEGAN - RECENT, BEGAN, True),
        (BEGAN - RECENT - timedelta(seconds=1), BEGAN, False),
        (None, BEGAN, False),
        (BEGAN, None, False),
    ],
)
def test_escrow_counts_only_where_the_script_has_asked_lately(
    asked_at: datetime | None, started_at: datetime | None, *, is_held: bool
) -> None:
    why = hybrid.why_unheld(SHARED, HybridRule.ESCROW, asked_at=asked_at, started_at=started_at)
    assert is_held is (why == "")
    for other in set(HybridRule) - {HybridRule.ESCROW}:
        assert "" == hybrid.why_unheld(SHARED, other, asked_at=asked_at, started_at=started_at)


@pytest.mark.parametrize("states", [SLURMDS, SLURMDS | {"DRAIN"}, frozenset({"MIXED", "DRAIN"})])
def test_in_turns_a_pod_is_bound_only_to_a_drained_node(states: frozenset[str]) -> None:
    node = placing.slurm_node(states=states)
    assert ("DRAIN" in states) is (hybrid.why_open(node, HybridRule.ALTERNATE) == "")
    assert "" == hybrid.why_open(node, HybridRule.ACCEPT_OVERLAP)


def test_a_pod_goes_elsewhere_and_if_there_is_nothing_else_it_is_told_why() -> None:
    around = candidates.pool(
        [SHARED, EXTERNAL], [placing.slurm_node("k1"), placing.slurm_node("k2")], placing.CLUSTER
    )
    alone = candidates.pool([SHARED], [placing.slurm_node("k1")], placing.CLUSTER)

    assert (SlurmNode("k2"),) == candidates.choose(placing.pod(), around).required_nodes
    assert hybrid.UNANSWERED in candidates.choose(placing.pod(), alone).problem
    for rule, whole, expected in (
        (HybridRule.ALTERNATE, False, hybrid.SHARED),
        (HybridRule.ALTERNATE, True, ""),
        (HybridRule.ESCROW, False, ""),
        (HybridRule.ACCEPT_OVERLAP, False, ""),
    ):
        limits = KubeLimits(hybrid=rule, has_whole_node=whole)
        problem = candidates.choose(placing.pod(), alone, hidden=limits).problem
        assert expected in problem
        assert bool(expected) is bool(problem)
