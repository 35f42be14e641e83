"""Facts about a NodeSet that may contradict each other: pods of two owners, workers in two Slurms, a newer release's status, clocks apart."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from slurmoperator.nodesets import names
from slurmoperator.nodesets.plan.admission import in_force
from slurmoperator.nodesets.plan.look import (
    NodeSetFacts,
    Objection,
    PodFacts,
    PreparationResult,
    SlurmFacts,
    pod_facts,
)
from slurmoperator.objects.labels import PROTECTED_LABEL
from slurmoperator.objects.nodeset import (
    NodeSetObject,
    NodeSetSpec,
    NodeSetStatus,
    RollingUpdate,
    UpdateStrategy,
    WorkerTemplate,
)
from slurmoperator.objects.parts import ObjectReference
from slurmoperator.workers.situation import REASON_PREFIX, WorkerObservation
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube.meta import rfc3339
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts, Taint
from slurmruntime.values.ids import KubeNode, SlurmNode
from tests.slurmoperator.nodesets.given import pod

T = TypeVar("T")

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
UID: Final = "uid-gpu"
REVISION: Final = "new"
HOSTS: Final = ("gpu-0", "gpu-1", "gpu-2", "a", "b")
PODS: Final = (*HOSTS[:3], *HOSTS[:3], "gpu-01", "gpu-x", "gpu-²", "gpu--1", "other-0")
MACHINES: Final = ("a", "b.example", "gpu-1", "")
STATES: Final = (
    *("IDLE", "ALLOCATED", "MIXED", "DOWN", "UNDRAIN", "COMPLETING"),
    *("INVALID_REG", "SOMETHING_NEW"),
)
OURS: Final = f"{REASON_PREFIX}scaled in"
REPLACED: Final = f"{REASON_PREFIX}to be replaced: its NodeSet has another template"


class Contradictions:
    """Draws facts; the same seed gives the same."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)  # noqa: S311  # histories, not secrets

    def one(self, *values: T) -> T:
        return self.rng.choice(values)

    def some(self, values: Sequence[T], *, most: int = 9) -> list[T]:
        """Any of them, each once."""
        distinct = list(dict.fromkeys(values))
        return self.rng.sample(distinct, self.rng.randint(0, min(len(distinct), most)))

    def most(self, values: Sequence[T]) -> list[T]:
        return [value for value in values if self.rng.random() < 0.8]

    def maybe(self, value: T) -> T | None:
        return self.one(value, None)

    def moment(self) -> datetime:
        return NOW + timedelta(seconds=self.rng.randint(-600, 600) ** self.one(1, 3) // 100)

    def pod(self, number: int, *, is_on_node: bool) -> PodFacts:
        """A pod of this NodeSet, or one that has two owners, another's name, or what a newer release writes."""
        meta: dict[str, Any] = {
            "name": self.one(*PODS),
            "namespace": self.one("slurm", "slurm", "other"),
            "uid": f"pod-{number}",
            "resourceVersion": str(number),
            "labels": {names.DIGEST_LABEL: self.one(REVISION, REVISION, "old", "")},
            "annotations": {
                names.KUBE_NODE_ANNOTATION: self.one(*MACHINES[:-1], "gone") if is_on_node else "",
                names.DELETION_COST_ANNOTATION: self.one("", "7", "-7", "many", "9" * 30),
            },
            "ownerReferences": [
                {"uid": uid, "controller": True} for uid in self.some((UID, "uid-other"))
            ],
        }
        if self.rng.random() < 0.7:
            meta["labels"][PROTECTED_LABEL] = self.one("true", "true", "perhaps")
        if self.rng.random() < 0.2:
            meta["annotations"][names.POD_CORDON_ANNOTATION] = "true"
        if self.rng.random() < 0.2:
            meta["deletionTimestamp"] = rfc3339(self.moment())
        if self.one(True, False):
            meta["creationTimestamp"] = rfc3339(self.moment())
        ready = {
            "type": "Ready",
            "status": self.one("True", "True", "False", "Perhaps"),
            "lastTransitionTime": rfc3339(self.moment()),
        }
        shown = {"type": "SlurmNodeStateDrain", "status": "True", "message": "bad fan"}
        conditions = self.one([], [ready], [ready], [ready, ready], [ready, shown])
        phase = self.one("Pending", "Running", "Running", "Failed", "Sleeping", "")
        spec = {"nodeName": self.one(*MACHINES), "hostname": self.one(*HOSTS, "")}
        status = {"phase": phase, "conditions": conditions}
        return pod_facts("gpu", pod(meta, spec=spec, status=status))

    def slurm_node(self, name: str) -> SlurmNodeFacts:
        flags = self.one((), ("DRAIN",), ("DRAIN",), ("DYNAMIC_NORM", "NOT_RESPONDING"))
        return SlurmNodeFacts(
            name=SlurmNode(name),
            states=frozenset((*self.some(STATES, most=2), *flags)),
            features=self.one((), ("gpu",), ("other", "gpu")),
            reason=self.one("", "bad fan", OURS, REPLACED, f"{REASON_PREFIX}its pod is cordoned"),
            reservation=self.one("", names.reservation("gpu")),
            topology=self.one("", "topo:s1"),
            gres=self.one("", "gpu:1", "gpu:many,,"),
            alloc_cpus=self.one(0, 0, 4),
        )

    def observation(self, name: str) -> WorkerObservation:
        """It need not agree with the list: a worker may be in two Slurms."""
        return WorkerObservation(
            is_sure=self.rng.random() < 0.8,
            node=self.one(None, *[self.slurm_node(name)] * 3),
            has_jobs=self.rng.random() < 0.3,
            quiet_readings=self.rng.randint(0, 3),
        )

    def slurm(self) -> SlurmFacts:
        return SlurmFacts(
            trouble=self.one("", "", None, "slurmctld is away"),
            nodes={name: self.slurm_node(name) for name in self.most(HOSTS)},
            observations={name: self.observation(name) for name in self.most(HOSTS)},
            has_jobs=self.rng.random() < 0.8,
            free_at={SlurmNode(name): self.maybe(self.moment()) for name in self.some(HOSTS)},
        )

    def kube_node(self, name: str) -> KubeNodeFacts:
        topology = {"topology.slinky.slurm.net/spec": "topo:s2"}
        taint = Taint(key="rack", effect=self.one("NoSchedule", "NoExecute", "New"))
        return KubeNodeFacts(
            name=KubeNode(name),
            uid=name,
            labels=self.one({}, {"gpu": "yes"}, {"gpu": "yes"}),
            annotations=self.one({}, topology, {names.CORDON_REASON_ANNOTATION: "it's\nbroken"}),
            taints=self.one((), (), (taint,)),
            is_unschedulable=self.one(True, False, False),
            is_deleting=self.one(True, False, False),
        )

    def node_set(self, name: str = "gpu") -> NodeSetObject:
        """As users write them, with a status of this release or of a newer one."""
        limits = self.one(
            None, RollingUpdate(max_unavailable="9%"), RollingUpdate(max_unavailable=9)
        )
        spec = NodeSetSpec(
            controller_ref=ObjectReference(name="site"),
            replicas=self.rng.randint(0, 4),
            scaling_mode=self.one("StatefulSet", "StatefulSet", "DaemonSet"),
            template=WorkerTemplate(spec={"nodeSelector": self.one({}, {"gpu": "yes"}, ["odd"])}),
            update_strategy=self.maybe(
                UpdateStrategy(
                    type=self.one("RollingUpdate", "OnDelete", "ScheduledUpdate"),
                    rolling_update=limits,
                )
            ),
            pin_to_node=self.one(True, False),
            min_ready_seconds=self.one(0, 60),
            ordinal_padding=self.one(0, 2),
            workload_disruption_protection=self.one(True, False),
            prune_slurm_node_records=self.one("Never", "NodeNotFound"),
            extra_conf=self.one("", "Gres=gpu:1"),
        )
        newer = ObjectCondition(
            type=self.one("Ready", "SlurmKnown", "Blessed"),
            status="Unknown",
            reason="Newer",
            message="",
            observed_generation=self.rng.randint(0, 10**9),
            last_transition_time=self.moment(),
        )
        pins = {number: self.one(*MACHINES) for number in self.some(("0", "1", "x", "-1"))}
        before = NodeSetStatus(
            conditions=self.one((), (newer,), (newer, newer)),
            slurm_allocated=self.rng.randint(0, 9),
            ordinal_to_node=self.maybe(pins),
            accepted_conf=self.maybe("Weight=2"),
        )
        meta = ObjectMetadata(
            name=name,
            namespace="slurm",
            uid=f"uid-{name}",
            generation=self.rng.randint(0, 9),
            creation_timestamp=self.maybe(self.moment()),
            deletion_timestamp=self.one(None, None, None, self.moment()),
        )
        return NodeSetObject(metadata=meta, spec=spec, status=before)

    def facts(self) -> NodeSetFacts:
        node_set, others = self.node_set(), self.rng.randint(0, 2)
        is_on_nodes = node_set.spec.scaling_mode == "DaemonSet"
        return NodeSetFacts(
            conf=in_force(node_set, None),
            pods=tuple(
                self.pod(number, is_on_node=is_on_nodes is (self.rng.random() < 0.9))
                for number in range(self.rng.randint(0, 6))
            ),
            slurm=self.slurm(),
            kube_nodes={name: self.kube_node(name) for name in self.most(MACHINES[:-1])},
            unreadable_nodes=frozenset(self.one([], self.some(MACHINES))),
            others=tuple(self.node_set(f"gpu-{number}") for number in range(others)),
            hosts={host: self.one("", "other-0") for host in self.some(HOSTS)},
            prepared=PreparationResult(
                revision=REVISION,
                collisions=0,
                is_stored=self.rng.random() < 0.9,
                refusal=self.one(
                    None, None, None, Objection(reason="NotOurs", text="others have it")
                ),
                template_fault=self.one("", "", "", "spec.slurmd.image: expected an image"),
            ),
            now=self.moment(),
        )


def facts_of(seed: int) -> NodeSetFacts:
    """The facts of a seed."""
    return Contradictions(seed).facts()


FACTS: Final = st.integers(0, 2**64).map(facts_of)
"""Drawn from one number, as Hypothesis would take a tenth of a second for each."""
