"""Placeholders that nobody should have: without a pod, or a second one for the same pod."""

from dataclasses import replace

from bridge.domain.lifecycle.actions import OwnCause
from sandbox.client import Sandbox
from slurmruntime.values.ids import ClusterId
from tests.integration.lookalikes import submit_again, submit_batch
from tests.integration.tampering import tear
from tests.integration.worlds import LIVE, Worlds, is_gated, job_id, played
from tests.servers import wait_until

_HELD = {"slurmjob.slinky.slurm.net/hold": "true"}


def test_what_a_pod_leaves_when_its_finalizer_is_torn_off_is_cancelled(worlds: Worlds) -> None:
    uid = worlds.submit("torn")
    worlds.await_phase("torn", "Running")

    tear(worlds, "torn")

    assert "CANCELLED" == worlds.await_accounted(uid).state


def test_a_strangers_job_is_left_alone(worlds: Worlds, full_sandbox: Sandbox) -> None:
    with worlds.strangers_on("node-3") as jobs:
        uid = worlds.submit("passes", annotations=played(seconds=1))
        worlds.await_accounted(uid)
        assert ["RUNNING"] == [job.state for job in worlds.queue() if job.id == jobs["node-3"]]


def test_jobs_that_only_look_like_ours_survive_everything(
    worlds: Worlds, full_sandbox: Sandbox
) -> None:
    """Of another cluster, no external job, or a SlurmJob's: a placeholder's mark alone makes nobody ours.

    The pod they name is gone in the end.
    """
    uid = worlds.submit("named")
    worlds.await_phase("named", "Running")
    ours = worlds.await_live(uid)
    assert ours.identity is not None
    abroad = replace(ours, identity=replace(ours.identity, cluster=ClusterId("another")))
    lookalikes = {
        submit_again(full_sandbox, abroad, hold=False),
        submit_again(full_sandbox, abroad, hold=True),
        submit_again(full_sandbox, ours, hold=True, is_external=False),
        submit_batch(full_sandbox, ours),
    }
    try:
        for service in ("extender", "controllers"):  # a new leader looks at every job
            full_sandbox.restart(service)
        full_sandbox.restart("slurmctld")
        worlds.delete("named")
        worlds.await_gone("named")
        seen = worlds.submit("torn")
        worlds.await_phase("torn", "Running")
        tear(worlds, "torn")
        # An orphan is cancelled when it has been seen twice: by then the lookalikes have been seen, too.
        assert "CANCELLED" == worlds.await_accounted(seen).state
        assert lookalikes == {job.id for job in worlds.queue() if job.state in LIVE} & lookalikes
    finally:
        full_sandbox.run("scancel", *map(str, lookalikes))


def test_a_second_placeholder_of_a_waiting_pod_is_cancelled(worlds: Worlds) -> None:
    uid = worlds.submit("twice", annotations=_HELD)
    first = worlds.await_live(uid).id

    second = submit_again(worlds.sandbox, worlds.await_live(uid), hold=True)

    spare = wait_until(lambda: spares(worlds, uid), 20, sandbox=worlds.sandbox)
    (left,) = {first, second} - spare
    assert [left] == [job.id for job in worlds.live(uid)]
    assert is_gated(worlds.await_pod("twice", bool))
    worlds.scontrol("release", str(left))
    assert left == job_id(worlds.await_phase("twice", "Running"))


def test_a_second_placeholder_of_a_running_pod_is_cancelled(worlds: Worlds) -> None:
    uid = worlds.submit("twice")
    before = worlds.await_phase("twice", "Running")
    first = worlds.await_live(uid)

    second = submit_again(worlds.sandbox, first, hold=False)

    wait_until(lambda: spares(worlds, uid) == {second}, 20, sandbox=worlds.sandbox)
    assert [first.id] == [job.id for job in worlds.live(uid)]
    after = worlds.await_phase("twice", "Running")
    assert before["metadata"]["uid"] == after["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]
    assert first.id == job_id(after)


def spares(worlds: Worlds, uid: str) -> set[int]:
    """Its placeholders that are over and say that they were one too many."""
    return {
        job.id
        for job in worlds.jobs(uid)
        if job.identity and job.identity.cause == OwnCause.SPARE and job.state not in LIVE
    }
