"""Gangs on the real things: one placeholder for several pods, all placed together where Slurm says."""

from collections import Counter
from typing import Any

import pytest

from slurmruntime.values import names
from slurmruntime.values.ids import PodUid
from tests.integration.gang_pods import in_group, lws_member, note, submit, uid_of
from tests.integration.worlds import (
    PATIENCE_S,
    Worlds,
    condition,
    container,
    is_gated,
    is_released,
    job_id,
    played,
)
from tests.servers import wait_until


def test_sixteen_pods_run_on_two_nodes_in_slurms_order(worlds: Worlds) -> None:
    wait_until(  # what earlier tests have left ends; Slurm would fill nodes up that are half free
        lambda: all(
            cpus.startswith("0/")
            for cpus in worlds.sandbox.run("sinfo", "-N", "-h", "-o", "%C").split()
        ),
        PATIENCE_S,
        sandbox=worlds.sandbox,
    )
    for rank in range(16):
        submit(worlds, f"rank-{rank}", group="sixteen", size=16, seconds=5)

    pods = [worlds.await_phase(f"rank-{rank}", "Running") for rank in range(16)]

    (job,) = worlds.live(uid_of(worlds, "sixteen"))
    nodes = [pod["spec"]["nodeName"] for pod in pods]
    assert [8, 8] == list(Counter(nodes).values())
    (nodelist,) = {note(pod, names.NODELIST_ANNOTATION) for pod in pods}
    assert [node for node in nodelist.split(",") for _ in range(8)] == nodes
    shown = worlds.sandbox.run("scontrol", "show", "hostnames", job.nodes).split()
    assert set(shown) == set(nodelist.split(","))  # squeue sorts by name, Slurm itself does not
    assert [str(rank) for rank in range(16)] == [note(pod, names.RANK_ANNOTATION) for pod in pods]
    assert {"16"} == {note(pod, names.WORLD_SIZE_ANNOTATION) for pod in pods}
    assert {str(job.id)} == {pod["metadata"]["labels"][names.JOB_ID_LABEL] for pod in pods}

    ended = worlds.await_accounted(uid_of(worlds, "sixteen"))
    assert ("COMPLETED", "0:0") == (ended.state, ended.exit_code)
    for rank in range(16):
        worlds.await_pod(f"rank-{rank}", is_released)


def test_nothing_is_asked_of_slurm_before_all_are_there(worlds: Worlds) -> None:
    first = submit(worlds, "a", group="pair", size=2, seconds=2)
    uid = worlds.submit("alone", annotations=played(seconds=1))
    worlds.await_accounted(uid)
    assert [] == worlds.jobs(uid_of(worlds, "pair"))

    second = submit(worlds, "b", group="pair", size=2, seconds=2)

    job = worlds.await_live(uid_of(worlds, "pair"), lambda job: job.state == "RUNNING")
    assert job.identity is not None
    assert {PodUid(first), PodUid(second)} == set(job.identity.pods)


def test_the_worst_end_counts_and_each_is_released_when_it_ends(worlds: Worlds) -> None:
    submit(worlds, "good", group="mixed", size=2, seconds=6)
    submit(worlds, "bad", group="mixed", size=2, seconds=1, exit_code=3)

    worlds.await_pod("bad", is_released)
    assert "Running" == worlds.await_phase("good", "Running")["status"]["phase"]
    assert ["RUNNING"] == [job.state for job in worlds.live(uid_of(worlds, "mixed"))]
    worlds.delete("bad")
    worlds.await_gone("bad")

    ended = worlds.await_accounted(uid_of(worlds, "mixed"))
    assert ("FAILED", "3:0") == (ended.state, ended.exit_code)


def test_a_replacement_takes_the_free_slot_of_the_running_placeholder(worlds: Worlds) -> None:
    uids = {name: submit(worlds, name, group="steady", size=3) for name in ("a", "b", "c")}
    before = {name: worlds.await_phase(name, "Running") for name in uids}
    (job,) = worlds.live(uid_of(worlds, "steady"))

    worlds.delete("b")
    worlds.await_gone("b")
    new = submit(worlds, "d", group="steady", size=3)
    after = worlds.await_phase("d", "Running")

    assert before["b"]["spec"]["nodeName"] == after["spec"]["nodeName"]
    assert note(before["b"], names.RANK_ANNOTATION) == note(after, names.RANK_ANNOTATION)
    (now,) = worlds.jobs(uid_of(worlds, "steady"))
    assert (job.id, "RUNNING") == (now.id, now.state)
    assert now.identity is not None
    assert (PodUid(uids["a"]), PodUid(new), PodUid(uids["c"])) == now.identity.pods
    for name in ("a", "c"):
        pod = worlds.pod(name)
        assert pod is not None
        assert uids[name] == pod["metadata"]["uid"]
    worlds.clear()
    assert "CANCELLED" == worlds.await_accounted(uid_of(worlds, "steady")).state


