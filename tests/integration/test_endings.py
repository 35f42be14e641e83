"""However a pod ends, its placeholder ends so too; and however a placeholder ends, its pod is told."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from bridge.domain.lifecycle.actions import Cause
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.integration.worlds import (
    Manifest,
    Worlds,
    condition,
    container,
    is_released,
    job_id,
    job_manifest,
    moment,
    played,
)
from tests.servers import fresh_namespace

_LIMITED = {"slurmjob.slinky.slurm.net/timelimit": "1"}
_STOPS_WITHIN_S = 34.0
"""Longer than slurmctld may take to notice that a limit is reached: it looks twice a minute."""
_GRACE_S = 60
_LIMIT_S = 90.0
"""A minute, and somewhat more."""


@dataclass(frozen=True, slots=True)
class Slow:
    """What takes its time: the shortest time limit is a minute, the Job controller backs off for 10 s."""

    worlds: Worlds
    too_long: str
    """Uid of a pod whose time limit an administrator brings forward."""
    limited: str
    """Uid of a Job's pod that reaches its time limit of a minute."""
    work: int
    """The placeholder of a Job's first pod, cancelled."""


@pytest.fixture(scope="module", autouse=True)
def slow(full_sandbox: Sandbox) -> Iterator[Slow]:
    """Begun before the first test here, looked at by the last ones."""
    with fresh_namespace(full_sandbox, labels={names.ENABLED_LABEL: "true"}) as namespace:
        worlds = Worlds(full_sandbox, namespace)
        too_long = worlds.submit("too-long", annotations=_LIMITED)
        lives = {
            "work": played(seconds=3),
            "limited": {**_LIMITED, **played(stop_seconds=_STOPS_WITHIN_S, stop_exit_code=0)},
        }
        for name, annotations in lives.items():
            worlds.create_job(
                job_manifest(name, annotations=annotations, terminationGracePeriodSeconds=_GRACE_S)
            )
        limited = worlds.await_phase("too-long", "Running")
        worlds.scontrol(
            "update", f"JobId={job_id(limited)}", "EndTime=now+5"
        )  # "now" is past by the time that it arrives
        first = worlds.await_one_pod(
            "job-name=work", lambda pod: pod["status"]["phase"] == "Running"
        )
        work = worlds.live(first["metadata"]["uid"])[0].id
        worlds.scancel(work)
        pod = worlds.await_one_pod(
            "job-name=limited", lambda pod: pod["status"]["phase"] == "Running"
        )
        yield Slow(worlds, too_long, pod["metadata"]["uid"], work)
        worlds.clear()


@pytest.mark.parametrize(
    ("life", "phase", "state", "exit_code"),
    [
        (played(seconds=1), "Succeeded", "COMPLETED", "0:0"),
        (played(seconds=1, exit_code=3), "Failed", "FAILED", "3:0"),
        (played(seconds=1, exit_code=139), "Failed", "FAILED", "0:11"),
        (played(seconds=1, reason="OOMKilled"), "Failed", "OUT_OF_MEMORY", "0:125"),
    ],
    ids=["exit-0", "exit-3", "segmentation-fault", "out-of-memory"],
)
@pytest.mark.ending("exit-0", "exit-n", "signal", "oom")
def test_a_pods_end_is_what_sacct_says(
    worlds: Worlds, life: dict[str, str], phase: str, state: str, exit_code: str
) -> None:
    uid = worlds.submit("ends", annotations=life)

    ended = worlds.await_pod("ends", is_released)
    job = worlds.await_accounted(uid)

    assert phase == ended["status"]["phase"]
    assert (state, exit_code) == (job.state, job.exit_code)


def test_the_first_failed_container_in_spec_order_is_the_pods_exit_code(worlds: Worlds) -> None:
    life = {**played(seconds=1), "sandbox.slurm-bridge.dev/exit-code.second": "7"}
    containers = [container(name="first"), container(name="second"), container(name="third")]
    uid = worlds.submit("several", annotations=life, containers=containers)

    worlds.await_pod("several", is_released)

    job = worlds.await_accounted(uid)
    assert ("FAILED", "7:0") == (job.state, job.exit_code)


@pytest.mark.ending("deleted")
def test_a_deleted_pods_placeholder_ends_only_after_its_containers(worlds: Worlds) -> None:
    uid = worlds.submit("deleted", annotations=played(stop_seconds=3))
    worlds.await_phase("deleted", "Running")

    worlds.delete("deleted")

    deleting = worlds.await_eviction("deleted")
    job = worlds.await_accounted(uid)
    worlds.await_gone("deleted")
    assert "CANCELLED" == job.state
    assert job.ended_at is not None
    assert job.ended_at >= _deleted_at(deleting) + timedelta(seconds=3)


@pytest.mark.ending("deleted-waiting")
def test_a_pod_deleted_while_it_waits_leaves_nothing(worlds: Worlds) -> None:
    uid = worlds.submit("never", cpus="8", annotations={"slurmjob.slinky.slurm.net/hold": "true"})
    worlds.await_live(uid)

    worlds.delete("never")

    worlds.await_gone("never")
    assert ["CANCELLED"] == [job.state for job in worlds.jobs(uid)]


def test_a_pod_that_cannot_start_holds_its_node_until_it_is_deleted(worlds: Worlds) -> None:
    stuck = {"sandbox.slurm-bridge.dev/waiting-reason": "ImagePullBackOff"}
    uid = worlds.submit("stuck", annotations=stuck)
    worlds.await_pod("stuck", lambda pod: pod["status"].get("containerStatuses"))
    assert ["RUNNING"] == [job.state for job in worlds.live(uid)]

    worlds.delete("stuck")

    worlds.await_gone("stuck")
    assert "CANCELLED" == worlds.await_accounted(uid).state


