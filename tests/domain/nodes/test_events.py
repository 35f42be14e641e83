"""Which changes of a node's condition an Event tells of."""

from dataclasses import replace

from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import SetCondition
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.values import names
from tests.make import placing as build
from tests.make.registration import TAINTED, drained, look


class TestEvents:
    """A condition is announced when its reason is new, and worth a word."""

    def test_a_node_that_is_in_service_from_the_first_look_on_has_no_event(self) -> None:
        assert [""] == events(build.kube_node(**TAINTED))
        assert [] == events(in_service())

    def test_a_node_that_is_in_slurm_but_not_as_wanted_has_one_from_the_first_look_on(self) -> None:
        annotations = {names.PARTITIONS_ANNOTATION: "gpu,typo"}
        kube_node = build.kube_node(annotations=annotations, **TAINTED)
        slurm_node = build.slurm_node("k1", "gpu", "typo", partitions=("gpu",))

        assert ["Warning"] == events(kube_node, slurm_node)
        (said,) = conditions(kube_node, slurm_node)
        assert [] == events(replace(kube_node, conditions=(said.condition,)), slurm_node)

    def test_a_node_that_is_drained_and_back_has_one_for_both(self) -> None:
        by_hand = drained("bad memory")
        assert ["Warning"] == events(in_service(), by_hand)
        (said,) = conditions(in_service(), by_hand)
        kube_node = build.kube_node(conditions=(said.condition,), **TAINTED)
        assert ["Normal"] == events(kube_node)

    def test_a_sentence_that_changes_is_no_news(self) -> None:
        (said,) = conditions(in_service(), drained("bad memory"))
        kube_node = build.kube_node(conditions=(said.condition,), **TAINTED)
        assert [""] == events(kube_node, drained("bad memory, ask ops"))


def in_service() -> KubeNodeFacts:
    condition = node_state.condition(build.slurm_node())
    return build.kube_node(conditions=(condition,), **TAINTED)


def conditions(
    kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts | None = None
) -> list[SetCondition]:
    actions = look(kube_node, slurm_node or build.slurm_node()).actions
    return [action for action in actions if isinstance(action, SetCondition)]


def events(kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts | None = None) -> list[str]:
    return [action.event for action in conditions(kube_node, slurm_node)]
