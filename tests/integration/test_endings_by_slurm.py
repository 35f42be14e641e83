"""Slurm, or its administrator, ends, suspends or changes a placeholder: its pod follows, and nothing is overwritten."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bridge.domain.lifecycle.actions import Cause
from sandbox.client import Sandbox
from tests.integration.worlds import (
    Manifest,
    Worlds,
    condition,
    is_gated,
    is_released,
    job_manifest,
    played,
)
from tests.servers import wait_until

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
    assert "ended because its node failed in Slurm" in note
    worlds.await_gone("down")
    assert "NODE_FAIL" == worlds.await_accounted(uid).state


@pytest.mark.ending("suspended")
def test_a_suspended_pod_runs_on_and_is_told_so_until_it_is_resumed(worlds: Worlds) -> None:
    uid = worlds.submit("suspended")
    node = worlds.await_phase("suspended", "Running")["spec"]["nodeName"]
    job = worlds.live(uid)[0]
    with repaired(worlds, node):
        worlds.scontrol("suspend", str(job.id))
        told = worlds.await_pod(
            "suspended", lambda pod: condition(pod).get("reason") == "Suspended"
        )
        assert ("False", "Running") == (condition(told)["status"], told["status"]["phase"])
        assert "deletionTimestamp" not in told["metadata"]

        worlds.scontrol("resume", str(job.id))
        worlds.await_pod("suspended", lambda pod: condition(pod).get("status") == "True")
        assert [(job.id, "RUNNING")] == [(one.id, one.state) for one in worlds.jobs(uid)]

        worlds.delete("suspended")
        assert "CANCELLED" == worlds.await_accounted(uid).state


def test_a_pod_that_ends_while_it_is_suspended_ends_as_it_did(worlds: Worlds) -> None:
    uid = worlds.submit("ends", annotations=played(seconds=4, exit_code=3))
    node = worlds.await_phase("ends", "Running")["spec"]["nodeName"]
    with repaired(worlds, node):
        worlds.scontrol("suspend", str(worlds.live(uid)[0].id))

        worlds.await_pod("ends", is_released)

        ended = worlds.await_accounted(uid)
        assert ("FAILED", "3:0") == (ended.state, ended.exit_code)


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


@contextmanager
def repaired(worlds: Worlds, node: str) -> Iterator[None]:
    """Suspending signals a slurmd that is not there, which spoils an external node for good: it is made anew afterwards."""
    try:
        yield
    finally:
        worlds.clear()
        wait_until(
            lambda: not [job for job in worlds.queue() if job.nodes == node and job.is_live],
            30,
            sandbox=worlds.sandbox,
        )
        worlds.scontrol("delete", f"NodeName={node}")
        wait_until(lambda: _is_up(worlds, node), 30, sandbox=worlds.sandbox)


def _is_up(worlds: Worlds, node: str) -> bool:
    """Registered by the node controller again."""
    shown: Manifest = {}
    lines = worlds.sandbox.run("sinfo", "-h", "-N", "-o", "%N %t").splitlines()
    for line in lines:
        name, state = line.split()
        shown[name] = state
    return shown.get(node) in ("idle", "mix", "alloc")
