"""The nodes of a placeholder that waits are released together, or not yet."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.nodes.actions import Undrain
from bridge.domain.nodes.decision import Companion
from bridge.domain.nodes.hold import Hold
from bridge.domain.nodes.parking import groups, release
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode
from tests.make import placing as build
from tests.make.placing import MARK
from tests.make.registration import TAINTED, decided, drained, look

LOST = "slurm-bridge: pods run here whose jobs Slurm has lost"
NODES = tuple(SlurmNode(name) for name in "abcdefgh")


def companion(name: str, *, hold: Hold = Hold.RESTORING, reason: str = LOST) -> Companion:
    there = replace(drained(reason), name=SlurmNode(name))
    return Companion(name=there.name, slurm_node=there, hold=hold)


def free(name: str, *, hold: Hold = Hold.RESTORING) -> Companion:
    there = build.slurm_node(name=SlurmNode(name))
    return Companion(name=there.name, slurm_node=there, hold=hold)


class TestGroups:
    def test_a_node_alone_is_in_none(self) -> None:
        assert {} == groups([["a"], []])  # type: ignore[list-item]  # names

    def test_placeholders_that_share_a_node_join_their_nodes(self) -> None:
        a, b, c, d, e, *_ = NODES

        found = groups([[a, b], [d, e], [c, b, b]])

        assert dict.fromkeys((a, b, c), (a, b, c)) | dict.fromkeys((d, e), (d, e)) == found

    @given(st.lists(st.sets(st.sampled_from(NODES))))
    def test_whoever_waits_for_the_same_placeholder_is_in_the_same_group(
        self, shared: list[set[SlurmNode]]
    ) -> None:
        found = groups(shared)

        for placeholder in shared:
            if len(placeholder) > 1:
                assert 1 == len({found[node] for node in placeholder})
        for node, group in found.items():
            assert node in group
            assert all(found[other] == group for other in group)
            # No group can be split without cutting through a placeholder.
            linked = {node}
            for _ in group:
                linked |= {each for one in shared if one & linked for each in one}
            assert linked == set(group)


class TestRelease:
    def test_all_that_we_drained_at_once(self) -> None:
        actions, _ = release([companion("a"), free("b"), companion("c", hold=Hold.UNDECIDED)])

        assert (Undrain(slurm_nodes=(SlurmNode("a"), SlurmNode("c"))),) == actions

    def test_nothing_is_left_to_do(self) -> None:
        actions, _ = release([free("a"), free("b", hold=Hold.HELD)])

        assert () == actions

    @pytest.mark.parametrize(
        ("other", "why"),
        [
            (Companion(name=NODES[1], slurm_node=None, hold=Hold.MISSING), "does not have it"),
            (companion("b", hold=Hold.MISSING), "not all placeholders"),
            (companion("b", hold=Hold.UNSURE), "not all placeholders"),
            (companion("b", reason="bad fan"), "out of service"),
            (companion("b", hold=Hold.HELD), "it is drained"),
            (
                replace(
                    free("b"),
                    slurm_node=build.slurm_node(features=(MARK, names.PARKED_FEATURE)),
                ),
                "not in its partitions",
            ),
        ],
        ids=["not there", "missing", "unsure", "an administrator's drain", "cordoned", "parked"],
    )
    def test_none_before_all_are_ready(self, other: Companion, why: str) -> None:
        actions, reason = release([companion("a"), other])

        assert () == actions
        assert "node b" in reason
        assert why in reason


class TestALook:
    def test_the_first_node_releases_the_others(self) -> None:
        node = drained(LOST)
        actions = decided(
            build.kube_node(**TAINTED), node, hold=Hold.RESTORING, companions=(companion("z"),)
        )

        assert [Undrain(slurm_nodes=(node.name, SlurmNode("z")))] == actions

    def test_the_others_wait_for_it(self) -> None:
        kube_node, node = build.kube_node(**TAINTED), drained(LOST)
        decision = look(kube_node, node, hold=Hold.RESTORING, leader=NODES[0])

        assert [] == decided(kube_node, node, hold=Hold.RESTORING, leader=NODES[0])
        assert decision.reason.endswith("released together with a")
        assert decision.again is not None
