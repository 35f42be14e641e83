"""slurmctld comes back from an old state, or from none, while pods run: they get their places back, or nothing happens to them.

On a sandbox of our own; Slurm forgets ended jobs after a second there.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bridge.domain import names
from bridge.domain.ids import ClusterId
from sandbox.api import Api
from sandbox.client import Sandbox
from sandbox.options import Options
from tests import backups, faults
from tests.fault_bench import fault_bench
from tests.faults import Fault
from tests.integration.gang_pods import submit, uid_of
from tests.integration.lookalikes import submit_again
from tests.integration.tampering import BREAK_GLASS
from tests.integration.worlds import LIVE, Manifest, Worlds, condition, is_released, job_id
from tests.servers import fresh_namespace, running_sandbox, wait_until

_NODES = 3
_NODE_CPUS = Options().node_cpus
_RESTORED_WITHIN_S = 60.0
_SCHEDULERS_PASS_S = 2.5
"""Slurm looks every second for who could start."""
_PURGED_WITHIN_S = 60.0
"""slurmctld looks for what it may forget every half minute or so."""
_HOUR = {"slurmjob.slinky.slurm.net/timelimit": "60"}


@pytest.fixture(scope="module")
def fragile_sandbox() -> Iterator[Sandbox]:
    with running_sandbox(Options(accounting=True, nodes=_NODES)) as sandbox:
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
            _RESTORED_WITHIN_S,
            sandbox=fragile_sandbox,
        )
        wait_until(lambda: _idle_nodes(worlds) == _NODES, 90, sandbox=fragile_sandbox)


def _idle_nodes(worlds: Worlds) -> int:
    return worlds.sandbox.run("sinfo", "-N", "-h", "-t", "idle", "-o", "%N").split().__len__()


@dataclass(frozen=True, slots=True)
class Tenant:
    """A running pod, as it was before Slurm forgot it."""

    name: str
    uid: str
    node: str
    job: int
    sluid: str


def tenants(worlds: Worlds, *pods: str, cpus: str = "4", limit: bool = True) -> list[Tenant]:
    """Running pods that Slurm placed."""
    uids = {
        name: worlds.submit(name, cpus=cpus, annotations=_HOUR if limit else None) for name in pods
    }
    return [_tenant(name, uid, worlds.await_phase(name, "Running")) for name, uid in uids.items()]


def _tenant(name: str, uid: str, pod: Manifest) -> Tenant:
    id_ = job_id(pod)
    assert id_ is not None
    return Tenant(name, uid, pod["spec"]["nodeName"], id_, _notes(pod)[names.SLUID_ANNOTATION])


def _notes(pod: Manifest) -> Mapping[str, str]:
    return dict(pod["metadata"].get("annotations", {}))


@contextmanager
def without(sandbox: Sandbox, *parts: str) -> Iterator[None]:
    """Parts are down, and come back."""
    for part in parts:
        sandbox.stop(part)
    try:
        yield
    finally:
        for part in reversed(parts):
            sandbox.start(part)


@contextmanager
def state_kept(sandbox: Sandbox, copy: Path) -> Iterator[None]:
    """Slurmctld's state as it is now is what it comes back from in the end."""
    backups.keep_slurm(sandbox, copy)
    yield
    backups.put_back_slurm(sandbox, copy)


_PART_OF_A_NODE = (
    "sbatch",
    "--parsable",
    "--external",
    "--cpus-per-task=4",
    "--mem=100",
    "--job-name=stranger",
    "--partition=slurm-bridge",
)


def strangers(sandbox: Sandbox, count: int, *more: str) -> list[int]:
    """Jobs of Slurm's other users that want whole nodes."""
    whole = (
        "sbatch",
        "--parsable",
        "--external",
        "--exclusive",
        "--mem=100",
        "-J",
        "stranger",
        "-t",
        "60",
        "-p",
        "slurm-bridge",
    )
    return [int(sandbox.run(*whole, *more)) for _ in range(count)]


