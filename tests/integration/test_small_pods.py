"""One CPU of Slurm is 100m (setting `slurm.milli_cpu_per_cpu`): small pods share CPUs, each with a job of its own."""

from collections.abc import Iterator

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.integration.machines import Machine
from tests.integration.worlds import Worlds
from tests.servers import fresh_namespace, running_sandbox, wait_until

SMALL_PODS = 30
REAL_CPUS = 4


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with running_sandbox(Options(nodes=1, settings=("slurm.milli_cpu_per_cpu=100",))) as sandbox:
        node = machine(sandbox)
        node.label("false")
        node.await_not_in_slurm()
        node.set_status({"allocatable": {"cpu": str(REAL_CPUS)}})
        node.label("true")
        node.await_in_service()
        yield sandbox


@pytest.fixture
def worlds(sandbox: Sandbox) -> Iterator[Worlds]:
    with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(sandbox, name)
        yield worlds
        worlds.clear()


def machine(sandbox: Sandbox) -> Machine:
    return Machine(sandbox, "node-0", sandbox)


def test_thirty_small_pods_run_on_four_cpus_each_with_its_own_job(worlds: Worlds) -> None:
    """Three CPUs' worth; a pod of more than the rest waits, as it would beside whole CPUs."""
    assert 10 * REAL_CPUS == int(machine(worlds.sandbox).in_slurm()["CPUTot"])

    uids = {worlds.submit(f"small-{n}", cpus="100m") for n in range(SMALL_PODS)}
    for number in range(SMALL_PODS):
        worlds.await_phase(f"small-{number}", "Running")
    large = worlds.submit("large", cpus="1100m")
    waits = worlds.await_live(large, lambda job: job.reason == "Resources")
    fits = worlds.submit("fits", cpus="1")
    worlds.await_phase("fits", "Running")

    jobs = {uid: worlds.await_live(uid, lambda job: job.state == "RUNNING") for uid in uids}
    assert SMALL_PODS == len({job.id for job in jobs.values()})
    assert {waits.id}.isdisjoint(job.id for job in jobs.values())
    assert "PENDING" == waits.state
    wait_until(lambda: allocated(worlds) == 10 * REAL_CPUS, 30, sandbox=worlds.sandbox)
    assert fits not in uids


def test_pods_of_others_are_counted_in_the_same_parts(worlds: Worlds) -> None:
    tolerates = [{"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}]
    with fresh_namespace(worlds.sandbox, labels={}) as plain:
        elsewhere = Worlds(worlds.sandbox, plain)
        elsewhere.submit(
            "other",
            cpus="250m",
            tolerations=tolerates,
            nodeSelector={"kubernetes.io/hostname": "node-0"},
        )
        elsewhere.await_phase("other", "Running")
        wait_until(lambda: allocated(worlds) == 3, 30, sandbox=worlds.sandbox)
        elsewhere.clear()
    wait_until(lambda: not allocated(worlds), 30, sandbox=worlds.sandbox)


def allocated(worlds: Worlds) -> int:
    return int(machine(worlds.sandbox).in_slurm()["CPUAlloc"])