@pytest.mark.ending("cancelled")
def test_scancel_of_a_running_placeholder_evicts_its_pod_and_says_why(worlds: Worlds) -> None:
    uid = worlds.submit("scancelled", annotations=played(stop_seconds=4))
    worlds.await_phase("scancelled", "Running")
    job = worlds.live(uid)[0]

    worlds.scancel(job.id)
    evicted = worlds.await_eviction("scancelled")
    note = worlds.await_event("scancelled", Cause.CANCELLED.value)

    told = condition(evicted, "DisruptionTarget")
    assert ("True", "SlurmCancelled") == (told["status"], told["reason"])
    assert f"Slurm job {job.id} was cancelled in Slurm" == told["message"] == note
    worlds.await_gone("scancelled")
    assert "CANCELLED" == worlds.await_accounted(uid).state


@pytest.mark.ending("cancelled-waiting")
def test_a_pod_whose_waiting_placeholder_is_cancelled_fails_and_is_not_submitted_again(
    worlds: Worlds,
) -> None:
    uid = worlds.submit("held", annotations={"slurmjob.slinky.slurm.net/hold": "true"})
    job = worlds.await_live(uid)

    worlds.scancel(job.id)

    failed = worlds.await_pod(
        "held", lambda pod: pod["status"]["phase"] == "Failed" and is_released(pod)
    )
    assert "SlurmCancelled" == failed["status"]["reason"]
    assert "True" == condition(failed, "DisruptionTarget")["status"]
    assert "deletionTimestamp" not in failed["metadata"]
    assert [job.id] == [one.id for one in worlds.jobs(uid)]


def test_a_container_that_is_restarted_keeps_its_pods_placeholder(worlds: Worlds) -> None:
    uid = worlds.submit("restarts", restartPolicy="OnFailure")
    running = worlds.await_phase("restarts", "Running")
    worlds.set_status("restarts", _crashed(running))

    told = worlds.submit("bystander", annotations=played(seconds=1))
    worlds.await_accounted(told)  # whoever ends things has looked meanwhile
    assert "RUNNING" == worlds.live(uid)[0].state

    worlds.set_status("restarts", _finished(running))
    worlds.await_pod("restarts", is_released)
    assert "COMPLETED" == worlds.await_accounted(uid).state


def test_a_limit_that_an_administrator_brought_forward_ends_the_pod(slow: Slow) -> None:
    worlds, uid = slow.worlds, slow.too_long

    note = worlds.await_event("too-long", Cause.TIME_LIMIT.value, deadline_s=60)

    worlds.await_gone("too-long")
    job = worlds.await_accounted(uid)
    assert f"Slurm job {job.id} reached its time limit" == note
    assert "TIMEOUT" == job.state


@pytest.mark.ending("time-limit")
def test_a_time_limit_is_the_pods_own_failure_and_its_node_is_free_when_its_containers_are_gone(
    slow: Slow,
) -> None:
    worlds = slow.worlds
    evicted = worlds.await_passing(
        "job-name=limited", lambda pod: "deletionTimestamp" in pod["metadata"], _LIMIT_S
    )
    job = worlds.live(slow.limited)[0]
    node = evicted["spec"]["nodeName"]
    with worlds.strangers_on(node, deadline_s=_LIMIT_S):  # returns when the node is theirs
        ended = worlds.await_accounted(slow.limited)

    told = condition(evicted)
    assert ("False", "SlurmTimeLimit") == (told["status"], told["reason"])
    assert {} == condition(evicted, "DisruptionTarget")
    assert ("TIMEOUT", "0:0", job.id) == (ended.state, ended.exit_code, ended.id)
    assert ended.ended_at is not None
    assert ended.ended_at >= _deleted_at(evicted) + timedelta(seconds=_STOPS_WITHIN_S)
    assert "00:01:00" == worlds.time_limit(job.id)
    worlds.await_job("limited", "Failed")


def test_a_job_is_finished_by_a_second_pod_where_slurm_ended_the_first(slow: Slow) -> None:
    worlds = slow.worlds

    worlds.await_job("work", "Complete")

    worlds.await_one_pod("job-name=work", is_released)
    jobs = [job for job in worlds.queue() if job.namespace == worlds.namespace]
    ends = {job.id: job.state for job in jobs if job.uid not in (slow.too_long, slow.limited)}
    assert "CANCELLED" == ends.pop(slow.work)
    assert ["COMPLETED"] == list(ends.values())


def _deleted_at(pod: Manifest) -> datetime:
    """The API server writes down when the grace period ends."""
    grace = timedelta(seconds=pod["metadata"]["deletionGracePeriodSeconds"])
    return moment(pod["metadata"]["deletionTimestamp"]) - grace


def _crashed(pod: Manifest) -> Manifest:
    """As a kubelet says it between two tries."""
    (status,) = pod["status"]["containerStatuses"]
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    died = {"terminated": {**_times(status), "exitCode": 1, "reason": "Error"}}
    return {"containerStatuses": [{**status, "state": waiting, "lastState": died}]}


def _finished(pod: Manifest) -> Manifest:
    (status,) = pod["status"]["containerStatuses"]
    ended = {"terminated": {**_times(status), "exitCode": 0, "reason": "Completed"}}
    return {"phase": "Succeeded", "containerStatuses": [{**status, "state": ended}]}


def _times(status: Manifest) -> Manifest:
    started = status["state"]["running"]["startedAt"]
    return {"startedAt": started, "finishedAt": started}
