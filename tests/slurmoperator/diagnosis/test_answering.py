"""Why a worker, or an object of a Slurm in pods, is as it is, and what to do."""

from typing import Any

import pytest

from bridge.domain.diagnosis.why import Diagnosis, Stage
from slurmoperator.diagnosis import answering
from tests.slurmoperator.diagnosis.given import job, node, node_set, part, pod, slurm, told

SCALED_IN = "slurm-operator: scaled in"
CORDONED = "slurm-operator: Kubernetes has node machine cordoned"
CORDON = {"annotations": {"nodeset.slinky.slurm.net/pod-cordon": "true"}}
PULLS = {"state": {"waiting": {"reason": "ErrImagePull", "message": "no such tag"}}}


def of_worker(*states: str, reason: str = "", **more: Any) -> Diagnosis:
    """What is said of a worker in these states."""
    there = pod("slurmd", "gpu", "gpu-0", conditions=told(*states, reason=reason), **more)
    return answering.explain_worker(there, None, None)


@pytest.mark.parametrize(
    ("states", "reason", "expected"),
    [
        (("Idle",), "", (Stage.RUNS, "is idle", "", "")),
        (("Mixed",), "", (Stage.RUNS, "runs jobs (mixed)", "", "")),
        (
            ("Mixed", "Drain"),
            SCALED_IN,
            (Stage.WAITS, "is draining", "by slurm-operator: scaled in", "squeue -w gpu-0"),
        ),
        (
            ("Idle", "Drain"),
            CORDONED,
            (Stage.WAITS, "is drained", "node machine cordoned", "kubectl uncordon machine"),
        ),
        (
            ("Idle", "Drain"),
            "bad fan",
            (
                Stage.WAITS,
                "is drained",
                "not by slurm-operator: bad fan",
                "scontrol update nodename=gpu-0",
            ),
        ),
        (
            ("Down", "NotResponding"),
            "Not responding",
            (Stage.WAITS, "is down in Slurm", "Not responding", "state=resume"),
        ),
        ((), "", (Stage.RUNS, "runs", "has not been reported", "--slurm-url")),
    ],
)
def test_a_ready_worker_is_as_slurm_says(
    states: tuple[str, ...], reason: str, expected: tuple[Stage, str, str, str]
) -> None:
    found = of_worker(*states, reason=reason)

    stage, state, why, step = expected
    assert (stage, state) == (found.stage, found.state)
    assert why in found.why
    assert step in found.next_step
    details = dict(found.details)
    assert ("gpu", "site", "refused") == (
        details["NodeSet"],
        details["Slurm"],
        details["evictions"],
    )


def test_a_pod_that_somebody_has_cordoned_says_how_to_lift_that() -> None:
    labels = pod("slurmd", "gpu", "gpu-0").metadata.labels
    found = of_worker(
        "Idle",
        "Drain",
        reason="slurm-operator: its pod is cordoned",
        metadata={**CORDON, "labels": labels},
    )

    assert found.next_step.endswith("annotate pod gpu-0 nodeset.slinky.slurm.net/pod-cordon-")


def test_a_worker_whose_pod_is_not_ready_says_what_for() -> None:
    waits = of_worker(ready=False, container=PULLS)
    deleted = of_worker("Idle", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    assert (Stage.STARTS, "container slurmd: ErrImagePull: no such tag") == (waits.stage, waits.why)
    assert "describe pod gpu-0" in waits.next_step
    assert (Stage.ENDS, "is being deleted") == (deleted.stage, deleted.state)


def test_slurm_itself_says_more_than_the_pod_was_told() -> None:
    there = pod("slurmd", "gpu", "gpu-0", conditions=told("Idle"))
    jobs = [job(number, "gpu-0") for number in range(1, 8)]
    busy = answering.explain_worker(there, jobs, [node("gpu-0", "ALLOCATED")])
    missing = answering.explain_worker(there, [], [])

    assert "runs jobs (allocated)" == busy.state
    assert dict(busy.details)["jobs"].endswith("5 of alice and 2 more")
    assert "runs, but Slurm does not know it" == missing.state
    assert "exec gpu-0 -c slurmd" in missing.next_step


def test_an_object_says_what_it_waits_for_what_else_and_how_its_workers_stand() -> None:
    found = slurm(
        part("Controller"),
        node_set(
            "gpu",
            (
                "Ready",
                "False",
                "ScalingIn",
                "gpu-1 is removed (scaled in) when its jobs have ended",
            ),
            ("Updated", "False", "Stuck", "pod gpu-0: ErrImagePull"),
        ),
        pod("slurmd", "gpu", "gpu-0", conditions=told("Idle")),
        pod("slurmd", "gpu", "gpu-1", conditions=told("Mixed", "Drain", reason=SCALED_IN)),
    )

    said = answering.explain_object(found.objects, "NodeSet", "gpu", found)

    assert (Stage.WAITS, "is not ready") == (said.stage, said.state)
    assert "gpu-1 is removed (scaled in) when its jobs have ended (ScalingIn)" == said.why
    assert said.next_step.startswith("nothing: workers are removed when their jobs have ended")
    assert ("also", "pod gpu-0: ErrImagePull (Stuck)") in said.details
    assert ("workers", "1 draining, 1 idle") in said.details
    assert ("worker gpu-1", "ready, draining, by slurm-operator: scaled in") in said.details


def test_every_reason_that_needs_somebody_says_what_to_do() -> None:
    found = slurm(part("RestApi", "api", ("Accepted", "False", "NotOurs", "Service api-restapi")))

    said = answering.explain_object(found.objects, "RestApi", "api", None)

    wanted = "hand it over: kubectl -n slurm annotate restapi api slurm-bridge.dev/take-over=true"
    assert wanted == said.next_step
    objects = slurm(part("Controller")).objects
    ready = answering.explain_object(objects, "Controller", "site", None)
    assert ("is ready", Stage.RUNS) == (ready.state, ready.stage)
    assert "site" == answering.controller_of(objects, "Controller", "site")
