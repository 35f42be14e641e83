"""slurmctld comes back from an old state, or from none, while pods run: they get their places back, or nothing happens to them.

On a sandbox of our own; Slurm forgets ended jobs after a second there.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.api import Api
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId
from tests import faults
from tests.fault_bench import fault_bench
from tests.faults import Fault
from tests.integration.gang_pods import submit, uid_of
from tests.integration.lookalikes import submit_again
from tests.integration.lost_state import (
    _PURGED_WITHIN_S,
    NODE_CPUS,
    NODES,
    PART_OF_A_NODE,
    RESTORED_WITHIN_S,
    SCHEDULERS_PASS_S,
    Tenant,
    _tenant,
    allocated_cpus,
    await_gang_restored,
    await_restored,
    notes,
    room_elsewhere,
    state_kept,
    states,
    strangers,
    tenants,
    time_limit_min,
    without,
)
from tests.integration.tampering import BREAK_GLASS
from tests.integration.worlds import LIVE, Worlds, condition, is_released
from tests.servers import fresh_namespace, running_sandbox, wait_until


@pytest.fixture(scope="module")
def fragile_sandbox() -> Iterator[Sandbox]:
    with running_sandbox(Options(accounting=True, nodes=NODES)) as sandbox:
        for conf in sandbox.slurm_conf.parent.glob("slurm*.conf"):
            conf.write_text(conf.read_text().replace("MinJobAge=300", "MinJobAge=1"))
        sandbox.restart("slurmctld")
        yield sandbox


@pytest.fixture
def world(fragile_sandbox: Sandbox) -> Iterator[Worlds]:
    """A namespace that Slurm places; Slurm has its nodes back before the next test."""
    with fresh_namespace(fragile_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(fragile_sandbox, name)
        yield worlds
        worlds.clear()
        fragile_sandbox.run("scancel", "--quiet", "--name=stranger")
        wait_until(
            lambda: [] == [job for job in worlds.queue() if job.state in LIVE],
            RESTORED_WITHIN_S,
            sandbox=fragile_sandbox,
        )
        wait_until(lambda: _idle_nodes(worlds) == NODES, 90, sandbox=fragile_sandbox)


def _idle_nodes(worlds: Worlds) -> int:
    return worlds.sandbox.run("sinfo", "-N", "-h", "-t", "idle", "-o", "%N").split().__len__()


def test_after_a_wipe_all_get_their_places_back_before_strangers_that_wait_longer(
    world: Worlds, fragile_sandbox: Sandbox
) -> None:
    homes = tenants(world, *(f"pod-{number}" for number in range(2 * NODES)))
    changed = homes[0]
    world.scontrol("update", f"JobId={changed.job}", "TimeLimit=30")
    wait_until(lambda: _accounted_limit(world, changed) == "00:30:00", 20, sandbox=fragile_sandbox)
    with without(fragile_sandbox, "controllers"):
        fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
        with room_elsewhere(world):
            waiting = strangers(fragile_sandbox, NODES)
        assert {"PENDING"} == set(states(world, waiting))

    await_restored(world, *homes)

    assert {"PENDING"} == set(states(world, waiting))
    assert 30 >= time_limit_min(world, changed), "an administrator had changed it"
    assert 55 < time_limit_min(world, homes[1]) <= 60


@pytest.mark.parametrize("dies", [False, True], ids=["is slow", "dies again and again"])
def test_nobody_gets_a_node_that_comes_back_with_pods_however_long_that_takes(
    world: Worlds, fragile_sandbox: Sandbox, *, dies: bool
) -> None:
    """An external node cannot be created drained: what keeps strangers off is that it is in no partition."""
    homes = tenants(world, *(f"pod-{number}" for number in range(2 * NODES)))
    struck: list[str] = []
    with fault_bench(fragile_sandbox) as bench:

        def strike(times: int, method: str, path: str, death: Fault = faults.LOST_REPLY) -> None:
            def note() -> None:
                struck.append(path)
                if dies:
                    bench.kill("controllers")

            fault = death if dies else faults.slow(SCHEDULERS_PASS_S)
            slurmrestd = bench.link("controllers", "slurmrestd")
            slurmrestd.inject(fault.and_then(note), method, path, times=times)

        with without(fragile_sandbox, "controllers"):
            fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
            with room_elsewhere(world):
                waiting = strangers(fragile_sandbox, NODES)
            strike(2, "POST", "/new/node/")
            strike(3, "POST", f"/node/{homes[0].node}")
            strike(1, "DELETE", f"/node/{names.SPARE_NODE}", faults.LOST_REQUEST)

        for home in homes:
            await_restored(world, home, within_s=RESTORED_WITHIN_S + 60 * dies)

        assert 6 == len(struck)
    assert {"PENDING"} == set(states(world, waiting))
    wait_until(
        lambda: names.SPARE_NODE not in fragile_sandbox.run("sinfo", "-N", "-h", "-o", "%N"),
        30,
        sandbox=fragile_sandbox,
    )


def _accounted_limit(worlds: Worlds, tenant: Tenant) -> str:
    columns = ("-X", "-n", "-P", "-o", "Timelimit")
    return worlds.sandbox.run("sacct", "-j", str(tenant.job), *columns).strip()


def test_a_gang_gets_its_places_back_as_they_were(world: Worlds, fragile_sandbox: Sandbox) -> None:
    """Half of each node was somebody else's: Slurm itself would put its tasks elsewhere by now.

    Strangers want its nodes, and the request that releases one of them is lost.
    """
    members = 5
    halves = [
        int(fragile_sandbox.run(*PART_OF_A_NODE, f"--nodelist=node-{number}"))
        for number in range(NODES)
    ]
    wait_until(lambda: {"RUNNING"} == set(states(world, halves)), 30, sandbox=fragile_sandbox)
    for rank in range(members):
        submit(world, f"rank-{rank}", group="ring", size=members, cpus="2")
    before = [world.await_phase(f"rank-{rank}", "Running") for rank in range(members)]
    homes = Counter(str(pod["spec"]["nodeName"]) for pod in before)
    assert [1, 2, 2] == sorted(homes.values())

    with fault_bench(fragile_sandbox) as bench:
        with without(fragile_sandbox, "controllers"):
            fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
            with room_elsewhere(world):
                waiting = strangers(fragile_sandbox, NODES)
            slurmrestd = bench.link("controllers", "slurmrestd")
            slurmrestd.inject(faults.PASSED_ON, "POST", "/node/node-1", times=3)
            for released in ("/node/node-1", "/nodes/"):
                slurmrestd.inject(faults.LOST_REQUEST, "POST", released)
        await_gang_restored(world, "ring", [f"rank-{rank}" for rank in range(members)])

    assert {node: 2 * count for node, count in homes.items()} == allocated_cpus(world)
    assert {"PENDING"} == set(states(world, waiting))
    after = [world.await_phase(f"rank-{rank}", "Running") for rank in range(members)]
    assert [pod["metadata"]["uid"] for pod in before] == [pod["metadata"]["uid"] for pod in after]


def test_a_gang_of_two_sizes_gets_its_whole_nodes_back_and_lives_on(
    world: Worlds, fragile_sandbox: Sandbox
) -> None:
    """Both components are asked for again; who replaces a worker afterwards finds its slot."""
    cpus = {"launcher": "1", "worker-0": "2", "worker-1": "2", "worker-2": "2"}
    whole = {"slurmjob.slinky.slurm.net/exclusive": "true"}
    for name, count in cpus.items():
        submit(world, name, group="mpi", size=len(cpus), cpus=count, notes=whole)
    before = {name: world.await_phase(name, "Running") for name in cpus}
    allocated = allocated_cpus(world)
    assert {NODE_CPUS} == set(allocated.values())

    with without(fragile_sandbox, "controllers"):
        fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
        with room_elsewhere(world):
            strangers(fragile_sandbox, NODES)

    await_gang_restored(world, "mpi", cpus, sizes=2)
    taken = allocated_cpus(world)
    assert allocated == {node: taken[node] for node in allocated}
    uids = {name: world.await_phase(name, "Running")["metadata"]["uid"] for name in cpus}
    assert {name: pod["metadata"]["uid"] for name, pod in before.items()} == uids
    jobs = [job.id for job in world.live(uid_of(world, "mpi"))]
    assert 2 == len(jobs)

    world.delete("worker-1")
    world.await_gone("worker-1")
    submit(world, "worker-3", group="mpi", size=len(cpus), cpus="2", notes=whole)
    replacement = world.await_phase("worker-3", "Running")
    assert before["worker-1"]["spec"]["nodeName"] == replacement["spec"]["nodeName"]
    assert jobs == [job.id for job in world.live(uid_of(world, "mpi"))]


def test_a_restored_placeholder_lives_on_as_any_other(
    world: Worlds, fragile_sandbox: Sandbox
) -> None:
    """It is adopted, can be lost again, and ends with its pod."""
    (home,) = tenants(world, "pod")
    fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
    await_restored(world, home)
    again = _tenant(home.name, home.uid, world.await_pod(home.name, bool))
    fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
    await_restored(world, again)
    (last,) = world.live(home.uid)

    world.delete(home.name)

    world.await_gone(home.name)
    assert [] == world.live(home.uid)
    assert last.identity is not None
    assert last.identity.restores == again.sluid


def test_without_slurmdbd_it_is_enough_that_job_ids_went_backwards(
    world: Worlds, fragile_sandbox: Sandbox
) -> None:
    homes = tenants(world, "one", "two")
    with without(fragile_sandbox, "controllers"):
        fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
        fragile_sandbox.stop("slurmdbd")
    try:
        await_restored(world, *homes)
        assert 55 < time_limit_min(world, homes[0]) <= 60
    finally:
        fragile_sandbox.start("slurmdbd")


def test_strangers_that_got_the_ids_of_lost_jobs_are_left_alone(
    world: Worlds, fragile_sandbox: Sandbox, tmp_path: Path
) -> None:
    with state_kept(fragile_sandbox, tmp_path / "state"):
        homes = tenants(world, "one", "two")
        fragile_sandbox.stop("controllers")
    try:
        there = strangers(fragile_sandbox, 4, "--hold")
        assert {home.job for home in homes} <= set(there), "their ids were to be given out again"
    finally:
        fragile_sandbox.start("controllers")

    await_restored(world, *homes)

    assert {"PENDING"} == set(states(world, there))


@pytest.mark.parametrize("is_wiped", [True, False], ids=["a wipe", "an old state"])
def test_jobs_that_only_look_like_ours_survive(
    world: Worlds, fragile_sandbox: Sandbox, tmp_path: Path, *, is_wiped: bool
) -> None:
    """They carry the identity of the very job that was lost, and one has its id by now."""
    keeping = nullcontext() if is_wiped else state_kept(fragile_sandbox, tmp_path / "state")
    with keeping:
        (home,) = tenants(world, "pod")
        ours = world.await_live(home.uid)
        fragile_sandbox.stop("controllers")
    assert ours.identity is not None
    abroad = replace(ours, identity=replace(ours.identity, cluster=ClusterId("another")))
    try:
        if is_wiped:
            fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
        with room_elsewhere(world):
            looks = {
                *(submit_again(fragile_sandbox, abroad, hold=True) for _ in range(home.job)),
                submit_again(fragile_sandbox, ours, hold=True, is_external=False),
            }
        assert home.job in looks, "its id was to be given out again"
    finally:
        fragile_sandbox.start("controllers")

    try:
        await_restored(world, home, besides=looks)
        fragile_sandbox.restart("controllers")
        world.delete("pod")
        world.await_gone("pod")
        orphan = submit_again(fragile_sandbox, ours, hold=True)
        # It is cancelled when it has been seen twice: by then those have been seen, too.
        wait_until(lambda: ["CANCELLED"] == states(world, [orphan]), 60, sandbox=fragile_sandbox)
        assert {"PENDING"} == set(states(world, sorted(looks)))
    finally:
        fragile_sandbox.run("scancel", *map(str, looks))


def test_while_others_hold_its_node_a_pod_is_kept_and_told(
    world: Worlds, fragile_sandbox: Sandbox, tmp_path: Path
) -> None:
    with state_kept(fragile_sandbox, tmp_path / "state"):
        (home,) = tenants(world, "pod")
        fragile_sandbox.stop("controllers")
    try:
        (stranger,) = strangers(fragile_sandbox, 1, f"--nodelist={home.node}")
        wait_until(lambda: states(world, [stranger]) == ["RUNNING"], 30, sandbox=fragile_sandbox)
    finally:
        fragile_sandbox.start("controllers")

    told = world.await_pod(
        "pod", lambda pod: "waits (Resources)" in condition(pod).get("message", "")
    )
    assert "deletionTimestamp" not in told["metadata"]
    assert ["RUNNING"] == states(world, [stranger])
    world.scancel(stranger)
    await_restored(world, home)


@pytest.mark.parametrize("limit", [True, False], ids=["an hour", "a year"])
def test_one_whose_node_is_taken_holds_up_no_others(
    world: Worlds, fragile_sandbox: Sandbox, tmp_path: Path, *, limit: bool
) -> None:
    """Slurm's main scheduler starts nothing in a partition behind a job that waits for room there."""
    with state_kept(fragile_sandbox, tmp_path / "state"):
        homes = tenants(world, *(f"pod-{number}" for number in range(4)), limit=limit)
        fragile_sandbox.stop("controllers")
    taken = homes[0].node
    try:
        (stranger,) = strangers(fragile_sandbox, 1, f"--nodelist={taken}")
        wait_until(lambda: states(world, [stranger]) == ["RUNNING"], 30, sandbox=fragile_sandbox)
    finally:
        fragile_sandbox.start("controllers")

    others = [home for home in homes if home.node != taken]
    assert others
    await_restored(world, *others)
    assert ["RUNNING"] == states(world, [stranger])


