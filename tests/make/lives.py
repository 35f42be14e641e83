"""Pods, jobs and views in the few shapes that the lifecycle tells apart, and what it says of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.actions import Action, Tell
from bridge.domain.lifecycle.decision import Deadlines, Decision, Facts
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Condition, Container, ContainerState, Phase, Pod
from bridge.domain.observation.view import View
from slurmruntime.values import names
from slurmruntime.values.ids import (
    ClusterId,
    JobId,
    KubeNode,
    PodUid,
    Sluid,
    SlurmNode,
    WorkloadKey,
)

CREATED = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
NOW = CREATED + timedelta(minutes=1)
POLICY = Deadlines()
JOB_ID = JobId(4711)
KUBE_NODE = KubeNode("k1")
SLURM_NODE = SlurmNode("s1")

MAIN_RUNNING = Container(name="main", state=ContainerState.RUNNING, started_before=True)


def exited(code: int = 0, *, name: str = "main", at: datetime = NOW, reason: str = "") -> Container:
    return Container(
        name=name,
        state=ContainerState.TERMINATED,
        exit_code=code,
        reason=reason,
        started_before=True,
        finished_at=at,
    )


def gated(*, foreign_gates: tuple[str, ...] = (), finalizer: bool = True) -> Pod:
    return Pod(
        uid=PodUid("pod-1"),
        namespace="team-a",
        name="train",
        created_at=CREATED,
        gates=(names.GATE, *foreign_gates),
        finalizers=(names.FINALIZER,) if finalizer else (),
        containers=(Container(name="main"),),
    )


def placed(job_id: int | None = JOB_ID) -> Pod:
    return replace(
        gated(),
        gates=(),
        labels={names.JOB_ID_LABEL: str(job_id)} if job_id is not None else {},
        annotations={names.NODE_ANNOTATION: KUBE_NODE},
    )


def bound(job_id: int | None = JOB_ID) -> Pod:
    return replace(
        placed(job_id),
        kube_node=KUBE_NODE,
        phase=Phase.RUNNING,
        start_time=NOW - timedelta(seconds=30),
        containers=(MAIN_RUNNING,),
    )


def succeeded() -> Pod:
    return replace(bound(), phase=Phase.SUCCEEDED, containers=(exited(0),))


def failed(code: int = 1) -> Pod:
    return replace(bound(), phase=Phase.FAILED, containers=(exited(code),))


def deleting(pod: Pod, *, at: datetime = NOW, grace_s: int = 30) -> Pod:
    return replace(pod, deletion_at=at + timedelta(seconds=grace_s), deletion_grace_s=grace_s)


def job(
    phase: JobPhase = JobPhase.RUNNING,
    *,
    number: int = JOB_ID,
    end: JobEnd | None = None,
    cause: str = "",
    reason: str = "",
    submitted_at: datetime | None = CREATED,
    started_at: datetime | None = None,
) -> SlurmJob:
    is_waiting = phase is JobPhase.WAITING
    return SlurmJob(
        id=JobId(number),
        sluid=Sluid(f"sluid-{number}"),
        phase=phase,
        end=end,
        reason=reason,
        nodes=() if is_waiting else (SLURM_NODE,),
        submitted_at=submitted_at,
        started_at=started_at or (None if is_waiting else CREATED),
        identity=Identity(
            cluster=ClusterId("cluster-1"),
            kind="Pod",
            namespace="team-a",
            name="train",
            key=WorkloadKey("pod-1"),
            pods=(PodUid("pod-1"),),
            cause=cause,
        ),
    )


def waiting(reason: str = "Priority", *, number: int = JOB_ID) -> SlurmJob:
    return job(JobPhase.WAITING, number=number, reason=reason)


def ended(end: JobEnd = JobEnd.CANCELLED, *, number: int = JOB_ID, cause: str = "") -> SlurmJob:
    return job(JobPhase.ENDED, number=number, end=end, cause=cause)


def view(*jobs: SlurmJob, fresh: bool = True, surely_none: bool | None = None) -> View:
    none_live = all(j.phase is JobPhase.ENDED for j in jobs)
    return View(
        jobs=jobs, fresh=fresh, surely_none=none_live if surely_none is None else surely_none
    )


def facts(pod: Pod, *jobs: SlurmJob, now: datetime = NOW) -> Facts:
    return Facts(pod=pod, view=view(*jobs), now=now, kube_node=KUBE_NODE)


def decide(facts: Facts) -> Decision:
    return lifecycle.decide(facts, POLICY)


def actions(facts: Facts) -> tuple[Action, ...]:
    return decide(facts).actions


def told(pod: Pod, tell: Action) -> Pod:
    """The pod as it is once that was written on it."""
    assert isinstance(tell, Tell)
    labels = dict(pod.labels)
    if tell.job_id is not None:
        labels[names.JOB_ID_LABEL] = str(tell.job_id)
    said = Condition(
        type=names.ALLOCATED_CONDITION,
        status="True" if tell.allocated else "False",
        reason=tell.reason,
        message=tell.message,
    )
    return replace(pod, labels=labels, conditions=(said,))


def only_tell(facts: Facts) -> Tell:
    (action,) = actions(facts)
    assert isinstance(action, Tell)
    return action
