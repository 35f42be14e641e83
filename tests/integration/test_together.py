"""Extender and controllers as one process: a pod's life, a node's, deaths, and upgrades from a separate pair and back."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from tests.fault_bench import FaultBench
from tests.faults import LOST_REPLY
from tests.integration.counting import calls_at
from tests.integration.machines import Machine
from tests.integration.replicas import is_ready, leases, second_replica
from tests.integration.worlds import LIVE, Worlds, is_released, played
from tests.servers import running_sandbox, wait_until

EXTENDER, CONTROLLERS = "slurm-bridge-extender", "slurm-bridge-controllers"
BOTH = {EXTENDER, CONTROLLERS}
PATIENT_S = 90.0
PODS = 20


@pytest.fixture(scope="module")
def full_sandbox() -> Iterator[Sandbox]:
    """Everything, but as one process; the other fixtures' sandbox here."""
    with running_sandbox(Options(accounting=True, audit=True, together=True)) as sandbox:
        yield sandbox


def joint(sandbox: Sandbox) -> str:
    return sandbox.instance.url("extender-health")


def live_and_end(worlds: Worlds, *pods: str) -> None:
    """Each runs where Slurm says, and has one job, which says so."""
    uids = {name: worlds.submit(name, annotations=played(seconds=1)) for name in pods}
    for name, uid in uids.items():
        assert "Succeeded" == worlds.await_pod(name, is_released, PATIENT_S)["status"]["phase"]
        assert "COMPLETED" == worlds.await_accounted(uid, PATIENT_S).state


def hand_over(sandbox: Sandbox, *replicas: str) -> None:
    """Start the joint process afresh once others wait for its leases."""
    wait_until(lambda: all(map(is_ready, replicas)), PATIENT_S, sandbox=sandbox)
    sandbox.restart("extender")


def test_there_is_one_process(full_sandbox: Sandbox) -> None:
    parts = {*full_sandbox.status()}

    assert {"webhook", "extender"} <= parts
    assert "controllers" not in parts
    wait_until(lambda: BOTH == leases(joint(full_sandbox)), PATIENT_S, sandbox=full_sandbox)


def test_a_pod_is_placed_completed_and_accounted_for(worlds: Worlds) -> None:
    live_and_end(worlds, "ordinary")


def test_a_pod_that_is_deleted_or_whose_job_is_cancelled_ends_on_both_sides(worlds: Worlds) -> None:
    deleted, cancelled = worlds.submit("deleted"), worlds.submit("cancelled")
    worlds.await_phase("deleted", "Running")
    worlds.await_phase("cancelled", "Running")
    worlds.delete("deleted")
    worlds.scancel(worlds.await_live(cancelled).id)

    worlds.await_gone("deleted", PATIENT_S)
    assert "CANCELLED" == worlds.await_accounted(deleted).state
    worlds.await_eviction("cancelled")


def test_a_drained_node_shows_and_a_cordoned_one_drains(machine: Machine) -> None:
    machine.label("true")
    machine.await_in_service()
    machine.cordon(on=True)
    assert machine.await_drained().startswith("slurm-bridge: cordoned in Kubernetes")
    machine.cordon(on=False)
    machine.await_in_service()
    machine.update(state=["DRAIN"], reason="bad memory")
    status, _ = machine.await_condition("Drained")
    assert "False" == status


def test_a_leader_killed_in_the_middle_costs_no_pod_and_no_job(
    worlds: Worlds, bench: FaultBench, full_sandbox: Sandbox
) -> None:
    """A submit's reply is lost and the process dies; some pods run then, some have ended, some wait."""
    running = worlds.submit("running", annotations=played(seconds=8))
    worlds.await_phase("running", "Running")
    job = worlds.await_live(running)
    death = LOST_REPLY.and_then(lambda: bench.kill("extender"))
    bench.link("extender", "slurmrestd").inject(death, "POST", "/job/submit", times=1)
    uids = {
        f"once-{n}": worlds.submit(f"once-{n}", annotations=played(seconds=1)) for n in range(5)
    }

    for name, uid in {**uids, "running": running}.items():
        worlds.await_pod(name, is_released, PATIENT_S)
        accounted = worlds.await_accounted(uid, PATIENT_S)
        assert "COMPLETED" == accounted.state
        assert 1 == len(worlds.accounted(uid))
    assert [job.id] == [each.id for each in worlds.accounted(running)]
    assert [] == [each for each in worlds.queue() if each.state in LIVE]
    wait_until(lambda: BOTH == leases(joint(full_sandbox)), PATIENT_S, sandbox=full_sandbox)


