"""Whether Kubernetes can take a pod on the node that Slurm chose."""

import time
from dataclasses import replace
from typing import Any

import pytest

from bridge.domain.lifecycle.decision import Fit
from bridge.domain.model.pods import BoundPod, Phase, Pod
from bridge.domain.request import fit
from bridge.domain.request.fit import FitResult, Tenant
from slurmruntime.model.affinity import Toleration
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values.ids import KubeNode, PodUid
from tests.make import placing as build
from tests.make.placing import demands, taint

NODE = build.kube_node(cpus=8, gib=32, gpus=4, pods=3)
WEB_PORT = ("TCP", 80, "0.0.0.0")  # noqa: S104  # compared, not bound


def tenant(cpu: str = "1", memory: str = "1Gi", **others: str) -> Tenant:
    return Tenant(demand=demands(cpu, memory, **others))


def leaving(one: Tenant) -> Tenant:
    return replace(one, is_deleting=True)


def bound_pod(uid: str, **fields: Any) -> BoundPod:
    return BoundPod(
        uid=PodUid(uid),
        namespace="n",
        name=uid,
        kube_node=KubeNode("k1"),
        demand=demands(),
        **fields,
    )


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        pytest.param(build.pod(), [], FitResult(Fit.FITS), id="an empty node"),
        pytest.param(
            build.pod(demand=demands("4", "16Gi", **{"nvidia.com/gpu": "2"})),
            [tenant("4", "16Gi", **{"nvidia.com/gpu": "2"})],
            FitResult(Fit.FITS),
            id="to the last CPU, byte and GPU",
        ),
        pytest.param(
            build.pod(demand=demands("4001m")),
            [tenant("4")],
            FitResult(Fit.MISFIT, "insufficient cpu (4001m asked, 4000m free)"),
            id="too few CPUs",
        ),
        pytest.param(
            build.pod(demand=demands("1", "17Gi")),
            [tenant("1", "16Gi")],
            FitResult(Fit.MISFIT, "insufficient memory (17408Mi asked, 16384Mi free)"),
            id="too little memory",
        ),
        pytest.param(
            build.pod(demand=demands("1", "17179869185")),
            [tenant("1", "16Gi")],
            FitResult(Fit.MISFIT, "insufficient memory (16385Mi asked, 16384Mi free)"),
            id="too little memory by a byte",
        ),
        pytest.param(
            build.pod(demand=demands(**{"nvidia.com/gpu": "3"})),
            [tenant(**{"nvidia.com/gpu": "2"})],
            FitResult(Fit.MISFIT, "insufficient nvidia.com/gpu (3 asked, 2 free)"),
            id="too few GPUs",
        ),
        pytest.param(
            build.pod(demand=demands(**{"example.com/fpga": "1"})),
            [],
            FitResult(Fit.MISFIT, "insufficient example.com/fpga (1 asked, 0 free)"),
            id="a device the node does not have",
        ),
        pytest.param(
            build.pod(demand=demands(**{"ephemeral-storage": "101Gi"})),
            [],
            FitResult(Fit.MISFIT, "insufficient ephemeral-storage (103424Mi asked, 102400Mi free)"),
            id="too little disk",
        ),
        pytest.param(
            build.pod(),
            [tenant()] * 3,
            FitResult(Fit.MISFIT, "too many pods (3 allowed)"),
            id="too many pods",
        ),
        pytest.param(
            build.pod(demand=demands("9", "33Gi")),
            [tenant("8", "32Gi")],
            FitResult(
                Fit.MISFIT,
                "insufficient cpu (9000m asked, 0m free), "
                "insufficient memory (33792Mi asked, 0Mi free)",
            ),
            id="everything that is short is told",
        ),
        pytest.param(
            build.pod(demand=demands("0", "0")),
            [tenant("9")],
            FitResult(Fit.FITS),
            id="who asks for nothing fits on an overcommitted node",
        ),
    ],
)
def test_room_is_counted_as_kube_scheduler_does(
    pod: Pod, others: list[Tenant], expected: FitResult
) -> None:
    assert expected == fit.check(pod, NODE, others)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param(
            [leaving(tenant("8"))],
            FitResult(Fit.TERMINATING, "insufficient cpu (8000m asked, 0m free)"),
            id="only leaving pods are in the way",
        ),
        pytest.param(
            [leaving(tenant("7")), tenant("1")],
            FitResult(Fit.MISFIT, "insufficient cpu (8000m asked, 7000m free)"),
            id="staying ones are, too",
        ),
        pytest.param(
            [leaving(tenant("0", "0"))] * 3,
            FitResult(Fit.TERMINATING, "too many pods (3 allowed)"),
            id="leaving pods count as pods",
        ),
    ],
)
def test_leaving_pods_are_waited_for(others: list[Tenant], expected: FitResult) -> None:
    """Slurm frees at once, containers take their grace."""
    assert expected == fit.check(
        build.pod(demand=demands("8" if "cpu" in expected.text else "1", "0")), NODE, others
    )


