"""With `placement.binder: extender`, on real servers: who binds which pods, what that costs, what becomes of them when it is off again."""

from collections.abc import Iterator

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.integration.claimed_devices import OPTIONS, Devices, offer
from tests.integration.counting import calls
from tests.integration.volumes import a_volume, mounted
from tests.integration.worlds import Worlds, condition, is_released, played
from tests.servers import fresh_namespace, running_sandbox

OURS = names.binder(names.SCHEDULER_NAME)
PODS = 20
CLAIMANTS = 8
WRITES = ("POST ", "PATCH ", "PUT ", "DELETE ")
CLAIM_WRITES = ("PATCH resourceclaims", "PATCH resourceclaims/status")


@pytest.fixture(scope="module")
def full_sandbox() -> Iterator[Sandbox]:
    """One of its own, as the setting concerns every pod."""
    with running_sandbox(
        Options(
            accounting=True,
            node_gpus=0,
            settings=("placement.binder=extender", *OPTIONS.settings),
        )
    ) as sandbox:
        offer(sandbox)
        yield sandbox


@pytest.fixture
def bridged_namespace(full_sandbox: Sandbox) -> Iterator[str]:
    with fresh_namespace(full_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        yield name


def test_the_extender_binds_a_plain_pod_where_slurm_says(worlds: Worlds) -> None:
    uid = worlds.submit("plain", annotations=played(seconds=5))

    running = worlds.await_phase("plain", "Running")

    assert OURS == running["spec"]["schedulerName"]
    assert running["spec"]["nodeName"] == worlds.live(uid)[0].nodes
    assert "True" == condition(running, names.POD_SCHEDULED)["status"]
    worlds.await_pod("plain", is_released)
    assert "COMPLETED" == worlds.await_accounted(uid).state
    assert "Scheduled" not in worlds.events("plain")


def test_kube_scheduler_binds_a_pod_with_a_volume_claim(worlds: Worlds) -> None:
    with a_volume(worlds, "data"):
        uid = worlds.submit("with-data", annotations=played(seconds=5), volumes=[mounted("data")])

        running = worlds.await_phase("with-data", "Running")

        assert names.SCHEDULER_NAME == running["spec"]["schedulerName"]
        assert running["spec"]["nodeName"] == worlds.live(uid)[0].nodes
        worlds.await_event("with-data", "Scheduled")


def test_a_pod_costs_one_patch_and_one_binding(worlds: Worlds) -> None:
    """And kube-scheduler does not hear of it."""
    worlds.await_accounted(worlds.submit("before", annotations=played(seconds=1)))
    before = calls(worlds.sandbox, "kube", "extender")
    for n in range(PODS):
        worlds.submit(f"cheap-{n}", annotations=played(seconds=2))
    for n in range(PODS):
        worlds.await_pod(f"cheap-{n}", is_released, 90)
    spent = calls(worlds.sandbox, "kube", "extender") - before

    assert PODS == spent["PATCH pods"]
    assert PODS == spent["POST pods/binding"]


def test_a_pod_with_a_claim_costs_two_writes_more_and_asks_nothing(worlds: Worlds) -> None:
    """The extender binds it, as kube-scheduler would find nothing left to do."""
    devices = Devices(worlds.sandbox, worlds.namespace)
    devices.claim("one", kind="resourceclaimtemplates")
    named = [f"claims-{n}" for n in range(CLAIMANTS)]
    in_kube, in_slurm = (calls(worlds.sandbox, peer, "extender") for peer in ("kube", "slurm"))
    for name in named:
        devices.pod(name, resourceClaimTemplateName="one")
    for name in named:
        results = devices.given(name)["allocation"]["devices"]["results"]
        assert {result["device"] for result in results} == devices.in_slurm(name)
        assert OURS == devices.get(name)["spec"]["schedulerName"]
    asked = calls(worlds.sandbox, "kube", "extender") - in_kube

    written = {name: count for name, count in asked.items() if name.startswith(WRITES)}
    each_once = ("PATCH pods", "POST pods/binding", *CLAIM_WRITES)
    assert dict.fromkeys(each_once, CLAIMANTS) == {
        name: count for name, count in written.items() if not name.endswith(("leases", "events"))
    }
    # What the watch shows a moment too late is read.
    assert asked["GET resourceclaims"] <= CLAIMANTS / 2
    assert 0 == asked["GET deviceclasses"]
    slurm = calls(worlds.sandbox, "slurm", "extender") - in_slurm
    assert (CLAIMANTS, 0) == (slurm["job.get"], slurm["node.get"])


def test_the_extender_that_dies_leaves_no_pod_unbound(worlds: Worlds) -> None:
    for n in range(PODS):
        worlds.submit(f"survives-{n}", cpus="100m", annotations=played(seconds=2))

    worlds.sandbox.restart("extender", signal="KILL")

    for n in range(PODS):
        ended = worlds.await_pod(f"survives-{n}", is_released, 120)
        assert "Succeeded" == ended["status"]["phase"]
