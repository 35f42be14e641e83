"""Gangs that change on the real things: while they wait their job follows, and who finds no slot waits where that is wanted."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bridge.domain.model.identities import Identity
from sandbox.api import ApiError
from slurmruntime.values import names
from slurmruntime.values.ids import PodUid, WorkloadKey
from tests import faults
from tests.fault_bench import FaultBench
from tests.faults import Fault
from tests.integration.gang_pods import CHANGED_WITHIN_S, GangJob, in_group, note, submit, uid_of
from tests.integration.lookalikes import submit_again
from tests.integration.worlds import LIVE, Job, Worlds, condition, container, is_gated
from tests.servers import wait_until

NODES = ("node-0", "node-1", "node-2", "node-3")


@pytest.fixture
def full(worlds: Worlds) -> Iterator[Worlds]:
    """A namespace whose pods wait, as strangers have every node."""
    with worlds.strangers_on(*NODES):
        yield worlds


def asks_for(worlds: Worlds, job_id: int) -> tuple[int, int]:
    """Tasks and CPUs, as squeue has them."""
    fields = "NumTasks:|,NumCPUs:"
    shown = worlds.sandbox.run("squeue", "--noheader", "-j", str(job_id), "-O", fields)
    tasks, cpus = shown.split("|")
    return int(tasks), int(cpus)


def await_asking_for(worlds: Worlds, job_id: int, *, tasks: int, cpus: int) -> None:
    wait_until(
        lambda: (tasks, cpus) == asks_for(worlds, job_id),
        CHANGED_WITHIN_S,
        sandbox=worlds.sandbox,
    )


def named(worlds: Worlds, uid: str) -> set[str]:
    """The pods that the workload's only placeholder names."""
    (job,) = worlds.jobs(uid)
    assert isinstance(job.identity, Identity)
    return set(job.identity.pods)


def submitted_at(worlds: Worlds, job_id: int) -> str:
    fields = ("--noheader", "-O", "SubmitTime")
    return worlds.sandbox.run("squeue", *fields, "-j", str(job_id)).strip()


def test_a_waiting_job_grows_and_shrinks_with_its_gang_and_keeps_its_place(worlds: Worlds) -> None:
    with worlds.strangers_on(*NODES):
        gang = GangJob(worlds, "elastic", 3)
        job = worlds.await_live(gang.uid)
        since = submitted_at(worlds, job.id)
        for size in (5, 2):
            gang.scale(size)
            await_asking_for(worlds, job.id, tasks=size, cpus=2 * size)
        assert since == submitted_at(worlds, job.id)
        assert {pod["metadata"]["uid"] for pod in gang.pods()} <= named(worlds, gang.uid)

    pods = gang.await_running(2)

    assert {"2"} == {note(pod, names.WORLD_SIZE_ANNOTATION) for pod in pods}
    assert {str(job.id)} == {pod["metadata"]["labels"][names.JOB_ID_LABEL] for pod in pods}
    assert [job.id] == [each.id for each in worlds.jobs(gang.uid)]


def test_a_waiting_job_whose_first_pods_were_all_replaced_is_no_orphan(full: Worlds) -> None:
    gang = GangJob(full, "renewed", 2)
    job = full.await_live(gang.uid)
    first = named(full, gang.uid)
    see_an_orphan_cancelled(full, job)  # whoever does that has read this job, too
    gang.scale(4)
    await_asking_for(full, job.id, tasks=4, cpus=8)

    for pod in gang.pods():
        if pod["metadata"]["uid"] in first:
            full.delete(pod["metadata"]["name"])

    wait_until(
        lambda: len(named(full, gang.uid) - first) == 4, CHANGED_WITHIN_S, sandbox=full.sandbox
    )
    see_an_orphan_cancelled(full, job)
    assert [job.id] == [each.id for each in full.live(gang.uid)]


def see_an_orphan_cancelled(worlds: Worlds, like: Job) -> None:
    """Submit one: that takes two looks at all jobs that are there by now."""
    assert like.identity is not None
    nobodys = replace(
        like.identity,
        kind="Pod",
        name="nobody",
        key=WorkloadKey("nobody"),
        pods=(PodUid("nobody"),),
    )
    orphan = submit_again(worlds.sandbox, replace(like, identity=nobodys), hold=True)
    wait_until(
        lambda: orphan not in {job.id for job in worlds.queue() if job.state in LIVE},
        CHANGED_WITHIN_S,
        sandbox=worlds.sandbox,
    )


