"""Explain a SlurmJob's state to people: its status, what Slurm says now, and what to do."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from bridge.domain.diagnosis import why as diagnosis
from bridge.domain.diagnosis.queue import QueuedJob
from bridge.domain.diagnosis.why import Diagnosis, Stage
from bridge.domain.model.jobs import JobPhase
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.values import names

_DOCTOR: Final = "if this lasts: kubectl slurm doctor"
_RECREATE: Final = "create it again, with another name or after deleting this one"

_REFUSED: Mapping[str, str] = {
    "PolicyRefused": "ask for less, or ask the administrator of slurm-bridge for a policy rule; slurm-bridge keeps retrying",
    "SubmitRefused": f"fix what Slurm objects to, then {_RECREATE}; if the cause is in Slurm, slurm-bridge keeps retrying",
    "ScriptInvalid": "fix the script; one in a ConfigMap is read again automatically",
    "PreparationFailed": "report it to the maintainers of slurm-bridge; slurm-bridge keeps retrying",
    "ScriptMissing": "create that ConfigMap; slurm-bridge keeps looking for it",
    "Dependency": "",
    "Unknown": "",
}
"""Next steps while there is no job, by reason; "" if the message has it."""

_FAILED: Mapping[str, str] = {
    "NonZeroExit": "read its output",
    "Signalled": "read its output; signal 9 often means that it ran out of memory",
    "TimeLimit": f"ask for more time, then {_RECREATE}",
    "OutOfMemory": f"ask for more memory, then {_RECREATE}",
    "NodeFail": f"{_RECREATE}; with #SBATCH --requeue, Slurm restarts such jobs itself",
    "BootFail": f"{_RECREATE}; with #SBATCH --requeue, Slurm restarts such jobs itself",
    "Preempted": f"{_RECREATE}; with #SBATCH --requeue, Slurm restarts such jobs itself",
    "Cancelled": f"ask who cancelled it: sacct -j JOB -o JobID,State%40; {_RECREATE}",
    "NeverRunnable": f"ask for what a node has: sinfo -o '%N %P %c %m %G %f'; {_RECREATE}",
    "OutputFailed": f"set --output, --error and --chdir to places where its user may write, then {_RECREATE}",
    "TasksUnknown": f"check whether the results of those tasks exist; if not, {_RECREATE}",
    "ResultsNotCollected": f"copy the results yourself from where the job wrote them, or fix the cause and {_RECREATE}",
    "JobLost": f"check whether its results exist; if not, {_RECREATE}",
}


def answer(
    job: SlurmJobObject, *, now: datetime, queue: Sequence[QueuedJob] | None = None
) -> Diagnosis:
    """Explain what the SlurmJob waits for, or how it ended; queue: all of Slurm's jobs, None if it was not asked."""
    queued = next((other for other in queue or () if other.id == job.status.job_id), None)
    details = tuple(_details(job.status, queued, queue or (), now))
    return replace(_diagnose(job, queued), details=details)


def _diagnose(job: SlurmJobObject, queued: QueuedJob | None) -> Diagnosis:
    status = job.status
    text = f"{status.message} ({status.reason})" if status.reason else status.message
    if not job.is_ours:
        return Diagnosis(
            stage=Stage.NOT_OURS,
            state="is not managed by slurm-bridge",
            why=f"spec.managedBy names another controller: {job.spec.managed_by}",
        )
    if status.phase in ("Succeeded", "Failed"):
        is_good = status.phase == "Succeeded"
        return Diagnosis(
            stage=Stage.ENDED,
            state="has succeeded" if is_good else "has failed",
            why=text,
            next_step="" if is_good else _step_after_end(status),
        )
    if job.metadata.deletion_timestamp is not None:
        return Diagnosis(
            stage=Stage.ENDS,
            state="is being deleted",
            why="its Slurm job is being cancelled" if status.job_id else "it was deleted",
            next_step=_DOCTOR,
        )
    if status.results is not None and status.results.phase == "Collecting":
        return Diagnosis(stage=Stage.ENDS, state="has ended", why=status.message)
    if job.spec.suspend:
        return Diagnosis(
            stage=Stage.WAITS,
            state="is suspended",
            why="spec.suspend is true",
            next_step=f"kubectl -n {job.metadata.namespace} patch sj {job.metadata.name} --type=merge "
            """-p '{"spec": {"suspend": false}}'""",
        )
    if status.phase == "Running":
        return Diagnosis(stage=Stage.RUNS, state="runs", why=status.message)
    if status.job_id is None:
        return _without_job(job, text)
    if queued is not None and queued.phase is JobPhase.WAITING:
        reason = diagnosis.reason_of(queued)
        return Diagnosis(
            stage=Stage.WAITS,
            state="waits in Slurm",
            why=reason.words,
            next_step=reason.next_step.replace("delete the pod", "delete the SlurmJob"),
        )
    return Diagnosis(stage=Stage.WAITS, state="waits in Slurm", why=text)


def _without_job(job: SlurmJobObject, text: str) -> Diagnosis:
    status = job.status
    if not status.message:
        return Diagnosis(
            stage=Stage.WAITS,
            state="waits to be submitted",
            why="slurm-bridge has not submitted it yet",
            next_step=_DOCTOR,
        )
    step = _REFUSED.get(status.reason, _DOCTOR)
    if status.reason == "NamespaceNotEnabled":
        step = f"kubectl label namespace {job.metadata.namespace} {names.ENABLED_LABEL}=true"
    return Diagnosis(stage=Stage.WAITS, state="has no job in Slurm", why=text, next_step=step)


def _step_after_end(status: SlurmJobStatus) -> str:
    step = _FAILED.get(status.reason, "").replace("JOB", str(status.job_id))
    if status.job_id is None:
        step = f"fix it, then {_RECREATE}"
    files = status.outputs
    if status.reason in ("NonZeroExit", "Signalled") and files is not None:
        places = dict.fromkeys(place for place in (files.stderr, files.stdout) if place)
        return f"{step}: {', '.join(places)}" if places else step
    return step


def _details(
    status: SlurmJobStatus, queued: QueuedJob | None, queue: Sequence[QueuedJob], now: datetime
) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = [("phase", status.phase or "")]
    if queued is not None:
        rows += diagnosis.of_job(queued, queue, now)
    elif status.job_id is not None:
        rows.append(("Slurm job", f"{status.job_id} {status.state}"))
    if status.array is not None:
        tasks = status.array
        text = f"{tasks.running} run, {tasks.pending} wait, {tasks.succeeded} succeeded, {tasks.failed} failed"
        rows.append(("tasks", f"{text}, {tasks.unknown} unknown" if tasks.unknown else text))
        rows.append(("failed tasks", tasks.failed_tasks))
    if status.exit_code is not None:
        rows.append(("exit code", str(status.exit_code)))
    rows.append(("requeued", f"{status.restarts} times" if status.restarts else ""))
    rows.append(("nodes", status.nodes))
    if status.outputs is not None:
        rows += [("output", status.outputs.stdout), ("errors", status.outputs.stderr)]
    return [(name, text) for name, text in rows if text]
