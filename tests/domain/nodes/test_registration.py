"""Keeping Slurm's nodes in step with Kubernetes': what is done at one look, and where repeated looks lead."""

from dataclasses import replace
from typing import Any

import pytest

from bridge.domain.model import demand
from bridge.domain.model.demand import Demand
from bridge.domain.model.devices import gres
from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import (
    Create,
    Delete,
    Drain,
    NodeAction,
    RemoveTaint,
    SetCondition,
    SetTaint,
    Undrain,
)
from bridge.domain.nodes.decision import NodeRefusal
from slurmruntime.model import nodes
from slurmruntime.model.nodes import (
    Allocatable,
    KubeNodeFacts,
    SlurmNodeSpec,
    Taint,
)
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, SlurmNode
from tests.make import placing as build
from tests.make.registration import (
    BUSY,
    NAME,
    NO_DAEMONS,
    PUBLISHING,
    SETTINGS,
    TAINT,
    TAINTED,
    decided,
    drained,
    leaves_parking,
    look,
    told,
    unlabelled,
    unlabelled_as,
)


def test_a_labelled_node_is_tainted_then_created() -> None:
    kube_node = build.kube_node(
        labels={"topology.kubernetes.io/zone": "a", "disk": "ssd", "other": "x"},
        annotations={names.PARTITIONS_ANNOTATION: "gpu, debug", names.TOPOLOGY_ANNOTATION: "t:s1"},
        gpus=2,
    )
    daemons = demand.total([build.demands("250m", "1Gi"), build.demands("1", "1.5Mi")])

    expected = SlurmNodeSpec(
        name=NAME,
        address="10.0.0.1",
        cpus=6,
        memory_mib=31 * 1024 - 2,
        features=(
            "slurm-bridge",
            "slurm-bridge.dev/cluster=c-1",
            "slurm-bridge.dev/taints=none",
            "gpu",
            "debug",
            "disk=ssd",
            "topology.kubernetes.io/zone=a",
        ),
        gres="gpu:a100:2",
        gres_conf="count=2,name=gpu,type=a100,file=gpu-0,file=gpu-1",
        topology="t:s1",
    )

    assert [SetTaint(kube_node=KubeNode("k1"), taint=TAINT), Create(spec=expected)] == decided(
        kube_node, None, daemons
    )


def test_gpus_that_daemons_hold_are_not_handed_out() -> None:
    daemons = demand.total([build.demands(**{"nvidia.com/gpu": "1"})])

    assert "gpu:a100:3" == node_spec.spec(build.kube_node(gpus=4), daemons, PUBLISHING).gres
    assert "" == node_spec.spec(build.kube_node(gpus=1), daemons, PUBLISHING).gres


def test_a_gres_without_type_has_none_in_its_files() -> None:
    publishing = replace(PUBLISHING, gpu_resources={"nvidia.com/gpu": "gpu"})
    spec = node_spec.spec(build.kube_node(gpus=1), NO_DAEMONS, publishing)

    assert ("gpu:1", "count=1,name=gpu,file=gpu-0") == (spec.gres, spec.gres_conf)


def test_several_kinds_of_gres_are_records_of_one_node() -> None:
    """MIG slices and whole GPUs of one machine: files are counted through, so that none is named twice."""
    resources = {"nvidia.com/gpu": "gpu", "nvidia.com/mig-1g.10gb": "gpu:1g.10gb", "x/nic": "nic"}
    publishing = replace(
        PUBLISHING, gpu_resources=resources, gpu_type_labels=("nvidia.com/gpu.product",)
    )
    kube_node = build.kube_node(labels={"nvidia.com/gpu.product": "A100"})
    extended = {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 2, "x/nic": 1}
    kube_node = replace(kube_node, allocatable=replace(kube_node.allocatable, extended=extended))

    spec = node_spec.spec(kube_node, NO_DAEMONS, publishing)

    assert "gpu:1g.10gb:2,gpu:a100:1,nic:1" == spec.gres
    assert spec.gres_conf.split("+") == [
        "count=2,name=gpu,type=1g.10gb,file=gpu-0,file=gpu-1",
        "count=1,name=gpu,type=a100,file=gpu-2",
        "count=1,name=nic,file=nic-0",
    ]
    shown = "gpu:a100:1(S:0),gpu:1g.10gb:2(S:0),nic:1"
    assert spec.gres == gres.plain(shown)


