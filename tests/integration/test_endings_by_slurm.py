"""Slurm, or its administrator, ends, suspends or changes a placeholder: its pod follows, and nothing is overwritten."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bridge.domain.lifecycle.actions import Cause
from sandbox.client import Sandbox
from tests.integration.machines import repaired
from tests.integration.slurm_users import run_as
from tests.integration.worlds import (
    Worlds,
    condition,
    is_gated,
    is_released,
    job_manifest,
    played,
)

_HELD = {"slurmjob.slinky.slurm.net/hold": "true"}
_URGENT = "urgent"


@pytest.fixture(scope="module")
def urgent(full_sandbox: Sandbox) -> None:
    """A QOS whose jobs, root's here, preempt everybody else's."""
    full_sandbox.run("sacctmgr", "-i", "add", "qos", _URGENT, "Preempt=normal", "Priority=1000")
    full_sandbox.run("sacctmgr", "-i", "modify", "user", "root", "set", f"qos+={_URGENT}")


@pytest.mark.usefixtures("urgent")
@pytest.mark.ending("preempted")
def test_a_preempted_pod_is_a_disruption_and_its_jobs_next_pod_queues_again(
    worlds: Worlds,
) -> None:
    worlds.create_job(job_manifest("work", annotations=played(seconds=4, stop_seconds=2)))
    first = worlds.await_one_pod("job-name=work", lambda pod: pod["status"]["phase"] == "Running")
    uid, node = first["metadata"]["uid"], first["spec"]["nodeName"]

    with worlds.strangers_on(node, options=(f"--qos={_URGENT}",)):
        evicted = worlds.await_eviction(first["metadata"]["name"])
        assert "SlurmPreempted" == condition(evicted, "DisruptionTarget")["reason"]
        assert "PREEMPTED" == worlds.await_accounted(uid).state
        second = worlds.await_one_pod(
            "job-name=work", lambda pod: pod["metadata"]["uid"] != uid and is_released(pod)
        )

    worlds.await_job("work", "Complete")
    assert "COMPLETED" == worlds.await_accounted(second["metadata"]["uid"]).state


@pytest.mark.ending("node-fail")
def test_a_pod_whose_slurm_node_fails_is_evicted(worlds: Worlds) -> None:
    uid = worlds.submit("down", annotations=played(stop_seconds=2))
    node = worlds.await_phase("down", "Running")["spec"]["nodeName"]
    with slurm_node(worlds, node, "DOWN"):
        evicted = worlds.await_eviction("down")
        note = worlds.await_event("down", Cause.NODE_FAIL.value)

    assert "SlurmNodeFail" == condition(evicted, "DisruptionTarget")["reason"]
    assert "was ended as NODE_FAIL: its node failed or was set DOWN" in note
    worlds.await_gone("down")
    assert "NODE_FAIL" == worlds.await_accounted(uid).state


@pytest.mark.safeguard(
    "suspension",
    "a Slurm user suspends an own job, whose containers run on",
    "30 s of grace, not charged; with `controllers.suspended: keep`, which is not the default, as long as they like",
)
@pytest.mark.attack(
    "suspend one's own running job, so that its pod computes on without a limit and without being charged",
    "the pod is evicted (`controllers.suspended`)",
)
@pytest.mark.ending("suspended-evict")
def test_a_suspended_pod_is_evicted(worlds: Worlds) -> None:
    """Slurm lets a job's own user suspend it."""
    uid = worlds.submit("suspended")
    node = worlds.await_phase("suspended", "Running")["spec"]["nodeName"]
    with repaired(worlds, node):
        job = str(worlds.live(uid)[0].id)
        user = worlds.sandbox.run("squeue", "--noheader", "-j", job, "-O", "UserName").strip()
        run_as(worlds.sandbox, user, "scontrol", "suspend", job)

        evicted = worlds.await_eviction("suspended")
        assert "SlurmSuspended" == condition(evicted, "DisruptionTarget")["reason"]
        worlds.await_gone("suspended")
        assert "CANCELLED" == worlds.await_accounted(uid).state


@pytest.mark.attack(
    "cancel one's own running job, and let its containers use a grace period of an hour, again and again",
    "the containers get 30 s, as a native job does, however the user ends their job in Slurm",
)
@pytest.mark.safeguard(
    "grace",
    "a Slurm user cancels an own running job, whose pod asks for a grace period of an hour",
    "30 s, as a native job gets (`KillWait`). Who needs longer deletes the pod: its job goes on meanwhile, and is charged",
)
def test_who_cancels_an_own_job_gets_no_longer_grace_than_slurm_gives(worlds: Worlds) -> None:
    stubborn = played(stop_seconds=3600)
    uid = worlds.submit("stubborn", annotations=stubborn, terminationGracePeriodSeconds=3600)
    worlds.await_phase("stubborn", "Running")
    job = str(worlds.live(uid)[0].id)
    user = worlds.sandbox.run("squeue", "--noheader", "-j", job, "-O", "UserName").strip()

    run_as(worlds.sandbox, user, "scancel", job)

    evicted = worlds.await_eviction("stubborn")
    assert 30 == evicted["metadata"]["deletionGracePeriodSeconds"]
    worlds.await_gone("stubborn")
    assert "CANCELLED" == worlds.await_accounted(uid).state


@pytest.mark.ending("held")
def test_what_an_administrator_changes_stands(worlds: Worlds) -> None:
    """Held while it waits, sent to another node with another limit and priority, let go, and limited anew as it runs."""
    uid = worlds.submit("waits", annotations={**_HELD, **played(seconds=6)})
    job = worlds.await_live(uid)
    worlds.scontrol("update", f"JobId={job.id}", "TimeLimit=7", "ReqNodeList=node-2", "Nice=5")
    worlds.scontrol("hold", str(job.id))
    held = worlds.await_pod("waits", lambda pod: condition(pod).get("reason") == "JobHeldAdmin")
    assert is_gated(held)

    worlds.scontrol("release", str(job.id))
    running = worlds.await_phase("waits", "Running")
    worlds.scontrol("update", f"JobId={job.id}", "TimeLimit=9")
    worlds.await_pod("waits", is_released)

    assert "node-2" == running["spec"]["nodeName"]
    ended = worlds.await_accounted(uid)
    assert ("COMPLETED", job.id) == (ended.state, ended.id)
    assert "00:09:00" == worlds.time_limit(job.id)


@contextmanager
def slurm_node(worlds: Worlds, node: str, state: str) -> Iterator[None]:
    """A Slurm node in that state for a while."""
    worlds.scontrol("update", f"NodeName={node}", f"State={state}", "Reason=test")
    try:
        yield
    finally:
        worlds.scontrol("update", f"NodeName={node}", "State=RESUME")