def test_scancel_ends_every_waiting_member_once(worlds: Worlds) -> None:
    with worlds.strangers_on("node-0", "node-1", "node-2", "node-3"):
        for name in ("a", "b", "c"):
            submit(worlds, name, group="unwanted", size=3)
        job = worlds.await_live(uid_of(worlds, "unwanted"))
        worlds.scancel(job.id)

        for name in ("a", "b", "c"):
            ended = worlds.await_phase(name, "Failed")
            assert "SlurmCancelled" == ended["status"]["reason"]
            worlds.await_pod(name, is_released)
    assert [job.id] == [each.id for each in worlds.jobs(uid_of(worlds, "unwanted"))]


def test_scancel_of_a_running_gang_evicts_all(worlds: Worlds) -> None:
    for name in ("a", "b"):
        submit(worlds, name, group="stopped", size=2)
    for name in ("a", "b"):
        worlds.await_phase(name, "Running")
    worlds.scancel(worlds.live(uid_of(worlds, "stopped"))[0].id)
    for name in ("a", "b"):
        worlds.await_gone(name)


def test_the_same_name_in_two_namespaces_is_two_gangs(worlds: Worlds, others: Worlds) -> None:
    for world in (worlds, others):
        for name in ("a", "b"):
            submit(world, name, group="twins", size=2)
    ids = set()
    for world in (worlds, others):
        for name in ("a", "b"):
            world.await_phase(name, "Running")
        ids.add(world.live(uid_of(world, "twins"))[0].id)
    assert 2 == len(ids)


def test_a_name_that_is_used_again_is_a_new_gang(worlds: Worlds) -> None:
    for name in ("a", "b"):
        submit(worlds, name, group="again", size=2, stop_seconds=4)
    for name in ("a", "b"):
        worlds.await_phase(name, "Running")
    (old,) = worlds.live(uid_of(worlds, "again"))
    worlds.clear()
    for name in ("c", "d"):
        submit(worlds, name, group="again", size=2)
    named = {job_id(worlds.await_phase(name, "Running")) for name in ("c", "d")}

    (new,) = [job for job in worlds.live(uid_of(worlds, "again")) if job.id != old.id]
    assert "RUNNING" == new.state
    assert {new.id} == named
    wait_until(
        lambda: [new.id] == [job.id for job in worlds.live(uid_of(worlds, "again"))],
        30,
        sandbox=worlds.sandbox,
    )


@pytest.mark.parametrize(
    ("size", "says"),
    [
        (0, "expected a whole number from 1, found 0"),
        ("many", "expected a whole number from 1, found 'many'"),
    ],
)
def test_a_size_that_is_none_is_told(worlds: Worlds, size: Any, says: str) -> None:
    submit(worlds, "odd", group="odd", size=size)
    told = condition(worlds.await_pod("odd", condition))
    assert "PodGroupInvalid" == told["reason"]
    assert says in told["message"]


def test_a_leader_runs_first_and_its_workers_take_the_slots_kept_for_them(worlds: Worlds) -> None:
    leader = lws_member(worlds, 0, 0, 3)
    worlds.await_phase("serve-0", "Running")
    uid = f"LeaderWorkerSet/{worlds.namespace}/serve/0"
    (job,) = worlds.live(uid)
    assert "NumTasks=3" in worlds.scontrol("show", "job", str(job.id))

    later = [lws_member(worlds, 0, worker, 3) for worker in (2, 1)]
    workers = [worlds.await_phase(f"serve-0-{worker}", "Running") for worker in (1, 2)]

    assert ["1", "2"] == [note(pod, names.RANK_ANNOTATION) for pod in workers]
    (now,) = worlds.live(uid)
    assert job.id == now.id
    assert now.identity is not None
    assert {PodUid(uid) for uid in (leader, *later)} == set(now.identity.pods)
    worlds.clear()
    assert "CANCELLED" == worlds.await_accounted(uid).state


def test_a_group_that_is_made_again_gets_a_placeholder_of_its_own(worlds: Worlds) -> None:
    """As a LeaderWorkerSet does after a failure: same names, same indexes, new uids."""
    for worker in range(2):
        lws_member(worlds, 1, worker, 2)
    for name in ("serve-1", "serve-1-1"):
        worlds.await_phase(name, "Running")
    uid = f"LeaderWorkerSet/{worlds.namespace}/serve/1"
    (old,) = worlds.live(uid)
    for name in ("serve-1", "serve-1-1"):
        worlds.delete(name)
    for name in ("serve-1", "serve-1-1"):
        worlds.await_gone(name)

    for worker in range(2):
        lws_member(worlds, 1, worker, 2)
    for name in ("serve-1", "serve-1-1"):
        worlds.await_phase(name, "Running")

    new = worlds.await_live(uid)
    assert new.id != old.id
    assert "CANCELLED" == next(job.state for job in worlds.jobs(uid) if job.id == old.id)


def test_a_surplus_member_gets_a_placeholder_of_its_own(worlds: Worlds) -> None:
    for name in ("a", "b"):
        submit(worlds, name, group="full", size=2)
    for name in ("a", "b"):
        worlds.await_phase(name, "Running")
    uid = submit(worlds, "c", group="full", size=2, seconds=1)
    assert "COMPLETED" == worlds.await_accounted(uid).state
    assert 1 == len(worlds.live(uid_of(worlds, "full")))