def test_devices_of_claims_have_the_type_of_their_profile_or_none() -> None:
    """The pods that claim them ask for that name, and look it up in what Slurm gave."""
    resources = {"resource.k8s.io/gpu": "gpu", "nvidia.com/gpu": "gpu"}
    publishing = replace(
        PUBLISHING, gpu_resources=resources, gpu_type_labels=("nvidia.com/gpu.product",)
    )
    kube_node = build.kube_node(labels={"nvidia.com/gpu.product": "A100"})

    found = node_spec.devices(
        kube_node, {"resource.k8s.io/gpu": 2, "nvidia.com/gpu": 1, "x/nic": 1}, publishing
    )

    assert {"gpu": 2, "gpu:a100": 1} == found


def test_slurms_name_may_be_another() -> None:
    kube_node = build.kube_node("k1.example.com", labels={names.SLURM_NODE_NAME_LABEL: "s1"})

    assert SlurmNode("s1") == node_spec.spec(kube_node, NO_DAEMONS, PUBLISHING).name


@pytest.mark.parametrize(
    ("kube_node", "daemons", "reason"),
    [
        pytest.param(
            replace(build.kube_node(), internal_ip=""),
            NO_DAEMONS,
            "the kubelet has reported no InternalIP",
            id="no address",
        ),
        pytest.param(
            build.kube_node(cpus=1),
            demand.total([build.demands("1m")]),
            "nothing is left of it beside the DaemonSets' pods",
            id="no whole CPU left",
        ),
        pytest.param(
            build.kube_node(annotations={names.PARTITIONS_ANNOTATION: 'gpu,a" State=DOWN'}),
            NO_DAEMONS,
            "metadata.annotations[scheduler.slinky.slurm.net/external-node-partitions]: "
            "expected names separated by commas, found 'a\" State=DOWN'",
            id="an annotation that would not be one word of node_conf",
        ),
    ],
)
def test_a_node_that_cannot_be_described_is_not_created(
    kube_node: KubeNodeFacts, daemons: Demand, reason: str
) -> None:
    tainted = replace(kube_node, taints=(TAINT,))

    assert reason == look(tainted, None, daemons).reason == told(tainted, None, daemons=daemons)[2]
    assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(tainted, None, daemons)


def test_a_node_in_step_is_left_alone() -> None:
    assert [] == decided(build.kube_node(**TAINTED), build.slurm_node())
    assert "in step" == look(build.kube_node(**TAINTED), build.slurm_node()).reason


def test_a_node_that_takes_no_pods_is_created_drained() -> None:
    kube_node = build.kube_node(is_unschedulable=True, **TAINTED)
    create, drain, *leave = decided(kube_node, None)

    assert isinstance(create, Create)
    assert Drain(slurm_node=NAME, reason="slurm-bridge: cordoned in Kubernetes") == drain
    assert leaves_parking(create.spec, leave)


def test_gpus_bound_to_sockets_are_the_same_gpus() -> None:
    assert [] == decided(
        build.kube_node(gpus=4, **TAINTED), build.slurm_node(gres="gpu:a100:4(S:0-1)")
    )


@pytest.mark.parametrize(
    ("kube_node", "why"),
    [
        (build.kube_node(is_unschedulable=True, **TAINTED), "cordoned in Kubernetes"),
        (build.kube_node(is_ready=False, **TAINTED), "not ready in Kubernetes"),
    ],
)
def test_a_node_that_takes_no_pods_takes_no_jobs(kube_node: KubeNodeFacts, why: str) -> None:
    drain = Drain(slurm_node=NAME, reason=f"slurm-bridge: {why}")

    assert [drain] == decided(kube_node, build.slurm_node())
    assert [drain] == decided(kube_node, build.slurm_node(**BUSY))
    assert [] == decided(kube_node, drained(f"slurm-bridge: {why}"))


