"""Every way a pod or its placeholder can end, as the situation in which it is decided: the table of causes in `docs/lifecycle.md`.

What the pod, its owner and Slurm see is not written here; it is what `lifecycle.decide` answers in that situation.
`tests/integration` plays each cause on the real systems, by its key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.actions import (
    Cancel,
    Cause,
    Complete,
    EndPod,
    Evict,
    Outcome,
    Tell,
    Wait,
)
from bridge.domain.lifecycle.decision import Deadlines, Facts
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

_NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
_LONG_AGO = _NOW - timedelta(days=1)
_POLICY = Deadlines()
_GRACE = timedelta(seconds=30)
_OOM_SIGNAL = 125
"""What Slurm shows of OUT_OF_MEMORY."""

_JOB = SlurmJob(
    id=JobId(1),
    sluid=Sluid("s1"),
    phase=JobPhase.RUNNING,
    nodes=(SlurmNode("n"),),
    submitted_at=_LONG_AGO,
    started_at=_LONG_AGO,
    identity=Identity(
        cluster=ClusterId("c"),
        kind="Pod",
        namespace="ns",
        name="p",
        key=WorkloadKey("u"),
        pods=(PodUid("u"),),
    ),
)
_WAITING = replace(_JOB, phase=JobPhase.WAITING, nodes=(), started_at=None, reason="Priority")
_RUNS = Container(name="main", state=ContainerState.RUNNING, started_before=True)
_GATED = Pod(
    uid=PodUid("u"),
    namespace="ns",
    name="p",
    created_at=_LONG_AGO,
    gates=(names.GATE,),
    finalizers=(names.FINALIZER,),
    containers=(Container(name="main"),),
)
_PLACED = replace(
    _GATED,
    gates=(),
    labels={names.JOB_ID_LABEL: "1"},
    annotations={names.NODE_ANNOTATION: "n"},
)
_BOUND = replace(
    _PLACED, kube_node=KubeNode("n"), phase=Phase.RUNNING, start_time=_LONG_AGO, containers=(_RUNS,)
)
_NEVER_STARTED = replace(
    _BOUND, phase=Phase.PENDING, containers=(Container(name="main", reason="ErrImagePull"),)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One cause. Only its owner sees a pod that ends by itself; a job that ends by itself ends as Slurm says."""

    key: str
    cause: str
    seen: Facts | None = None
    """When it begins, if Slurm or we begin it."""
    dying: Facts | None = None
    """While its containers may still run."""
    over: Facts | JobEnd | None = None
    """When they are gone; or how Slurm ended the job. None: the job does not end."""
    policy: Deadlines = _POLICY


def _facts(pod: Pod, job: SlurmJob, *, gone: bool = False, held: bool = False) -> Facts:
    ended = job.phase is JobPhase.ENDED
    view = View(jobs=(job,), fresh=True, surely_none=ended)
    return Facts(
        pod=pod,
        view=view,
        now=_NOW,
        since=_LONG_AGO,
        kube_node=KubeNode("n"),
        node_is_gone=gone,
        evictions_held=held,
    )


def _exited(code: int, reason: str = "") -> Container:
    return Container(
        name="main",
        state=ContainerState.TERMINATED,
        exit_code=code,
        reason=reason,
        started_before=True,
        finished_at=_NOW,
    )


def _ended(container: Container) -> Pod:
    phase = Phase.FAILED if container.exit_code else Phase.SUCCEEDED
    return replace(_BOUND, phase=phase, containers=(container,))


def _deleted(pod: Pod, cause: Cause | None = None) -> Pod:
    """Return a pod deleted by somebody, or by us for a cause of its own."""
    said = Condition(
        type=names.ALLOCATED_CONDITION, status="False", reason=cause.value if cause else ""
    )
    return replace(
        pod, deletion_at=_NOW + _GRACE, deletion_grace_s=_GRACE.seconds, conditions=(said,)
    )


def _by_slurm(end: JobEnd, cause: str) -> Ending:
    job = replace(_JOB, phase=JobPhase.ENDED, end=end)
    return Ending(
        key=end.value.lower().replace("_", "-"), cause=cause, seen=_facts(_BOUND, job), over=end
    )


_STOPPED = _exited(143)
_LIMITED = replace(_JOB, time_limit_min=60, ends_at=_NOW - timedelta(minutes=1))
_EXTENDED = replace(
    _LIMITED,
    time_limit_min=70,
    ends_at=_NOW + timedelta(minutes=9),
    identity=replace(_JOB.identity, limit_min=60, extended_min=70),
)
_CANCELLED_WAITING = replace(_WAITING, phase=JobPhase.ENDED, end=JobEnd.CANCELLED)
_CANCELLED = replace(_JOB, phase=JobPhase.ENDED, end=JobEnd.CANCELLED)
_PAUSED = replace(_JOB, phase=JobPhase.PAUSED)