@contextmanager
def room_elsewhere(worlds: Worlds) -> Iterator[None]:
    """A node out of service: where a partition has no node at all, Slurm refuses jobs instead of letting them wait."""
    shape = ("State=External", "NodeAddr=127.0.0.1", "CPUs=8", "RealMemory=1000")
    worlds.scontrol("create", "NodeName=elsewhere", *shape, f"Feature={names.BRIDGED_FEATURE}")
    worlds.scontrol("update", "NodeName=elsewhere", "State=DRAIN", "Reason=test")
    yield
    worlds.scontrol("delete", "NodeName=elsewhere")


def states(worlds: Worlds, ids: list[int]) -> list[str]:
    queued = {job.id: job.state for job in worlds.queue()}
    return [queued.get(id_, "gone") for id_ in ids]


def await_restored(
    worlds: Worlds,
    *tenants: Tenant,
    within_s: float = _RESTORED_WITHIN_S,
    besides: Collection[int] = (),
) -> None:
    """Each has another placeholder, on its own node, and says so; nothing else has happened to it.

    besides: jobs that have its identity and are not ours.
    """

    def is_restored(tenant: Tenant) -> bool:
        pod = worlds.pod(tenant.name)
        assert pod is not None
        assert tenant.uid == pod["metadata"]["uid"]
        assert "deletionTimestamp" not in pod["metadata"], condition(pod)
        live = [job for job in worlds.live(tenant.uid) if job.id not in besides]
        return (
            [(job_id(pod), "RUNNING", tenant.node)] == [(j.id, j.state, j.nodes) for j in live]
            and tenant.sluid != _notes(pod)[names.SLUID_ANNOTATION]
            and condition(pod).get("status") == "True"
        )

    for tenant in tenants:
        wait_until(
            lambda tenant=tenant: is_restored(tenant),  # type: ignore[misc]  # bound at once
            within_s,
            sandbox=worlds.sandbox,
        )


def time_limit_min(worlds: Worlds, tenant: Tenant) -> int:
    (job,) = worlds.live(tenant.uid)
    (text,) = worlds.sandbox.run("squeue", "-h", "-j", str(job.id), "-o", "%l").split()
    hours, minutes, _ = ("0:" + text).split(":")[-3:]
    return int(hours) * 60 + int(minutes)


def test_after_a_wipe_all_get_their_places_back_before_strangers_that_wait_longer(
    world: Worlds, fragile_sandbox: Sandbox
) -> None:
    homes = tenants(world, *(f"pod-{number}" for number in range(2 * _NODES)))
    changed = homes[0]
    world.scontrol("update", f"JobId={changed.job}", "TimeLimit=30")
    wait_until(lambda: _accounted_limit(world, changed) == "00:30:00", 20, sandbox=fragile_sandbox)
    with without(fragile_sandbox, "controllers"):
        fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
        with room_elsewhere(world):
            waiting = strangers(fragile_sandbox, _NODES)
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
    homes = tenants(world, *(f"pod-{number}" for number in range(2 * _NODES)))
    struck: list[str] = []
    with fault_bench(fragile_sandbox) as bench:

        def strike(times: int, method: str, path: str, death: Fault = faults.LOST_REPLY) -> None:
            def note() -> None:
                struck.append(path)
                if dies:
                    bench.kill("controllers")

            fault = death if dies else faults.slow(_SCHEDULERS_PASS_S)
            slurmrestd = bench.link("controllers", "slurmrestd")
            slurmrestd.inject(fault.and_then(note), method, path, times=times)

        with without(fragile_sandbox, "controllers"):
            fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
            with room_elsewhere(world):
                waiting = strangers(fragile_sandbox, _NODES)
            strike(2, "POST", "/new/node/")
            strike(3, "POST", f"/node/{homes[0].node}")
            strike(1, "DELETE", f"/node/{names.SPARE_NODE}", faults.LOST_REQUEST)

        for home in homes:
            await_restored(world, home, within_s=_RESTORED_WITHIN_S + 60 * dies)

        assert 6 == len(struck)
    assert {"PENDING"} == set(states(world, waiting))
    wait_until(
        lambda: names.SPARE_NODE not in fragile_sandbox.run("sinfo", "-N", "-h", "-o", "%N"),
        30,
        sandbox=fragile_sandbox,
    )


