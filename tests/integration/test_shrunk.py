"""Slurm lets a job's user make it smaller: its pods never take more than Slurm granted."""

import pytest

from bridge.domain.lifecycle.actions import OwnCause
from sandbox.client import Sandbox
from slurmruntime.values.names import REQUEST_PREFIX
from tests.integration import gang_pods
from tests.integration.slurm_users import run_as
from tests.integration.worlds import PATIENCE_S, Worlds, condition, job_id
from tests.servers import wait_until

HELD = {f"{REQUEST_PREFIX}hold": "true"}
SMALL = ("numcpus=1", "mincpusnode=1", "cpuspertask=1", "minmemorynode=1")


@pytest.fixture
def user(worlds: Worlds, full_sandbox: Sandbox) -> str:
    """Whom the jobs of this namespace belong to."""
    uid = worlds.submit("whose", annotations=HELD)
    job = worlds.await_live(uid)
    return full_sandbox.run("squeue", "--noheader", "-j", str(job.id), "-O", "UserName").strip()


def shrink(sandbox: Sandbox, user: str, job: int, *changes: str) -> None:
    run_as(sandbox, user, "scontrol", "update", f"jobid={job}", *changes)
    run_as(sandbox, user, "scontrol", "release", str(job))


@pytest.mark.attack(
    "make one's own waiting job smaller with `scontrol`, and run the pod at full size",
    "what Slurm granted is compared with what the pod takes before it is placed",
)
def test_a_waiting_job_that_its_user_made_smaller_never_gets_its_pod(
    worlds: Worlds, full_sandbox: Sandbox, user: str
) -> None:
    uid = worlds.submit("greedy", cpus="4", memory="2Gi", annotations=HELD)
    first = worlds.await_live(uid, lambda job: job.state == "PENDING")

    shrink(full_sandbox, user, first.id, *SMALL)

    told = worlds.await_event("greedy", "GrantTooSmall")
    missing = "1 of the 4 CPUs, 1 of the 2048 MiB that the pod requests"
    assert f"Slurm job {first.id} was changed while it waited: it has {missing}" in told
    second = worlds.await_live(uid, lambda job: job.id != first.id)
    causes = {job.id: job.identity.cause for job in worlds.jobs(uid) if job.identity}
    assert {first.id: OwnCause.SHRUNK, second.id: ""} == causes
    run_as(full_sandbox, user, "scontrol", "release", str(second.id))
    running = worlds.await_phase("greedy", "Running")
    assert second.id == job_id(running)
    assert uid == running["metadata"]["uid"]


@pytest.mark.attack(
    "make one's own waiting job smaller again and again",
    "after three times nothing is submitted any more",
)
def test_after_three_times_nothing_is_submitted_any_more(
    worlds: Worlds, full_sandbox: Sandbox, user: str
) -> None:
    uid = worlds.submit("stubborn", cpus="2", annotations=HELD)
    done: set[int] = set()
    for _ in range(3):
        job = worlds.await_live(uid, lambda job: job.id not in done)
        shrink(full_sandbox, user, job.id, "numcpus=1", "mincpusnode=1", "cpuspertask=1")
        done.add(job.id)

    held = worlds.await_pod("stubborn", lambda pod: condition(pod).get("reason") == "GrantHeld")

    assert held["status"]["phase"] == "Pending"
    assert done == {job.id for job in worlds.jobs(uid)}
    wait_until(lambda: not worlds.live(uid), PATIENCE_S, sandbox=full_sandbox)


@pytest.mark.safeguard(
    "second reading",
    "a Slurm user makes an own running gang smaller",
    "the time until the job is read: 20 s, or five minutes of many; and 30 s of grace",
)
@pytest.mark.attack(
    "make one's own running gang smaller, and keep its pods on the nodes",
    "pods on nodes that the job gave up are evicted",
)
@pytest.mark.ending("released")
def test_pods_on_nodes_that_a_running_gang_gave_up_are_evicted(
    worlds: Worlds, full_sandbox: Sandbox, user: str
) -> None:
    for name in ("a", "b"):
        gang_pods.submit(worlds, name, group="ring", size=2, cpus="8")
    nodes = {n: worlds.await_phase(n, "Running")["spec"]["nodeName"] for n in ("a", "b")}
    ring = gang_pods.uid_of(worlds, "ring")
    (job,) = worlds.live(ring)

    run_as(full_sandbox, user, "scontrol", "update", f"jobid={job.id}", "numnodes=1")

    (smaller,) = worlds.live(ring)
    (goes,) = (name for name, node in nodes.items() if node != smaller.nodes)
    (stays,) = nodes.keys() - {goes}
    evicted = worlds.await_eviction(goes)
    assert "SlurmNodeReleased" == condition(evicted, "DisruptionTarget")["reason"]
    assert nodes[goes] in condition(evicted, "DisruptionTarget")["message"]
    gang_pods.submit(worlds, "c", group="ring", size=2, cpus="8")
    replacement = worlds.await_phase("c", "Running")
    assert job.id != job_id(replacement)
    assert "Running" == worlds.await_pod(stays, bool)["status"]["phase"]
    assert [(job.id, nodes[stays])] == [(one.id, one.nodes) for one in worlds.live(ring)]