def test_where_nobody_knows_pods_are_kept_until_somebody_says_what_is_so(
    world: Worlds, fragile_sandbox: Sandbox
) -> None:
    """Their jobs ended, and were purged, while neither we nor slurmdbd looked: as if they had been lost."""
    homes = tenants(world, "restored", "let-go", "found-out", cpus="2")
    with without(fragile_sandbox, "controllers"):
        fragile_sandbox.stop("slurmdbd")
        for home in homes:
            world.scancel(home.job)
        wait_until(
            lambda: not {home.job for home in homes} & {job.id for job in world.queue()},
            _PURGED_WITHIN_S,
            sandbox=fragile_sandbox,
        )
    try:
        for home in homes:
            kept = world.await_pod(
                home.name, lambda pod: condition(pod).get("reason") == "PlaceholderLost"
            )
            assert "deletionTimestamp" not in kept["metadata"]
            assert f"{names.WHEN_LOST_ANNOTATION}=restore" in condition(kept)["message"]
        for node in {home.node for home in homes}:
            wait_until(
                lambda node=node: "jobs Slurm has lost" in world.scontrol("show", "node", node),  # type: ignore[misc]
                30,
                sandbox=fragile_sandbox,
            )
        _say(world, "restored", "restore")
        _say(world, "let-go", "let-go")
        await_restored(world, homes[0])
        assert names.WHEN_LOST_ANNOTATION not in notes(world.await_pod("restored", bool))
        assert "SlurmPlaceholderLost" in world.events("let-go") or world.await_event(
            "let-go", "SlurmPlaceholderLost"
        )
        assert "deletionTimestamp" not in world.await_pod("found-out", bool)["metadata"]
    finally:
        fragile_sandbox.start("slurmdbd")
    # It asks at once, instead of in a minute; and slurmctld is still to tell slurmdbd of the end.
    fragile_sandbox.restart("controllers")

    assert "according to slurmdbd" in world.await_event("found-out", "SlurmJobEnded", 60)
    world.await_pod("restored", lambda pod: not is_released(pod))


def _say(worlds: Worlds, pod: str, word: str) -> None:
    with Api(worlds.sandbox.user_kubeconfig("medic", "system:masters", BREAK_GLASS)) as medic:
        note = {"metadata": {"annotations": {names.WHEN_LOST_ANNOTATION: word}}}
        medic.patch(f"{worlds.path}/pods/{pod}", note)