def _accounted_limit(worlds: Worlds, tenant: Tenant) -> str:
    columns = ("-X", "-n", "-P", "-o", "Timelimit")
    return worlds.sandbox.run("sacct", "-j", tenant.sluid, *columns).strip()


def test_a_gang_gets_its_places_back_as_they_were(world: Worlds, fragile_sandbox: Sandbox) -> None:
    """Half of each node was somebody else's: Slurm itself would put its tasks elsewhere by now."""
    members = 5
    halves = [
        int(fragile_sandbox.run(*_PART_OF_A_NODE, f"--nodelist=node-{number}"))
        for number in range(_NODES)
    ]
    wait_until(lambda: {"RUNNING"} == set(states(world, halves)), 30, sandbox=fragile_sandbox)
    for rank in range(members):
        submit(world, f"rank-{rank}", group="ring", size=members, cpus="2")
    before = [world.await_phase(f"rank-{rank}", "Running") for rank in range(members)]
    homes = Counter(str(pod["spec"]["nodeName"]) for pod in before)
    assert [1, 2, 2] == sorted(homes.values())

    with without(fragile_sandbox, "controllers"):
        fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
        with room_elsewhere(world):
            waiting = strangers(fragile_sandbox, _NODES)

    await_gang_restored(world, "ring", [f"rank-{rank}" for rank in range(members)])
    assert {node: 2 * count for node, count in homes.items()} == _allocated_cpus(world)
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
    allocated = _allocated_cpus(world)
    assert {_NODE_CPUS} == set(allocated.values())

    with without(fragile_sandbox, "controllers"):
        fragile_sandbox.restart("slurmctld", signal="KILL", wipe=True)
        with room_elsewhere(world):
            strangers(fragile_sandbox, _NODES)

    await_gang_restored(world, "mpi", cpus, sizes=2)
    taken = _allocated_cpus(world)
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


def await_gang_restored(
    worlds: Worlds, group: str, members: Collection[str], *, sizes: int = 1
) -> None:
    """Its members have another placeholder, all the same one, and nothing else has happened to them."""

    def is_restored() -> bool:
        live = worlds.live(uid_of(worlds, group))
        pods = [worlds.await_pod(name, bool) for name in members]
        assert not any("deletionTimestamp" in pod["metadata"] for pod in pods)
        return ["RUNNING"] * sizes == [job.state for job in live] and {live[0].id} == {
            job_id(pod) for pod in pods
        }

    wait_until(is_restored, _RESTORED_WITHIN_S, sandbox=worlds.sandbox)


def _allocated_cpus(worlds: Worlds) -> dict[str, int]:
    shown = worlds.sandbox.run("sinfo", "-N", "-h", "-O", "NodeHost:|,CPUsState:").split()
    lines = (line.split("|") for line in shown)
    counts = {node: int(state.split("/")[0]) for node, state in lines}
    return {node: count for node, count in counts.items() if count}


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
        assert names.WHEN_LOST_ANNOTATION not in _notes(world.await_pod("restored", bool))
        assert "SlurmPlaceholderLost" in world.events("let-go") or world.await_event(
            "let-go", "SlurmPlaceholderLost"
        )
        assert "deletionTimestamp" not in world.await_pod("found-out", bool)["metadata"]
    finally:
        fragile_sandbox.start("slurmdbd")
    # It asks at once, instead of in a minute; and slurmctld is still to tell slurmdbd of the end.
    fragile_sandbox.restart("controllers")

    assert "slurmdbd knows" in world.await_event("found-out", "SlurmJobEnded", 60)
    world.await_pod("restored", lambda pod: not is_released(pod))


def _say(worlds: Worlds, pod: str, word: str) -> None:
    with Api(worlds.sandbox.user_kubeconfig("medic", "system:masters", BREAK_GLASS)) as medic:
        note = {"metadata": {"annotations": {names.WHEN_LOST_ANNOTATION: word}}}
        medic.patch(f"{worlds.path}/pods/{pod}", note)
