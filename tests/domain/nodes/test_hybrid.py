"""A machine with a slurmd beside its kubelet: its record in Slurm is not ours to make."""

from dataclasses import replace
from typing import Any

from bridge.domain.nodes.actions import (
    Delete,
    Drain,
    RemoveTaint,
    SetFeatures,
)
from slurmruntime.model import nodes
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode
from tests.make import placing as build
from tests.make.placing import MARK, NO_TAINTS
from tests.make.registration import NAME, TAINT, TAINTED, decided, told


class TestHybrid:
    """A slurmd's record: we only mark it, and drains pass both ways."""

    KUBE = replace(
        build.kube_node(labels={names.HYBRID_NODE_LABEL: "true", "disk": "ssd"}), taints=(TAINT,)
    )

    @staticmethod
    def slurmds(*features: str, **fields: Any) -> SlurmNodeFacts:
        states = frozenset({"IDLE"}) | fields.pop("states", frozenset())
        return build.slurm_node(features=features, states=states, cpus=64, **fields)

    def test_it_is_marked_beside_its_own_features(self) -> None:
        (action,) = decided(self.KUBE, self.slurmds("fast", "disk=hdd"))

        assert (
            SetFeatures(
                slurm_node=NAME, features=("fast", "slurm-bridge", MARK, NO_TAINTS, "disk=ssd")
            )
            == action
        )
        assert [] == decided(
            self.KUBE, self.slurmds("fast", "slurm-bridge", MARK, NO_TAINTS, "disk=ssd")
        )

    def test_it_is_never_created_resized_deleted_or_declared_down(self) -> None:
        marked = self.slurmds("slurm-bridge", MARK, NO_TAINTS, "disk=ssd")
        dead = replace(self.KUBE, is_ready=False)

        assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(self.KUBE, None)
        assert ("False", "NotRegistered") == told(self.KUBE, None)[:2]
        assert [Drain(slurm_node=NAME, reason="slurm-bridge: not ready in Kubernetes")] == decided(
            dead, marked, is_given_up=True
        )

    def test_without_the_label_it_is_as_it_was(self) -> None:
        kube_node = replace(self.KUBE, labels={})
        marked = self.slurmds(
            "fast",
            "slurm-bridge",
            MARK,
            NO_TAINTS,
            "disk=ssd",
            states=frozenset({"DRAIN"}),
            reason="ops",
        )

        assert [
            SetFeatures(slurm_node=NAME, features=("fast",)),
            RemoveTaint(kube_node=KubeNode("k1")),
        ] == decided(kube_node, marked)

    def test_another_clusters_is_left_alone(self) -> None:
        theirs = self.slurmds("slurm-bridge", "slurm-bridge.dev/cluster=other")

        assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(self.KUBE, theirs)
        assert ("False", nodes.NAME_TAKEN) == told(self.KUBE, theirs)[:2]

    def test_an_external_record_of_ours_makes_room(self) -> None:
        assert Delete(slurm_node=NAME) in decided(self.KUBE, build.slurm_node())

    def test_a_slurmds_record_is_not_taken_for_an_external_one(self) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert ("False", nodes.NAME_TAKEN) == told(kube_node, self.slurmds("fast"))[:2]
        assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(kube_node, self.slurmds("fast"))
