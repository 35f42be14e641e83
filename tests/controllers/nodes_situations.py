"""What a leader of the controllers may find: situations of nodes."""

from bridge.domain.model import identities
from bridge.domain.model.identities import Identity
from bridge.domain.nodes import fillers, state
from slurmruntime.model import nodes
from slurmruntime.values import names
from slurmruntime.values.ids import WorkloadKey
from tests.make.apiserver import Manifest
from tests.make.leader import Outset
from tests.make.manifests import CLUSTER, GATED, job, kube_node, placed, pod, running
from tests.make.situations import (
    Situation,
)
from tests.make.slurm import Job
from tests.make.slurm_nodes import Node

MARKS = (names.BRIDGED_FEATURE, nodes.cluster_feature(CLUSTER))
IN_GPU = {names.PARTITIONS_ANNOTATION: "gpu"}
TAINT = {
    "key": names.MANAGED_NODE_TAINT,
    "value": names.SCHEDULER_NAME,
    "effect": "NoSchedule",
}
OURS = state.REASON_PREFIX


def slurm_node(name: str = "k1", *flags: str, reason: str = "", cpus: int = 4) -> Node:
    """One of ours."""
    states = {"IDLE", "EXTERNAL", *flags}
    features = (*MARKS, "gpu")
    return Node(name=name, states=states, reason=reason, features=features, cpus=cpus)


def said(reason: str = "InService") -> list[Manifest]:
    """The condition that Slurm's word has left on the node."""
    status = "True" if reason == "InService" else "False"
    message = "Slurm starts jobs on node k1" if status == "True" else "by hand, by root"
    return [
        {
            "type": names.SLURM_STATE_CONDITION,
            "status": status,
            "reason": reason,
            "message": message,
        }
    ]


def in_step(**changed: object) -> Manifest:
    """A node that has been in Slurm for long, but for what is named."""
    return kube_node(**{"notes": IN_GPU, "taints": [TAINT], "conditions": said(), **changed})  # type: ignore[arg-type]  # a few of its keywords


def outset(kube: list[Manifest], slurm: list[Node], **more: object) -> Outset:
    return Outset(objects=kube, nodes=slurm, partitions=("gpu",), **more)  # type: ignore[arg-type]  # its own fields


def going_pod() -> Manifest:
    """A pod of ours that Kubernetes deletes, on a node that does not answer."""
    return pod("one", {"nodeName": "k1"}, status={"phase": "Running"}, is_deleting=True)


def shared(**changed: object) -> Manifest:
    """A machine with a slurmd beside its kubelet."""
    return in_step(**{"labels": {names.HYBRID_NODE_LABEL: "true"}, "notes": {}, **changed})


def marked() -> Node:
    """Its record in Slurm."""
    return Node(name="k1", states={"IDLE"}, features=["own", *MARKS])


def in_turns(objects: list[Manifest], node: Node, **more: object) -> Outset:
    """A machine that native jobs and pods have in turns."""
    settings = {"nodes": {"hybrid": "alternate"}}
    return outset([shared(), *objects], [node], settings=settings, **more)


def taken() -> Node:
    """Its record while pods have it."""
    node = marked()
    node.states.add("DRAIN")
    node.reason = OURS + state.TAKEN
    return node


def foreign_pod(cpus: int) -> Manifest:
    """A pod of the default scheduler's that asks for so much of the machine."""
    requests = {"cpu": str(cpus), "memory": "1Gi"}
    spec = {
        "nodeName": "k1",
        "schedulerName": names.DEFAULT_SCHEDULER_NAME,
        "containers": [{"name": "main", "resources": {"requests": requests}}],
    }
    return pod("foreign", spec)


def filler(cpus: int, *, has_sluid: bool = True) -> Job:
    """What has held that share of the machine."""
    identity = Identity(
        cluster=CLUSTER,
        kind=fillers.KIND,
        namespace="",
        name="k1",
        key=WorkloadKey("uid-k1"),
        pods=(),
    )
    return Job(
        id=1,
        comment=identities.encode(identity),
        state="RUNNING",
        nodes="k1",
        required=["k1"],
        cpus_per_task=cpus,
        memory_mib=1024,
        has_sluid=has_sluid,
    )