def test_a_separate_pair_takes_over_and_gives_back(
    worlds: Worlds, full_sandbox: Sandbox, tmp_path: Path
) -> None:
    """As in an upgrade and back: pods go on all the while, and no side has two leaders.

    The sandbox's own process keeps answering kube-scheduler, whoever leads.
    """
    health = joint(full_sandbox)
    with ExitStack() as extender, ExitStack() as controllers:
        pair = {
            EXTENDER: extender.enter_context(second_replica(full_sandbox, "extender", tmp_path)),
            CONTROLLERS: controllers.enter_context(
                second_replica(full_sandbox, "controllers", tmp_path, like="extender")
            ),
        }

        def lead() -> dict[str, list[str]]:
            """Who leads under each lease."""
            found = {name: leases(url) for name, url in {"joint": health, **pair}.items()}
            return {lease: [who for who in found if lease in found[who]] for lease in BOTH}

        def led_by(*expected: str) -> Callable[[], bool]:
            """Whether each lease has that leader; never two meanwhile."""

            def look() -> bool:
                now = lead()
                assert all(len(who) <= 1 for who in now.values()), now
                return [[who] if who else [] for who in expected] == [now[EXTENDER], now[CONTROLLERS]]  # fmt: skip

            return look

        wait_until(led_by("joint", "joint"), PATIENT_S, sandbox=full_sandbox)
        hand_over(full_sandbox, *pair.values())
        wait_until(led_by(EXTENDER, CONTROLLERS), PATIENT_S, sandbox=full_sandbox)
        live_and_end(worlds, "by-the-pair")

        controllers.close()
        wait_until(led_by(EXTENDER, ""), PATIENT_S, sandbox=full_sandbox)
        uid = worlds.submit("by-all", annotations=played(seconds=1))
        worlds.await_phase("by-all", "Running", "Succeeded", deadline_s=PATIENT_S)
        assert {EXTENDER: [EXTENDER], CONTROLLERS: []} == lead(), "it needs both"
        extender.close()
        wait_until(led_by("joint", "joint"), PATIENT_S, sandbox=full_sandbox)
    worlds.await_pod("by-all", is_released, PATIENT_S)
    assert "COMPLETED" == worlds.await_accounted(uid).state
    live_and_end(worlds, "by-one")


def test_slurm_is_read_once_and_each_kind_is_watched_once(
    worlds: Worlds, full_sandbox: Sandbox, tmp_path: Path
) -> None:
    """Counted beside a separate pair that does the same work in the same sandbox."""
    full_sandbox.restart("extender")
    one = (joint(full_sandbox),)
    wait_until(lambda: BOTH == leases(*one), PATIENT_S, sandbox=full_sandbox)
    alone = counted(worlds, "one", one)
    with (
        second_replica(full_sandbox, "extender", tmp_path) as extender,
        second_replica(full_sandbox, "controllers", tmp_path, like="extender") as controllers,
    ):
        hand_over(full_sandbox, extender, controllers)
        wait_until(
            lambda: leases(extender) | leases(controllers) == BOTH,
            PATIENT_S,
            sandbox=full_sandbox,
        )
        pair = counted(worlds, "two", (extender, controllers))
    print(f"one process: {alone}, two: {pair}")  # noqa: T201  # figures for whoever runs it with -s

    assert alone["WATCH pods"] == alone["LIST pods"] == 3, (
        "ours, those for the binder, and those that have a node"
    )
    assert alone["WATCH nodes"] == alone["LIST nodes"] == 1
    assert {kind: 2 * alone[kind] for kind in LISTS} == {kind: pair[kind] for kind in LISTS}
    # Each process looks at each job once, and again at few.
    assert alone["job.get"] < _BETWEEN_ONE_AND_TWO * alone["jobs"]
    assert pair["job.get"] > _BETWEEN_ONE_AND_TWO * pair["jobs"]


LISTS = ("LIST pods", "LIST nodes")
_BETWEEN_ONE_AND_TWO = 1.5


def counted(worlds: Worlds, name: str, healths: Sequence[str]) -> Counter[str]:
    """What processes have asked since they started, after so many pods have lived and nothing has happened for a while."""
    live_and_end(worlds, *(f"{name}-{n}" for n in range(PODS)))
    found = Counter(jobs=len(worlds.sandbox.run("squeue", "-h", "--states=all").splitlines()))
    for health, peer in itertools.product(healths, ("slurm", "kube")):
        found.update(calls_at(health, peer))
    return found