def test_only_our_own_drain_is_taken_back() -> None:
    kube_node = build.kube_node(**TAINTED)

    assert [Undrain(slurm_nodes=(NAME,))] == decided(
        kube_node, drained("slurm-bridge: cordoned in Kubernetes")
    )
    assert [] == decided(kube_node, drained("disk is dying, ask ops"))
    assert [] == decided(kube_node, drained(""))


@pytest.mark.parametrize(
    ("taints", "effect", "expected"),
    [
        pytest.param((), "NoSchedule", [SetTaint(kube_node=KubeNode("k1"), taint=TAINT)], id="new"),
        pytest.param((TAINT,), "NoSchedule", [], id="there"),
        pytest.param(
            (TAINT,),
            "NoExecute",
            [SetTaint(kube_node=KubeNode("k1"), taint=replace(TAINT, effect="NoExecute"))],
            id="another effect",
        ),
        pytest.param((TAINT,), "", [RemoveTaint(kube_node=KubeNode("k1"))], id="switched off"),
        pytest.param((), "", [], id="off and not there"),
    ],
)
def test_the_taint_follows_the_setting(
    taints: tuple[Taint, ...], effect: str, expected: list[NodeAction]
) -> None:
    settings = replace(SETTINGS, taint_effect=effect)

    assert expected == decided(
        build.kube_node(taints=taints), build.slurm_node(), settings=settings
    )


@pytest.mark.parametrize(
    "features",
    [
        pytest.param((), id="without our mark"),
        pytest.param(("slurm-bridge", "slurm-bridge.dev/cluster=other"), id="another cluster's"),
    ],
)
@pytest.mark.parametrize("kube_node", [build.kube_node(), unlabelled(), None])
def test_slurm_nodes_that_are_not_ours_are_never_touched(
    kube_node: KubeNodeFacts | None, features: tuple[str, ...]
) -> None:
    assert [] == decided(kube_node, build.slurm_node(features=features, cpus=99))


def test_threads_of_one_core_are_given_out_together() -> None:
    kube_node = build.kube_node(cpus=7, annotations={names.THREADS_ANNOTATION: "2"}, **TAINTED)
    spec = node_spec.spec(kube_node, NO_DAEMONS, PUBLISHING)

    assert (6, 2) == (spec.cpus, spec.threads_per_core)
    assert [Drain, Delete] == [
        type(action) for action in decided(kube_node, build.slurm_node(cpus=6))
    ]


@pytest.mark.parametrize(
    ("labels", "resource", "gres"),
    [
        ({"nvidia.com/gpu.product": "NVIDIA-A100-80GB"}, "gpu", "gpu:nvidia-a100-80gb:2"),
        ({"nvidia.com/gpu.product": "NVIDIA-A100-80GB"}, "gpu:a100", "gpu:a100:2"),
        ({}, "gpu", "gpu:2"),
    ],
)
def test_the_type_of_gpus_comes_from_the_nodes_labels(
    labels: dict[str, str], resource: str, gres: str
) -> None:
    publishing = replace(
        PUBLISHING,
        gpu_resources={"nvidia.com/gpu": resource},
        gpu_type_labels=("nvidia.com/gpu.product",),
    )

    found = node_spec.spec(build.kube_node(gpus=2, labels=labels), NO_DAEMONS, publishing)
    assert gres == found.gres


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            {"internal_ip": "extra.example"},
            "status.addresses[InternalIP]: expected an IP address, found 'extra.example'",
            id="a name",
        ),
        pytest.param(
            {"internal_ip": "fe80::1%eth0"},
            "status.addresses[InternalIP]: expected an IP address, found 'fe80::1%eth0'",
            id="an address with a zone, which may be any text",
        ),
        pytest.param(
            {"allocatable": Allocatable(extended={"nvidia.com/gpu": 10**9})},
            "status.allocatable[nvidia.com/gpu]: expected at most 1024 devices, found 1000000000",
            id="a billion devices",
        ),
    ],
)
def test_what_no_kubelet_should_report_is_said_on_the_node(
    change: dict[str, Any], words: str
) -> None:
    _, reason, message = told(replace(build.kube_node(), **change), None)

    assert ("InvalidAnnotation", words) == (reason, message)


