"""One answer out of what both systems say of a pod."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.diagnosis import why
from bridge.domain.diagnosis.queue import QueuedJob
from bridge.domain.diagnosis.why import Diagnosis, Situation, Stage
from bridge.domain.model.claims.values import DeviceId, PodClaim, ResourceClaim
from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Condition, Container, Pod
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, PodUid
from tests.make import lives as build

IDENTITY = replace(build.waiting().identity, pods=(PodUid("pod-1"),))
PENDING = QueuedJob(
    id=JobId(4711),
    state="PENDING",
    phase=JobPhase.WAITING,
    reason="JobHeldUser",
    partition="gpu",
    user="alice",
    identity=IDENTITY,
)
RUNNING = replace(PENDING, state="RUNNING", phase=JobPhase.RUNNING, reason="")


def said(pod: Pod, *queue: QueuedJob, selected: bool = True) -> Diagnosis:
    return why.answer(
        Situation(pod=pod, now=build.NOW, namespace_is_selected=selected, queue=queue)
    )


def told(pod: Pod, kind: str, reason: str, message: str) -> Pod:
    condition = Condition(type=kind, status="False", reason=reason, message=message)
    return replace(pod, conditions=(condition,))


@pytest.mark.parametrize(
    ("pod", "queue", "stage", "words"),
    [
        (build.gated(), (PENDING,), Stage.WAITS, "its user holds it (JobHeldUser)"),
        (build.gated(), (), Stage.WAITS, "no placeholder"),
        (build.gated(foreign_gates=("kueue.x-k8s.io/admission",)), (), Stage.WAITS, "kueue"),
        (
            told(build.gated(), names.ALLOCATED_CONDITION, "SubmitRefused", "no such partition"),
            (),
            Stage.WAITS,
            "no such partition (SubmitRefused)",
        ),
        (build.placed(), (RUNNING,), Stage.STARTS, "has not bound it to k1"),
        (
            told(build.placed(), "PodScheduled", "Unschedulable", "0/1 nodes are available"),
            (RUNNING,),
            Stage.STARTS,
            "0/1 nodes are available",
        ),
        (build.bound(), (RUNNING,), Stage.RUNS, ""),
        (
            build.bound(),
            (replace(RUNNING, state="CANCELLED", phase=JobPhase.ENDED),),
            Stage.ENDS,
            "Slurm job 4711 is CANCELLED",
        ),
        (build.deleting(build.bound()), (RUNNING,), Stage.ENDS, "deleted"),
        (build.deleting(build.gated()), (PENDING,), Stage.ENDS, "deleted"),
        (build.failed(3), (), Stage.ENDED, "exit code 3"),
        (
            told(build.failed(), "DisruptionTarget", "SlurmCancelled", "job 1 was cancelled"),
            (),
            Stage.ENDED,
            "job 1 was cancelled (SlurmCancelled)",
        ),
        (replace(build.placed(), annotations={}), (), Stage.WAITS, "removed by hand"),
    ],
)
def test_says_where_a_pod_is_and_why(
    pod: Pod, queue: tuple[QueuedJob, ...], stage: Stage, words: str
) -> None:
    found = said(pod, *queue)

    assert stage is found.stage
    assert words in found.why


def test_says_why_the_kubelet_does_not_start_it() -> None:
    stuck = Container(name="main", reason="ImagePullBackOff", message="not found")
    pod = replace(build.bound(), phase=build.placed().phase, containers=(stuck,))

    found = said(pod, RUNNING)

    assert (Stage.STARTS, "main: ImagePullBackOff not found") == (found.stage, found.why)
    assert "kubectl -n team-a describe pod train" == found.next_step


@pytest.mark.parametrize(("selected", "words"), [(True, "older than"), (False, "not handed")])
def test_says_why_a_pod_is_none_of_ours(*, selected: bool, words: str) -> None:
    pod = replace(build.bound(), finalizers=(), scheduler_name="default-scheduler")

    found = said(pod, selected=selected)

    assert Stage.NOT_OURS is found.stage
    assert words in found.why


@pytest.mark.parametrize(
    ("release", "words"),
    [("team-a", "is slurm-bridge's own: its label has no effect"), ("x", "is excluded")],
)
def test_says_that_a_label_has_no_effect(release: str, words: str) -> None:
    pod = replace(build.bound(), finalizers=(), scheduler_name="default-scheduler")
    situation = Situation(
        pod=pod,
        now=build.NOW,
        namespace_is_selected=True,
        namespace_is_excluded=True,
        release=release,
    )

    found = why.answer(situation)

    assert words in found.why
    assert "another namespace" in found.next_step


def test_says_who_is_ahead_and_when_it_may_start() -> None:
    start = build.NOW + timedelta(minutes=5)
    job = replace(PENDING, priority=5, started_at=start)
    ahead = [replace(PENDING, id=JobId(n), priority=9, user="bob", identity=None) for n in range(4)]

    details = dict(said(build.gated(), job, *ahead).details)

    assert "4 (0 of bob, 1 of bob, 2 of bob, …)" == details["ahead of it"]
    assert "2026-05-04 12:06 UTC" == details["expected start"]


def test_takes_the_placeholder_that_counts() -> None:
    spare = replace(PENDING, id=JobId(9), state="CANCELLED", phase=JobPhase.ENDED)

    assert "4711 PENDING" == dict(said(build.gated(), spare, PENDING).details)["Slurm job"]


def test_says_that_slurm_was_not_asked() -> None:
    situation = Situation(pod=build.bound(), now=build.NOW, namespace_is_selected=True)

    assert ("Slurm job", "4711 (Slurm was not asked)") in why.answer(situation).details


def test_tells_the_devices_of_each_claim() -> None:
    devices = tuple(DeviceId("gpu.example.com", "n1", f"gpu-{index}") for index in (0, 3))
    given = ResourceClaim(uid="u", namespace="n", name="given", devices=devices, node="n1")
    bare = ResourceClaim(uid="v", namespace="n", name="bare")
    entries = [
        *(PodClaim(entry=name, claim=name) for name in ("given", "bare", "gone", "hidden")),
        PodClaim(entry="early", template="t"),
    ]
    pod = replace(build.gated(), resource_claims=tuple(entries))
    claims = {"given": given, "bare": bare, "gone": None}

    found = why.answer(
        Situation(pod=pod, now=build.NOW, namespace_is_selected=True, claims=claims)
    ).details

    assert {
        "claim given": "claim given: gpu-0, gpu-3 of gpu.example.com on n1",
        "claim bare": "claim bare, without devices: it gets those that Slurm gives the pod's job",
        "claim gone": "claim gone, which does not exist",
        "claim hidden": "claim hidden, which could not be read",
        "claim early": "not made from template t yet",
    } == {name: text for name, text in found if name.startswith("claim ")}
