"""Kubernetes' own kinds: what waits for another pod gets it, and what Slurm ends is not the Job's failure."""

from collections.abc import Callable

import pytest

from slurmruntime.values import names
from tests.integration.worlds import is_gated
from tests.workloads.kinds import JOBS, STATEFUL_SETS, Kinds, Seen, outcomes, template

IGNORED = {
    "rules": [
        {
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }
    ]
}


def test_a_stateful_set_starts_one_after_the_other(kinds: Kinds) -> None:
    labels = {"app": "store"}
    spec = {
        "serviceName": "store",
        "replicas": 3,
        "podManagementPolicy": "OrderedReady",
        "selector": {"matchLabels": labels},
        "template": template(labels=labels, restart="Always"),
    }
    kinds.create(STATEFUL_SETS, "store", spec)
    pods = kinds.await_running("app=store", 3)
    before = pods[1]["metadata"]["uid"]

    kinds.worlds.delete("store-1")

    kinds.until(lambda: before not in {p["metadata"]["uid"] for p in kinds.running("app=store")})
    kinds.await_running("app=store", 3)
    assert ["CANCELLED"] == [job.state for job in kinds.ended(before)]
    kinds.delete(STATEFUL_SETS, "store")
    kinds.await_none("app=store")


def gang_job(kinds: Kinds, name: str) -> str:
    spec = {
        "parallelism": 3,
        "completions": 3,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podFailurePolicy": IGNORED,
        "template": template(),
    }
    return kinds.create(JOBS, name, spec, annotations={names.GANG_ANNOTATION: "true"})


STEADY = "job-name=steady"


def ended_by_slurm_while_it_runs(kinds: Kinds) -> str:
    uid = gang_job(kinds, "steady")
    gang: Seen = kinds.await_gang(STEADY, 3, uid)
    kinds.worlds.scancel(gang.job.id)
    kinds.until(lambda: gang.uids.isdisjoint({p["metadata"]["uid"] for p in kinds.running(STEADY)}))
    return uid


def ended_by_slurm_while_it_waits(kinds: Kinds) -> str:
    with kinds.worlds.strangers_on("node-0", "node-1", "node-2", "node-3", deadline_s=90):
        uid = gang_job(kinds, "steady")
        job = kinds.worlds.await_live(uid, lambda job: job.state == "PENDING")
        old = {pod["metadata"]["uid"] for pod in kinds.pods(STEADY) if is_gated(pod)}
        kinds.worlds.scancel(job.id)
        kinds.until(
            lambda: (
                len(
                    [
                        p
                        for p in kinds.pods(STEADY)
                        if is_gated(p)
                        and p["metadata"]["uid"] not in old
                        and p["status"]["phase"] == "Pending"
                    ]
                )
                == 3
            )
        )
    return uid


@pytest.mark.parametrize("end", [ended_by_slurm_while_it_runs, ended_by_slurm_while_it_waits])
def test_what_slurm_ends_is_no_failure_of_the_job(
    kinds: Kinds, end: Callable[[Kinds], str]
) -> None:
    """BackoffLimit 0 and a podFailurePolicy that ignores disruptions: the Job goes on as a new gang."""
    uid = end(kinds)

    gang = kinds.await_gang(STEADY, 3, uid)

    assert 0 == kinds.get(JOBS, "steady")["status"].get("failed", 0)
    for pod in gang.pods:
        kinds.end(pod, exit_code=0)
    kinds.await_condition(JOBS, "steady", "Complete")
    ends = outcomes(kinds.ended(uid, count=2))
    assert [("CANCELLED", "0:0"), ("COMPLETED", "0:0")] == ends