@pytest.mark.parametrize(
    ("node", "text"),
    [
        pytest.param(None, "Kubernetes has no such node", id="unknown"),
        pytest.param(replace(NODE, is_deleting=True), "the node is being deleted", id="deleted"),
        pytest.param(replace(NODE, is_ready=False), "the node is not ready", id="not ready"),
        pytest.param(
            replace(NODE, is_unschedulable=True),
            "the pod does not tolerate the node's taint node.kubernetes.io/unschedulable:NoSchedule",
            id="cordoned",
        ),
        pytest.param(
            replace(NODE, taints=(taint("gpu=yes:NoExecute"),)),
            "the pod does not tolerate the node's taint gpu:NoExecute",
            id="tainted",
        ),
    ],
)
def test_a_node_that_takes_no_pods_is_a_misfit(node: KubeNodeFacts | None, text: str) -> None:
    assert FitResult(Fit.MISFIT, text) == fit.check(build.pod(), node, [leaving(tenant("8"))])


def test_labels_that_changed_since_are_noticed() -> None:
    pod = build.pod(node_selector={"zone": "a"})

    assert FitResult(
        Fit.MISFIT, "the node does not match the pod's node selector or affinity"
    ) == fit.check(pod, NODE, [])


def test_our_own_taint_and_tolerated_ones_do_not_matter() -> None:
    node = replace(
        NODE, taints=(taint("slinky.slurm.net/managed-node=x:NoSchedule"), taint("gpu:NoSchedule"))
    )
    pod = build.pod(tolerations=(build.OUR_TOLERATION, Toleration(key="gpu", operator="Exists")))

    assert FitResult(Fit.FITS) == fit.check(pod, node, [])


@pytest.mark.parametrize(
    ("taken", "collides"),
    [
        (("TCP", 80, "0.0.0.0"), True),  # noqa: S104
        (("TCP", 80, "10.0.0.1"), True),
        (("UDP", 80, "0.0.0.0"), False),  # noqa: S104
        (("TCP", 81, "0.0.0.0"), False),  # noqa: S104
    ],
)
def test_a_host_port_is_given_once(taken: tuple[str, int, str], *, collides: bool) -> None:
    other = replace(tenant(), host_ports=(taken,))
    answer = fit.check(build.pod(host_ports=(WEB_PORT,)), NODE, [other])

    assert (Fit.MISFIT if collides else Fit.FITS) == answer.fit
    assert collides == (answer.text == "host port 80/TCP is taken")


def test_host_ports_on_different_addresses_go_together() -> None:
    other = replace(tenant(), host_ports=(("TCP", 80, "10.0.0.2"),))
    pod = build.pod(host_ports=(("TCP", 80, "10.0.0.1"),))

    assert FitResult(Fit.FITS) == fit.check(pod, NODE, [other])


def test_thousands_of_host_ports_are_not_compared_one_with_another() -> None:
    """10^8 comparisons took some 20 s."""
    pod = build.pod(host_ports=tuple(("TCP", port, "10.0.0.1") for port in range(10_000)))
    ports = tuple(("TCP", port, "10.0.0.2") for port in range(10_000))
    began = time.process_time()

    answer = fit.check(pod, NODE, [replace(tenant(), host_ports=ports)])

    assert FitResult(Fit.FITS) == answer
    assert time.process_time() - began < 1


def test_tenants_are_the_bound_and_the_assigned_that_have_not_ended() -> None:
    bound = [bound_pod("a"), bound_pod("b", is_terminal=True), bound_pod("c", is_deleting=True)]
    assigned = [
        build.pod(uid=PodUid("d"), host_ports=(WEB_PORT,)),
        build.pod(uid=PodUid("e"), phase=Phase.FAILED),
    ]

    expected = (
        Tenant(demand=demands()),
        Tenant(demand=demands(), is_deleting=True),
        Tenant(demand=demands(), host_ports=(WEB_PORT,)),
    )

    assert expected == fit.tenants(bound, assigned)


def test_a_pod_that_outlives_its_placeholder_is_on_its_way_out() -> None:
    ours = [build.pod(uid=PodUid("stays")), build.pod(uid=PodUid("outlived"))]

    leaving = [each.is_deleting for each in fit.tenants((), ours, outlived={PodUid("outlived")})]

    assert [False, True] == leaving