SITUATIONS = [
    Situation("a node is labelled", lambda: outset([kube_node(notes=IN_GPU)], [])),
    Situation(
        "a cordoned node is labelled",
        lambda: outset([kube_node(notes=IN_GPU, unschedulable=True)], []),
    ),
    Situation(
        "it is cordoned",
        lambda: outset([in_step(unschedulable=True)], [slurm_node()]),
    ),
    Situation(
        "it is uncordoned",
        lambda: outset([in_step()], [slurm_node("k1", "DRAIN", reason=OURS + state.CORDONED)]),
    ),
    Situation(
        "it does not answer, and its pods are given up",
        lambda: outset([in_step(is_ready=False), going_pod()], [slurm_node()]),
    ),
    Situation(
        "it answers again",
        lambda: outset([in_step()], [slurm_node("k1", "DOWN", reason=OURS + state.GIVEN_UP)]),
    ),
    Situation(
        "its description changes",
        lambda: outset(
            [
                in_step(
                    labels={names.EXTERNAL_NODE_LABEL: "true", "zone": "a"},
                    notes={
                        **IN_GPU,
                        names.WEIGHT_ANNOTATION: "7",
                        names.TOPOLOGY_ANNOTATION: "topo-switch:s1",
                    },
                )
            ],
            [Node(name="k1", features=(*MARKS, "gpu"), address="10.9.9.9")],
            settings={"controllers": {"node_features": "zone"}},
        ),
    ),
    Situation(
        "Slurm looked for a slurmd there while a job runs",
        lambda: outset(
            [in_step()],
            [slurm_node("k1", "NOT_RESPONDING")],
            jobs=[Job(id=7, comment="", state="RUNNING", nodes="k1")],
        ),
    ),
    Situation("it has grown", lambda: outset([in_step(cpus=8)], [slurm_node()])),
    Situation("it has shrunk", lambda: outset([in_step(cpus=2)], [slurm_node()])),
    Situation(
        "it is not wanted any more, and jobs that wait name it",
        lambda: outset(
            [in_step(labels={}), pod("one", GATED), pod("two", GATED), kube_node("s9")],
            [slurm_node(), slurm_node("s9", "DRAIN")],
            jobs=[job(1, "one", excluded=["k1"]), job(2, "two", required=["s9", "k1"])],
        ),
    ),
    Situation(
        "it is not wanted any more, and a job that waits requires it alone",
        lambda: outset(
            [in_step(labels={}), pod("one", GATED)],
            [slurm_node("k1", "DRAIN", reason=OURS + "no longer wanted")],
            jobs=[job(1, "one", required=["k1"])],
        ),
    ),
    Situation(
        "somebody has deleted its record, and jobs that wait name it",
        lambda: outset(
            [kube_node("s9"), *(pod(name, GATED) for name in ("one", "two", "three"))],
            [slurm_node("s9", "DRAIN")],
            jobs=[
                job(1, "one", excluded=["k1"]),
                job(2, "two", required=["s9", "k1"]),
                job(3, "three", required=["k1"]),
            ],
        ),
    ),
    Situation("it is gone from Kubernetes", lambda: outset([], [slurm_node()])),
    Situation(
        "somebody drains it in Slurm",
        lambda: outset(
            [in_step()],
            [slurm_node("k1", "DRAIN", reason="by hand")],
            settings={"controllers": {"cordon_drained_nodes": True}},
        ),
    ),
    Situation(
        "somebody has undrained it in Slurm",
        lambda: outset(
            [
                in_step(
                    notes={**IN_GPU, names.CORDON_ANNOTATION: "by hand"},
                    unschedulable=True,
                    conditions=said("Drained"),
                )
            ],
            [slurm_node()],
            settings={"controllers": {"cordon_drained_nodes": True}},
        ),
    ),
    Situation(
        "a predecessor died while it was parked",
        lambda: outset(
            [in_step(unschedulable=True)],
            [Node(name="k1", features=(nodes.cluster_feature(CLUSTER), names.PARKED_FEATURE))],
        ),
    ),
    Situation(
        "two nodes want one name",
        lambda: outset(
            [
                kube_node("k1", notes=IN_GPU),
                kube_node(
                    "k2",
                    labels={
                        names.EXTERNAL_NODE_LABEL: "true",
                        names.SLURM_NODE_NAME_LABEL: "k1",
                    },
                ),
            ],
            [],
        ),
    ),
    Situation(
        "a machine with a slurmd is labelled",
        lambda: outset(
            [kube_node(labels={names.HYBRID_NODE_LABEL: "true"})],
            [Node(name="k1", states={"IDLE"}, features=["own"])],
        ),
    ),
    Situation(
        "pods of others are on a machine with a slurmd",
        lambda: outset([shared(), foreign_pod(2)], [marked()]),
    ),
    Situation(
        "fewer pods of others are on a machine with a slurmd",
        lambda: outset([shared(), foreign_pod(1)], [marked()], jobs=[filler(3)]),
    ),
    Situation(
        "no pods of others are on a machine with a slurmd any more",
        lambda: outset([shared()], [marked()], jobs=[filler(3)]),
    ),
    Situation(
        "the same in a Slurm without SLUIDs",
        lambda: outset([shared()], [marked()], jobs=[filler(3, has_sluid=False)]),
    ),
    Situation(
        "pods get their turn on a machine with a slurmd",
        lambda: in_turns([placed("one")], marked(), jobs=[running(nodes="k1")]),
    ),
    Situation("their turn is over", lambda: in_turns([], taken())),
    Situation(
        "a filler is left on a machine whose pods want it whole",
        lambda: in_turns([foreign_pod(2)], marked(), jobs=[filler(3)]),
    ),
    Situation(
        "a machine with a slurmd is not shared any more, and a filler is left",
        lambda: outset([shared(labels={})], [marked()], jobs=[filler(3)]),
    ),
    Situation(
        "a machine with a slurmd is not wanted any more",
        lambda: outset(
            [in_step(labels={})],
            [Node(name="k1", states={"IDLE"}, features=["own", *MARKS])],
        ),
    ),
]
