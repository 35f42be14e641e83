"""JobSets, by the real JobSet controller: one gang for the set, or one for each of its Jobs that start in turn."""

import pytest

from slurmruntime.values import names
from tests.integration.worlds import is_gated
from tests.workloads.kinds import (
    JOB_INDEX,
    JOBSET_NAME,
    JOBSETS,
    RACK,
    RESTART_ATTEMPT,
    Kinds,
    outcomes,
    replicated_job,
    template,
)

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def test_a_set_runs_as_one_gang_and_completes(kinds: Kinds) -> None:
    """Driver first, then the workers, two on a node; and nothing runs before all of it can."""
    worlds, of_set = kinds.worlds, f"{JOBSET_NAME}=llama"
    pod = template(cpus="4", seconds=6)
    with worlds.strangers_on("node-0", "node-1", "node-2"):
        parts = [replicated_job("driver", 1, 1, pod), replicated_job("work", 2, 2, pod)]
        uid = f"{kinds.create(JOBSETS, 'llama', {'replicatedJobs': parts})}.0"
        worlds.await_live(uid, lambda job: job.state == "PENDING")
        assert [True] * 5 == [is_gated(pod) for pod in kinds.pods(of_set)]

    gang = kinds.await_gang(of_set, 5, uid)

    assert "llama" == gang.name
    expected = ["driver-0-0", "work-0-0", "work-0-1", "work-1-0", "work-1-1"]
    assert [f"llama-{member}" for member in expected] == gang.members
    kinds.await_condition(JOBSETS, "llama", "Completed")
    assert [("COMPLETED", "0:0")] == outcomes(kinds.ended(uid))


def test_a_set_that_is_deleted_ends_its_job(kinds: Kinds) -> None:
    of_set = f"{JOBSET_NAME}=unwanted"
    parts = [replicated_job("work", 2, 2, template())]
    uid = f"{kinds.create(JOBSETS, 'unwanted', {'replicatedJobs': parts})}.0"
    kinds.await_gang(of_set, 4, uid)

    kinds.delete(JOBSETS, "unwanted")

    kinds.await_none(of_set)
    assert [("CANCELLED", "0:0")] == outcomes(kinds.ended(uid))


def test_a_member_that_fails_restarts_the_set(kinds: Kinds) -> None:
    """No finalizer of ours keeps its Job from being Failed, and so the set from starting again."""
    of_set = f"{JOBSET_NAME}=again"
    spec = {
        "failurePolicy": {"maxRestarts": 1},
        "replicatedJobs": [
            replicated_job("driver", 1, 1, template()),
            replicated_job("work", 2, 2, template()),
        ],
    }
    uid = kinds.create(JOBSETS, "again", spec)
    first = kinds.await_gang(of_set, 5, f"{uid}.0")

    kinds.end(first.pods[3], exit_code=3)

    second = kinds.await_gang(f"{of_set},{RESTART_ATTEMPT}=1", 5, f"{uid}.1")
    assert first.uids.isdisjoint(second.uids)
    assert [("FAILED", "3:0")] == outcomes(kinds.ended(f"{uid}.0"))
    assert 1 == kinds.get(JOBSETS, "again")["status"]["restarts"]
    for pod in second.pods:
        kinds.end(pod, exit_code=0)
    kinds.await_condition(JOBSETS, "again", "Completed")
    assert [("COMPLETED", "0:0")] == outcomes(kinds.ended(f"{uid}.1"))


def test_a_set_that_starts_in_order_runs_to_its_end(kinds: Kinds) -> None:
    """Each Job is created when the one before is ready, so each is a gang of its own."""
    spec = {
        "startupPolicy": {"startupPolicyOrder": "InOrder"},
        "replicatedJobs": [
            replicated_job("driver", 1, 1, template(seconds=15)),
            replicated_job("work", 2, 2, template(seconds=4)),
        ],
    }
    uid = f"{kinds.create(JOBSETS, 'ordered', spec)}.0"

    workers = kinds.await_gang(
        f"{JOBSET_NAME}=ordered,jobset.sigs.k8s.io/replicatedjob-name=work", 4, f"{uid}-work"
    )

    assert "ordered-work" == workers.name
    (driver,) = kinds.worlds.live(f"{uid}-driver")
    assert "ordered-driver" == kinds.name(driver)
    kinds.await_condition(JOBSETS, "ordered", "Completed")
    for part in ("driver", "work"):
        assert [("COMPLETED", "0:0")] == outcomes(kinds.ended(f"{uid}-{part}"))


@pytest.mark.parametrize("status", ["Ready", "Complete"])
def test_jobs_that_depend_on_another_run_to_their_end(kinds: Kinds, status: str) -> None:
    depends = [{"name": "driver", "status": status}]
    spec = {
        "replicatedJobs": [
            replicated_job("driver", 1, 1, template(seconds=6)),
            replicated_job("work", 2, 2, template(seconds=2), dependsOn=depends),
        ]
    }
    uid = f"{kinds.create(JOBSETS, 'after', spec)}.0"

    kinds.await_condition(JOBSETS, "after", "Completed")

    for part in ("driver", "work"):
        assert [("COMPLETED", "0:0")] == outcomes(kinds.ended(f"{uid}-{part}"))


def test_jobs_that_want_a_rack_each_for_themselves_run_to_their_end(kinds: Kinds) -> None:
    """A gang for each Job; its followers are created when their leader is bound, and take the slots kept for them."""
    parts = [replicated_job("work", 2, 3, template(cpus="4", seconds=15))]
    wanted = {EXCLUSIVE: RACK}
    uid = kinds.create(JOBSETS, "racks", {"replicatedJobs": parts}, annotations=wanted)
    keys = [f"{uid}.0-work-{number}" for number in (0, 1)]

    gangs = [
        kinds.await_gang(f"{JOBSET_NAME}=racks,{JOB_INDEX}={number}", 3, keys[number])
        for number in (0, 1)
    ]

    assert ["racks-work-0", "racks-work-1"] == [gang.name for gang in gangs]
    racks = [kinds.racks(gang) for gang in gangs]
    assert [1, 1] == [len(rack) for rack in racks]
    assert racks[0] != racks[1]
    kinds.await_condition(JOBSETS, "racks", "Completed")
    for key in keys:
        assert [("COMPLETED", "0:0")] == outcomes(kinds.ended(key))


def test_a_set_may_be_no_gang(kinds: Kinds) -> None:
    parts = [replicated_job("work", 1, 2, template(seconds=3))]
    loose = {names.GANG_ANNOTATION: "false"}
    uid = kinds.create(JOBSETS, "loose", {"replicatedJobs": parts}, annotations=loose)
    pods = kinds.await_running(f"{JOBSET_NAME}=loose", 2)

    kinds.await_condition(JOBSETS, "loose", "Completed")

    assert [] == kinds.worlds.accounted(f"{uid}.0")
    for pod in pods:
        assert [("COMPLETED", "0:0")] == outcomes(kinds.ended(pod["metadata"]["uid"]))
