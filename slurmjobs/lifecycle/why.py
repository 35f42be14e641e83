"""Explain a SlurmJob's state to people: what its status says, what Slurm says now, and what to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
_ANEW: Final = "create it again, with another name or after deleting this one"

_REFUSED: Mapping[str, str] = {
    "PolicyRefused": "ask for less, or ask the administrator of slurm-bridge for a policy rule; it is tried again by itself",
    "SubmitRefused": f"change what Slurm objects to: {_ANEW}; where Slurm changes, it is tried again by itself",
    "ScriptInvalid": "mend the script; one from a ConfigMap is read again by itself",
    "PreparationFailed": "report it to the maintainers of slurm-bridge; it is tried again by itself",
    "ScriptMissing": "create that ConfigMap; it is looked for again by itself",
    "Dependency": "",
    "Unknown": "",
}
"""Next steps while there is no job, by reason; "" if the message says it."""

_FAILED: Mapping[str, str] = {
    "NonZeroExit": "read what it wrote",
    "Signalled": "read what it wrote; signal 9 often means that its memory was not enough",
    "TimeLimit": f"ask for more time, then {_ANEW}",
    "OutOfMemory": f"ask for more memory, then {_ANEW}",
    "NodeFail": f"{_ANEW}; with #SBATCH --requeue Slurm would do so by itself",
    "BootFail": f"{_ANEW}; with #SBATCH --requeue Slurm would do so by itself",
    "Preempted": f"{_ANEW}; with #SBATCH --requeue Slurm would do so by itself",
    "Cancelled": f"ask who cancelled it: sacct -j JOB -o JobID,State%40; {_ANEW}",
    "NeverRunnable": f"ask for what a node has: sinfo -o '%N %P %c %m %G %f'; {_ANEW}",
    "OutputFailed": f"give --output, --error and --chdir places where its user may write, then {_ANEW}",
    "TasksUnknown": f"see whether their results are there; {_ANEW}",
    "ResultsNotCollected": f"copy them yourself, as they are still where the job wrote them, or mend what is wrong and {_ANEW}",
    "JobLost": f"see whether its results are there; {_ANEW}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSituation:
    """The facts that were gathered."""

    job: SlurmJobObject
    now: datetime
    queue: Sequence[QueuedJob] | None = None
    """All of Slurm's jobs; None if Slurm was not asked."""


def answer(situation: JobSituation) -> Diagnosis:
    """Explain what the SlurmJob waits for, or how it ended."""
    found = next(
        (each for each in situation.queue or () if each.id == situation.job.status.job_id), None
    )
    said = _said(situation, found)
    return replace(said, details=tuple(_details(situation, found)))


def _said(situation: JobSituation, found: QueuedJob | None) -> Diagnosis:
    job, status = situation.job, situation.job.status
    told = f"{status.message} ({status.reason})" if status.reason else status.message
    if not job.is_ours:
        return Diagnosis(
            stage=Stage.NOT_OURS,
            state="is not slurm-bridge's to run",
            why=f"spec.managedBy names another controller: {job.spec.managed_by}",
        )
    if status.phase in ("Succeeded", "Failed"):
        is_good = status.phase == "Succeeded"
        return Diagnosis(
            stage=Stage.ENDED,
            state="has succeeded" if is_good else "has failed",
            why=told,
            next_step="" if is_good else _after(status),
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
        return _without_job(job, told)
    if found is not None and found.phase is JobPhase.WAITING:
        reason = diagnosis.reason_of(found)
        return Diagnosis(
            stage=Stage.WAITS,
            state="waits in Slurm",
            why=reason.words,
            next_step=reason.next_step.replace("delete the pod", "delete the SlurmJob"),
        )
    return Diagnosis(stage=Stage.WAITS, state="waits in Slurm", why=told)


def _without_job(job: SlurmJobObject, told: str) -> Diagnosis:
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
    return Diagnosis(stage=Stage.WAITS, state="has no job in Slurm", why=told, next_step=step)


def _after(status: SlurmJobStatus) -> str:
    step = _FAILED.get(status.reason, "").replace("JOB", str(status.job_id))
    if status.job_id is None:
        step = f"mend it, then {_ANEW}"
    files = status.outputs
    if status.reason in ("NonZeroExit", "Signalled") and files is not None:
        places = dict.fromkeys(place for place in (files.stderr, files.stdout) if place)
        return f"{step}: {', '.join(places)}" if places else step
    return step


def _details(situation: JobSituation, found: QueuedJob | None) -> list[tuple[str, str]]:
    status = situation.job.status
    rows: list[tuple[str, str]] = [("phase", status.phase or "")]
    if found is not None:
        rows += diagnosis.of_job(found, situation.queue or (), situation.now)
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
