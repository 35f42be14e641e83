"""What a kubelet that is in wrong hands can make the controllers' leader do to Slurm, and to other nodes."""

import asyncio
import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bridge.domain.model.claims import profiles
from bridge.kube.claims.slices import SLICES
from controllers.nodes.gathering import Slices
from slurmruntime.kube.cache import Cache
from slurmruntime.values import names
from tests import virtual_time
from tests.controllers.nodes_situations import in_step, outset, slurm_node
from tests.make import placing
from tests.make.apiserver import Manifest
from tests.make.devices import PROFILES, device_slice
from tests.make.leader import LISTED_AFTER_S, Leader
from tests.make.manifests import kube_node
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock

FOR_S = 60.0
FLAPS_FOR_S = 20
TO_SLURM = "POST /node/k1"
TO_EVENTS = "POST /apis/events.k8s.io/v1/namespaces/default/events"
LISTS_PER_S = 2
"""The leader lists Slurm's nodes no more often (`controllers.nodes.slurm`), and writes once for each list."""


def reported(leader: Leader, **condition: str) -> None:
    """The kubelet of k1 has written this condition."""
    node = copy.deepcopy(leader.api.of("Node")["k1"])
    others = [one for one in node["status"]["conditions"] if one["type"] != condition["type"]]
    node["status"]["conditions"] = [*others, condition]
    leader.api.create(node)


def lived(*nodes: Manifest, then: Callable[[Leader, VirtualClock], Any], **settings: Any) -> Leader:
    """The leader's term with two nodes, and what the kubelet does meanwhile."""
    leaders: list[Leader] = []

    async def main(clock: VirtualClock) -> None:
        there = outset(
            [*nodes, in_step(name="k2")], [slurm_node(), slurm_node("k2")], settings=settings
        )
        leader = Leader(there, Trouble(), clock)
        leaders.append(leader)
        async with asyncio.TaskGroup() as group:
            group.create_task(leader.lead(for_s=FOR_S))
            await clock.sleep(LISTED_AFTER_S + 1)
            await then(leader, clock)

    virtual_time.run(main)
    return leaders[0]


@pytest.mark.attack(
    "write a megabyte, or a terminal's escape sequences, as the reason of a condition that drains one's own node in Slurm",
    "of a condition's reason, 128 bytes go into the drain's, and none that acts on a terminal",
)
@pytest.mark.parametrize("reason", ["x" * 1_000_000, "\x1b]0;owned\x07\nReason=\u202e\x9b31m"])
def test_the_reason_of_a_drain_is_short_and_does_nothing(reason: str) -> None:
    async def report(leader: Leader, clock: VirtualClock) -> None:
        before = leader.trouble.writes.count(TO_SLURM)
        reported(leader, type="DiskPressure", status="True", reason=reason)
        await clock.sleep(20)
        assert before + 1 == leader.trouble.writes.count(TO_SLURM), "it stays"

    leader = lived(in_step(), then=report)

    shown = leader.slurm.nodes.by_name["k1"].reason
    assert "condition DiskPressure (" in shown
    assert len(shown) < 200
    assert shown.isprintable()


@pytest.mark.attack(
    "let one's own node become ready and not ready as fast as the API server takes it, so that Slurm and the leader do nothing else",
    "one write to Slurm for each list of nodes, two a second; other nodes are served as ever",
)
def test_a_node_that_flaps_costs_two_writes_a_second_and_delays_nobody() -> None:
    asked_at, served_at = [], list[float]()

    async def flap(leader: Leader, clock: VirtualClock) -> None:
        began = clock.monotonic()
        for number in range(FLAPS_FOR_S * 50):
            state = "True" if number % 2 else "False"
            reported(leader, type="Ready", status=state, reason=f"r{number}")
            if number == 500:
                leader.api.create(in_step(name="k2", unschedulable=True))
                asked_at.append(clock.monotonic())
            if number >= 500 and "DRAIN" in leader.slurm.nodes.by_name["k2"].states:
                served_at.append(clock.monotonic())
            await clock.sleep(0.02)
        assert clock.monotonic() - began < FOR_S

    leader = lived(in_step(), then=flap)

    assert served_at[0] - asked_at[0] < 5
    to_slurm = [write for write in leader.trouble.writes if write.startswith("POST /node")]
    assert 5 < len(to_slurm) <= FLAPS_FOR_S * LISTS_PER_S + 5