ENDINGS: Sequence[Ending] = (
    Ending(key="exit-0", cause="containers exit with 0", over=_facts(_ended(_exited(0)), _JOB)),
    Ending(key="exit-n", cause="a container exits with 3", over=_facts(_ended(_exited(3)), _JOB)),
    Ending(
        key="oom",
        cause="a container is OOMKilled",
        over=_facts(_ended(_exited(137, "OOMKilled")), _JOB),
    ),
    Ending(
        key="signal", cause="a container dies of signal 11", over=_facts(_ended(_exited(139)), _JOB)
    ),
    Ending(
        key="deleted",
        cause="pod, owner or namespace deleted; evicted by the Eviction API (kubectl drain)",
        dying=_facts(_deleted(_BOUND), _JOB),
        over=_facts(_deleted(_ended(_STOPPED)), _JOB),
    ),
    Ending(
        key="deleted-waiting",
        cause="the same while it waits",
        over=_facts(_deleted(_GATED), _WAITING),
    ),
    _by_slurm(JobEnd.CANCELLED, "scancel"),
    Ending(
        key="cancelled-waiting",
        cause="scancel while it waits",
        seen=_facts(_GATED, _CANCELLED_WAITING),
        over=JobEnd.CANCELLED,
    ),
    Ending(
        key="held",
        cause="held by an administrator while it waits",
        seen=_facts(_GATED, replace(_WAITING, held=True, reason="JobHeldAdmin")),
    ),
    Ending(
        key="time-limit",
        cause="time limit reached",
        seen=_facts(_BOUND, _EXTENDED),
        dying=_facts(_deleted(_BOUND, Cause.TIME_LIMIT), _EXTENDED),
        over=_facts(_deleted(_ended(_STOPPED), Cause.TIME_LIMIT), _LIMITED),
    ),
    _by_slurm(JobEnd.PREEMPTED, "preempted"),
    _by_slurm(JobEnd.NODE_FAIL, "Slurm node failed or set DOWN"),
    Ending(
        key="node-gone",
        cause="kubelet dead or pod deleted by force; then its node deleted or tainted out-of-service",
        dying=_facts(_deleted(_BOUND), _JOB),
        over=_facts(_deleted(_BOUND), _JOB, gone=True),
    ),
    Ending(
        key="never-bound",
        cause="kube-scheduler tries, and cannot bind it within `placement.bind_deadline_s`",
        seen=replace(_facts(_PLACED, _JOB), unbindable_since=_LONG_AGO),
        over=_facts(_deleted(_PLACED), _JOB),
    ),
    Ending(
        key="never-looked-at",
        cause="kube-scheduler is away, or binds no pod",
        seen=_facts(_PLACED, _JOB),
    ),
    Ending(
        key="never-started",
        cause="no container started within `controllers.start_deadline_s`",
        seen=_facts(_NEVER_STARTED, _JOB),
        dying=_facts(_deleted(_NEVER_STARTED, Cause.NOT_STARTED), _JOB),
        over=_facts(_deleted(_ended(_STOPPED), Cause.NOT_STARTED), _JOB),
    ),
    Ending(
        key="suspended",
        cause="suspended, with `controllers.suspended: keep`",
        seen=_facts(_BOUND, _PAUSED),
    ),
    Ending(
        key="suspended-evict",
        cause="suspended (`scontrol suspend`), by an administrator or the job's user",
        seen=_facts(_BOUND, _PAUSED),
        dying=_facts(_deleted(_BOUND), _PAUSED),
        over=_facts(_deleted(_ended(_STOPPED)), _PAUSED),
        policy=replace(_POLICY, evict_suspended=True),
    ),
    Ending(
        key="released",
        cause="job of a running gang made smaller (`scontrol update NumNodes=`)",
        seen=replace(_facts(_BOUND, _JOB), released=SlurmNode("n")),
    ),
    Ending(
        key="too-many",
        cause="scancel, preemption or node failure of more than 30 % of the running pods at once",
        seen=_facts(_BOUND, _CANCELLED, held=True),
    ),
)


def row(ending: Ending) -> tuple[str, str, str]:
    """Return one line of the table: the cause, what pod and owner see, what Slurm sees."""
    seen = _seen(ending.seen, ending.policy) if ending.seen else "—"
    if ending.over is None:
        return ending.cause, seen, "—"
    told = (
        ending.over.value if isinstance(ending.over, JobEnd) else _told(ending.over, ending.policy)
    )
    waits = ending.dying is not None and _waits(ending.dying, ending.policy)
    return ending.cause, seen, f"{told}, once its containers are gone" if waits else told


def _seen(facts: Facts, policy: Deadlines) -> str:
    match lifecycle.decide(facts, policy).actions[-1]:
        case Evict(cause=cause):
            blame = "DisruptionTarget" if cause.is_disruption else "no DisruptionTarget: a failure"
            return f"eviction, reason `{cause.value}`, {blame}"
        case EndPod(cause=cause):
            return f"Failed by a status patch, reason `{cause.value}`, DisruptionTarget; not submitted again"
        case Tell(reason=reason):
            return f"stays as it is; condition `{reason}`"
        case other:
            raise AssertionError(f"nobody sees {other}")


def _told(facts: Facts, policy: Deadlines) -> str:
    match lifecycle.decide(facts, policy).actions[-1]:
        case Complete(outcome=outcome):
            return _state(outcome)
        case Cancel():
            return JobEnd.CANCELLED.value
        case other:
            raise AssertionError(f"Slurm is not told by {other}")


def _waits(facts: Facts, policy: Deadlines) -> bool:
    return lifecycle.decide(facts, policy).actions == (Wait(),)


def _state(outcome: Outcome) -> str:
    if outcome.out_of_memory:
        return f"{JobEnd.OUT_OF_MEMORY.value} 0:{_OOM_SIGNAL}"
    if outcome.timed_out:
        return f"{JobEnd.TIMEOUT.value}, with its true limit"
    if outcome.signal or outcome.exit_code:
        return f"{JobEnd.FAILED.value} {outcome.exit_code}:{outcome.signal}"
    return f"{JobEnd.COMPLETED.value} 0:0"
