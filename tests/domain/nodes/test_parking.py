"""A node whose pods have lost their placeholders comes back drained, and takes no jobs meanwhile."""

from dataclasses import replace

import pytest

from bridge.domain.nodes.actions import (
    Create,
    Delete,
    Drain,
    RenewPartitions,
    SetFeatures,
    Undrain,
)
from bridge.domain.nodes.hold import Hold
from slurmruntime.values import names
from tests.make import placing as build
from tests.make.placing import MARK
from tests.make.registration import NAME, PARKED, TAINTED, decided, drained, leaves_parking, look


class TestPodsWithoutPlaceholders:
    """Slurm has lost jobs whose pods run on: nobody else may start where they are."""

    LOST = "slurm-bridge: pods run here whose jobs Slurm has lost"

    def test_a_node_comes_back_drained(self) -> None:
        create, drain, *leave = decided(build.kube_node(**TAINTED), None, hold=Hold.MISSING)

        assert isinstance(create, Create)
        assert Drain(slurm_node=NAME, reason=self.LOST) == drain
        assert leaves_parking(create.spec, leave)

    @pytest.mark.parametrize("hold", Hold)
    @pytest.mark.parametrize("features", [(MARK,), (names.BRIDGED_FEATURE, MARK)])
    @pytest.mark.parametrize("is_drained", [False, True])
    def test_whoever_died_on_the_way_another_one_ends_it(
        self, hold: Hold, features: tuple[str, ...], *, is_drained: bool
    ) -> None:
        slurm_node = drained(self.LOST) if is_drained else build.slurm_node()
        slurm_node = replace(slurm_node, features=(*features, names.PARKED_FEATURE))
        drain = [Drain(slurm_node=NAME, reason=self.LOST)]

        actions = decided(build.kube_node(**TAINTED), slurm_node, hold=hold)

        assert actions[:-3] == ([] if is_drained or hold is Hold.HELD else drain)
        assert leaves_parking(PARKED, actions[-3:])

    def test_whose_drain_it_is_that_keeps_a_parked_node_does_not_matter(self) -> None:
        slurm_node = drained("bad fan", features=(MARK, names.PARKED_FEATURE))

        actions = decided(build.kube_node(**TAINTED), slurm_node, hold=Hold.MISSING)

        assert [SetFeatures, RenewPartitions, SetFeatures] == [type(action) for action in actions]

    def test_a_parked_node_that_nobody_wants_goes(self) -> None:
        slurm_node = build.slurm_node(features=(MARK, names.PARKED_FEATURE))

        assert Delete(slurm_node=NAME) in decided(None, slurm_node)

    @pytest.mark.parametrize("hold", [Hold.MISSING, Hold.UNDECIDED])
    def test_a_node_is_drained_once(self, hold: Hold) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert [Drain(slurm_node=NAME, reason=self.LOST)] == decided(
            kube_node, build.slurm_node(), hold=hold
        )
        assert [] == decided(kube_node, drained(self.LOST), hold=hold)

    def test_nothing_is_taken_back_while_slurm_does_not_say(self) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert [] == decided(kube_node, drained(self.LOST), hold=Hold.UNSURE)

    def test_a_cordon_counts_at_once_all_the_same(self) -> None:
        """On a busy node there is always a pod of which Slurm has not been read yet."""
        kube_node = build.kube_node(is_unschedulable=True, **TAINTED)
        drain = Drain(slurm_node=NAME, reason="slurm-bridge: cordoned in Kubernetes")

        assert [drain] == decided(kube_node, build.slurm_node(), hold=Hold.UNSURE)

    @pytest.mark.parametrize("cordoned", [False, True])
    def test_they_may_start_again_even_on_a_cordoned_node(self, *, cordoned: bool) -> None:
        kube_node = build.kube_node(is_unschedulable=cordoned, **TAINTED)

        assert [Undrain(slurm_nodes=(NAME,))] == decided(
            kube_node, drained(self.LOST), hold=Hold.RESTORING
        )

    def test_an_administrators_drain_stands(self) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert [] == decided(kube_node, drained("bad fan"), hold=Hold.RESTORING)

    def test_a_node_is_not_made_anew_under_them(self) -> None:
        smaller = build.slurm_node(cpus=1)

        assert [] == decided(build.kube_node(**TAINTED), smaller, hold=Hold.RESTORING)

    def test_it_is_looked_at_again(self) -> None:
        for hold in set(Hold) - {Hold.HELD}:
            decision = look(build.kube_node(**TAINTED), drained(self.LOST), hold=hold)
            assert decision.again is not None

    def test_afterwards_all_is_as_before(self) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert [Undrain(slurm_nodes=(NAME,))] == decided(kube_node, drained(self.LOST))