@pytest.mark.parametrize(
    ("write", "fault", "dies"),
    [
        pytest.param("the names", faults.LOST_REPLY, True, id="killed between names and size"),
        pytest.param("the size", faults.LOST_REPLY, False, id="size done without a reply"),
        pytest.param("the size", faults.LOST_REQUEST, False, id="size lost"),
        pytest.param("the size", faults.LOST_REPLY, True, id="killed after the size"),
    ],
)
def test_a_change_that_goes_wrong_is_made_all_the_same(
    full: Worlds, bench: FaultBench, write: str, fault: Fault, *, dies: bool
) -> None:
    struck: list[str] = []

    def strike() -> None:
        struck.append(write)
        if dies:
            bench.kill("extender")

    gang = GangJob(full, "shaken", 2)
    job = full.await_live(gang.uid)
    link = bench.link("extender", "slurmrestd")
    if write == "the size":
        link.inject(faults.PASSED_ON, "POST", f"/job/{job.id}$")
    link.inject(fault.and_then(strike), "POST", f"/job/{job.id}$")
    gang.scale(3)

    wait_until(
        lambda: (
            (3, 6) == asks_for(full, job.id)
            and {pod["metadata"]["uid"] for pod in gang.pods()} == named(full, gang.uid)
            and [write] == struck  # a moment after Slurm shows the change
        ),
        CHANGED_WITHIN_S,
        sandbox=full.sandbox,
    )
    assert [(job.id, "PENDING")] == [(each.id, each.state) for each in full.jobs(gang.uid)]
    bench.calm()


def test_a_member_of_another_size_takes_another_job(full: Worlds) -> None:
    """Slurm can make one size of tasks more, not two of one."""
    for name in ("a", "b"):
        submit(full, name, group="mixed", size=2)
    job = full.await_live(uid_of(full, "mixed"))
    full.delete("b")
    full.await_gone("b")
    submit(full, "c", group="mixed", size=2, cpus="2")

    def two_components() -> list[int]:
        live = sorted(each.id for each in full.live(uid_of(full, "mixed")))
        return live if len(live) == 2 else []

    leader, _ = wait_until(two_components, CHANGED_WITHIN_S, sandbox=full.sandbox)
    assert leader > job.id
    (over,) = [each for each in full.jobs(uid_of(full, "mixed")) if each.id == job.id]
    assert over.identity is not None
    assert ("CANCELLED", "resized") == (over.state, over.identity.cause)


def test_a_surplus_member_waits_for_a_slot_where_it_says_so(worlds: Worlds) -> None:
    for name in ("a", "b"):
        submit(worlds, name, group="full", size=2)
    pods = {name: worlds.await_phase(name, "Running") for name in ("a", "b")}
    (job,) = worlds.live(uid_of(worlds, "full"))
    metadata = in_group("full", 2)
    metadata["name"] = "c"
    metadata["annotations"][names.WHEN_FULL_ANNOTATION] = "wait"
    spec = {"containers": [container()], "restartPolicy": "Never"}
    body = {"metadata": metadata, "spec": spec}
    uid = worlds.sandbox.admin.create(f"{worlds.path}/pods", body)["metadata"]["uid"]

    told = condition(worlds.await_pod("c", condition))
    assert ("GangFull", "False") == (told["reason"], told["status"])
    assert f"Slurm job {job.id} of its gang has 2 slots, and none for this pod" in told["message"]
    assert told["message"] == worlds.await_event("c", "GangFull")
    assert is_gated(worlds.await_pod("c", bool))
    assert [] == worlds.jobs(uid)

    worlds.delete("b")
    c = worlds.await_phase("c", "Running")
    assert pods["b"]["spec"]["nodeName"] == c["spec"]["nodeName"]
    assert note(pods["b"], names.RANK_ANNOTATION) == note(c, names.RANK_ANNOTATION)
    assert [(job.id, "RUNNING")] == [
        (each.id, each.state) for each in worlds.jobs(uid_of(worlds, "full"))
    ]
    assert [] == worlds.jobs(uid)


def test_a_word_that_means_nothing_is_refused(worlds: Worlds) -> None:
    with pytest.raises(ApiError, match="expected own-job or wait, found 'perhaps'"):
        worlds.submit("odd", annotations={names.WHEN_FULL_ANNOTATION: "perhaps"})