@pytest.mark.parametrize("weight", ["", "-1", "many", "4294967295", "1 State=DOWN"])
def test_an_annotation_that_is_no_number_is_said_on_the_node(weight: str) -> None:
    kube_node = build.kube_node(annotations={names.WEIGHT_ANNOTATION: weight})
    status, reason, message = told(kube_node, None)

    assert ("False", "InvalidAnnotation") == (status, reason)
    assert message == (
        f"metadata.annotations[slurm-bridge.dev/weight]: expected a whole number from 0 to 4294967294, "
        f"found {weight!r}"
    )
    assert [] == decided(kube_node, None)


def test_a_refused_node_is_not_created_again_as_it_is() -> None:
    kube_node = build.kube_node(**TAINTED)
    wanted = node_spec.spec(kube_node, NO_DAEMONS, PUBLISHING)
    refusal = NodeRefusal(spec=wanted, words="no such switch")

    assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(kube_node, None, refusal=refusal)
    assert ("False", "Refused", "Slurm refuses the node: no such switch") == told(
        kube_node, None, refusal=refusal
    )
    changed = replace(refusal, spec=replace(wanted, cpus=1))
    assert [Create(spec=wanted)] == decided(kube_node, None, refusal=changed)


def test_a_refused_change_leaves_the_node_in_service() -> None:
    kube_node = build.kube_node(annotations={names.TOPOLOGY_ANNOTATION: "t:nope"}, **TAINTED)
    refusal = NodeRefusal(
        spec=node_spec.spec(kube_node, NO_DAEMONS, PUBLISHING), words="no such switch"
    )

    assert [] == decided(kube_node, build.slurm_node(), refusal=refusal)
    assert ("True", "ChangeRefused", "Slurm refuses a change of the node: no such switch") == told(
        kube_node, build.slurm_node(), refusal=refusal
    )


def test_a_partition_that_does_not_exist_is_said_on_the_node() -> None:
    kube_node = build.kube_node(annotations={names.PARTITIONS_ANNOTATION: "gpu,typo"}, **TAINTED)
    slurm_node = build.slurm_node("k1", "gpu", "typo")
    text = "Slurm has no partition {} that takes nodes with a feature of that name"

    assert ("True", "PartitionMissing", text.format("typo")) == told(
        kube_node, replace(slurm_node, partitions=("gpu",))
    )
    assert ("False", "NoPartition", text.format("gpu, typo")) == told(kube_node, slurm_node)
    status, reason, _ = told(kube_node, replace(slurm_node, partitions=("typo", "gpu")))
    assert ("True", "InService") == (status, reason)


def test_the_loser_of_a_name_is_told_and_left_to_others() -> None:
    first = build.kube_node("a", labels={names.SLURM_NODE_NAME_LABEL: "s1"})
    second = build.kube_node("b", labels={names.SLURM_NODE_NAME_LABEL: "s1"}, **TAINTED)
    assert first is nodes.holder([second, first])

    said, *rest = look(first, build.slurm_node(), rivals=(second,)).rivals
    assert isinstance(said, SetCondition)
    assert nodes.NAME_TAKEN == said.condition.reason
    assert "node a already has the Slurm name s1" in said.condition.message
    assert [RemoveTaint(kube_node=KubeNode("b"))] == rest


def test_who_has_a_name_keeps_it() -> None:
    """Whoever came first, also against one whose name comes first; and it goes with the label."""
    label = {names.SLURM_NODE_NAME_LABEL: "s1"}
    in_service = node_state.condition(build.slurm_node())
    taken = node_state.problem(nodes.NAME_TAKEN, "")
    old = build.kube_node("b", labels=label, conditions=(in_service,))
    new = build.kube_node("a", labels=label, conditions=(taken,))

    assert old is nodes.holder([new, old])
    assert new is nodes.holder([new, unlabelled_as(old)])
    assert nodes.holder([]) is None