@pytest.mark.attack(
    "write over our condition on one's own node as fast as the API server takes it, so that the leader does nothing but restore it",
    "each write of one's own costs a patch and an Event at most, which a kubelet may write itself; other nodes are served as ever",
)
def test_a_forged_condition_costs_a_patch_and_an_event_for_each_write() -> None:
    forged, served_at = FLAPS_FOR_S * 50, list[float]()

    async def forge(leader: Leader, clock: VirtualClock) -> None:
        leader.trouble.writes.clear()
        for number in range(forged):
            said = {"reason": f"R{number}", "message": "x" * 1000}
            reported(leader, type=names.SLURM_STATE_CONDITION, status="False", **said)
            if number == 500:
                leader.api.create(in_step(name="k2", unschedulable=True))
                served_at.append(clock.monotonic())
            if "DRAIN" in leader.slurm.nodes.by_name["k2"].states:
                served_at.append(clock.monotonic())
            await clock.sleep(0.02)

    leader = lived(in_step(), then=forge)

    assert served_at[1] - served_at[0] < 5
    about = Counter(write for write in leader.trouble.writes if "k2" not in write)
    assert {"PATCH /api/v1/nodes/k1/status", TO_EVENTS} == about.keys()
    assert max(about.values()) <= forged


@pytest.mark.attack(
    "enter a partition whose nodes are selected by a feature, by a label of that name on one's own node",
    "a label becomes `key=value`, never a word alone, even without a value; partitions are an annotation, which policy `nodes` guards",
)
def test_no_label_makes_a_node_a_partitions() -> None:
    async def nothing(_leader: Leader, clock: VirtualClock) -> None:
        await clock.sleep(20)

    labels = {names.EXTERNAL_NODE_LABEL: "true", "gpu": ""}
    leader = lived(
        kube_node("k3", labels=labels), then=nothing, controllers={"node_features": ["*"]}
    )

    registered = leader.slurm.nodes.by_name["k3"]
    assert "gpu=" in registered.features, "it is published"
    assert not registered.partitions


@pytest.mark.attack(
    "write as many or as long labels on one's own node as an object holds, where setting `controllers.node_features` has a wildcard: slurmctld keeps each as a feature",
    "512 labels with 32768 characters; with more, nothing of the node changes in Slurm, and its condition says why",
)
@pytest.mark.parametrize(
    ("count", "prefix", "value"),
    [(513, "l", "x"), (300, "long-" * 12, "x" * 63)],
    ids=["many", "long"],
)
def test_not_all_labels_of_a_node_reach_slurm(count: int, prefix: str, value: str) -> None:
    wanted = {names.EXTERNAL_NODE_LABEL: "true"}
    stuffing = {f"{prefix}{number:03}": value for number in range(count)}
    most = {f"l{number:03}": "x" for number in range(512)}

    async def nothing(_leader: Leader, clock: VirtualClock) -> None:
        await clock.sleep(20)

    leader = lived(
        kube_node("k3", labels=wanted | stuffing),
        kube_node("k4", labels=wanted | most),
        then=nothing,
        controllers={"node_features": ["l*"]},
    )

    assert {"k2", "k4"} <= leader.slurm.nodes.by_name.keys()
    assert "k3" not in leader.slurm.nodes.by_name
    told = leader.api.of("Node")["k3"]["status"]["conditions"]
    messages = [one["message"] for one in told if one.get("reason") == "InvalidAnnotation"]
    assert "expected at most 512 labels, 32768 characters in all" in messages[0]


@pytest.mark.attack(
    "hide another node's devices by a newer generation of its pool, published by the driver of one's own node",
    "devices are looked up by the node of their slices, and only there by pool",
)
def test_no_node_outdates_the_devices_of_another_one() -> None:
    published = Cache(SLICES)
    forged = device_slice("k2", devices=1)
    forged["spec"]["pool"] = {"name": "k1", "generation": 10**9, "resourceSliceCount": 9}
    for one in (device_slice("k1", devices=4), forged):
        one["metadata"]["resourceVersion"] = "1"
        published.put(SLICES.read(msgspec.json.encode(one)))

    found = Slices(published, profiles.read(PROFILES)).counted(placing.kube_node("k1"))

    assert 4 == found.allocatable.extended["resource.k8s.io/gpu:example"]