def test_a_failure_ends_the_gang_where_its_pods_say_so(worlds: Worlds) -> None:
    plays: dict[str, dict[str, Any]] = {"bad": {"seconds": 1, "exit_code": 4}, "good": {}}
    for name, play in plays.items():
        metadata = in_group("strict", 2)
        metadata["name"] = name
        metadata["annotations"] |= {**played(**play), names.ON_FAILURE_ANNOTATION: "end"}
        spec = {
            "containers": [container()],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,
        }
        worlds.sandbox.admin.create(f"{worlds.path}/pods", {"metadata": metadata, "spec": spec})
    worlds.await_phase("good", "Running", "Failed")
    worlds.await_gone("good")
    ended = worlds.await_accounted(uid_of(worlds, "strict"))
    assert ("FAILED", "4:0") == (ended.state, ended.exit_code)


def test_a_job_that_wants_to_be_a_gang_is_one(worlds: Worlds) -> None:
    template = {
        "metadata": {"annotations": played(seconds=3)},
        "spec": {"containers": [container()], "restartPolicy": "Never"},
    }
    job = worlds.sandbox.admin.create(
        f"/apis/batch/v1/namespaces/{worlds.namespace}/jobs",
        {
            "metadata": {"name": "training", "annotations": {names.GANG_ANNOTATION: "true"}},
            "spec": {
                "parallelism": 4,
                "completions": 4,
                "completionMode": "Indexed",
                "backoffLimit": 0,
                "template": template,
            },
        },
    )
    uid = job["metadata"]["uid"]
    worlds.await_job("training", "Complete")

    ended = worlds.await_accounted(uid)
    assert ("COMPLETED", "0:0") == (ended.state, ended.exit_code)
    assert ended.identity is not None
    assert ("Job", "training", 4) == (
        ended.identity.kind,
        ended.identity.name,
        len(ended.identity.pods),
    )


def test_a_launcher_and_its_gpu_workers_are_one_heterogeneous_job(worlds: Worlds) -> None:
    for name in ("launcher", "worker-0", "worker-1", "worker-2", "worker-3"):
        metadata = in_group("mpi", 5)
        metadata["name"] = name
        metadata["annotations"] |= played(seconds=5)
        with_gpu = container()
        if name != "launcher":
            with_gpu["resources"]["limits"] = {"nvidia.com/gpu": "1"}
            with_gpu["resources"]["requests"]["nvidia.com/gpu"] = "1"
        spec = {"containers": [with_gpu], "restartPolicy": "Never"}
        worlds.sandbox.admin.create(f"{worlds.path}/pods", {"metadata": metadata, "spec": spec})

    launcher = worlds.await_phase("launcher", "Running")
    workers = [worlds.await_phase(f"worker-{number}", "Running") for number in range(4)]

    (leader, component) = worlds.live(uid_of(worlds, "mpi"))
    assert leader.nodes == launcher["spec"]["nodeName"]
    assert {component.nodes} == {worker["spec"]["nodeName"] for worker in workers}
    assert leader.nodes != component.nodes
    shown = worlds.scontrol("show", "job", str(leader.id))
    assert "gres/gpu" not in shown.split("HetJobOffset=1")[0]
    ranks = [note(pod, names.RANK_ANNOTATION) for pod in (launcher, *workers)]
    assert ["0", "1", "2", "3", "4"] == ranks
    assert str(leader.id) == workers[0]["metadata"]["labels"][names.JOB_ID_LABEL]

    def ended() -> bool:
        jobs = worlds.accounted(uid_of(worlds, "mpi"))
        return ["COMPLETED", "COMPLETED"] == [job.state for job in jobs]

    wait_until(ended, 60, sandbox=worlds.sandbox)


def test_a_component_that_ends_takes_the_whole_gang_with_it(worlds: Worlds) -> None:
    for name, cpus in (("big", "4"), ("small", "1")):
        submit(worlds, name, group="split", size=2, cpus=cpus)
    for name in ("big", "small"):
        worlds.await_phase(name, "Running")
    _, component = worlds.live(uid_of(worlds, "split"))
    worlds.scancel(component.id)
    for name in ("big", "small"):
        worlds.await_gone(name)
    wait_until(lambda: [] == worlds.live(uid_of(worlds, "split")), 30, sandbox=worlds.sandbox)


def test_a_gated_member_that_is_deleted_leaves_the_job_to_the_others(worlds: Worlds) -> None:
    with worlds.strangers_on("node-0", "node-1", "node-2", "node-3"):
        for name in ("a", "b"):
            submit(worlds, name, group="shrunk", size=2)
        job = worlds.await_live(uid_of(worlds, "shrunk"))
        worlds.delete("a")
        worlds.await_gone("a")
        assert job.id == worlds.await_live(uid_of(worlds, "shrunk")).id
        assert is_gated(worlds.await_pod("b", is_gated))
        submit(worlds, "c", group="shrunk", size=2)
    for name in ("b", "c"):
        worlds.await_phase(name, "Running")
    (now,) = worlds.jobs(uid_of(worlds, "shrunk"))
    assert job.id == now.id
