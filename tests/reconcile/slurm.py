"""Slurm as `bridge.slurm` speaks to it, in memory: jobs that are submitted, read, marked, changed, cancelled, completed.

Takes the place of a `SlurmClient` (and of the `Completer`, which speaks to slurmctld itself), so what is asked for, and
how answers are read, is the product's own.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model.jobs import SlurmJob
from bridge.slurm import errors, wire
from tests.reconcile.trouble import Fault, Trouble

A = TypeVar("A", bound=wire.Answer)

ENDED = ("CANCELLED", "COMPLETED", "FAILED", "TIMEOUT")


@dataclass(slots=True, kw_only=True)
class Job:
    """A job as slurmctld has it."""

    id: int
    comment: str
    state: str = "PENDING"
    nodes: str = ""
    tasks: int = 1
    limit_min: int | None = None
    ends_s: float = 0
    sluid: str = field(init=False)

    def __post_init__(self) -> None:
        self.sluid = f"s{self.id:013}"

    def wired(self) -> dict[str, Any]:
        unlimited = {"set": False, "infinite": True, "number": 0}
        return {
            "job_id": self.id,
            "job_state": [self.state],
            "step_id": {"sluid": self.sluid},
            "flags": ["EXTERNAL_JOB"],
            "admin_comment": self.comment,
            "state_reason": "Priority" if self.state == "PENDING" else "None",
            "nodes": self.nodes,
            "tasks": number(self.tasks),
            "priority": number(1),
            "submit_time": number(self.id),
            "start_time": number(self.id),
            "end_time": number(self.ends_s),
            "time_limit": unlimited if self.limit_min is None else number(self.limit_min),
        }


def number(value: float) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": value}


class Slurm:
    """slurmctld behind slurmrestd."""

    def __init__(self, trouble: Trouble, jobs: Sequence[Job]) -> None:
        self._trouble = trouble
        self.jobs = {job.id: job for job in jobs}

    async def call(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        answer: type[A],
        params: Sequence[tuple[str, str]] = (),
        body: Any = None,
        plugin: str = "slurm",
        user: str = "",
    ) -> A:
        del params, plugin, user
        await asyncio.sleep(0)
        if method == "GET":
            found = self._read(operation, path)
        else:
            found = self._trouble.write(
                f"{method} {path}",
                lambda: self._write(operation, method, path, body),
                fail=lambda fault: _failure(operation, fault),
            )
        return msgspec.json.decode(msgspec.json.encode(found), type=answer)

    async def complete(self, job: SlurmJob, how: Outcome) -> None:
        """Take the place of `Completer.complete`."""
        await asyncio.sleep(0)
        self._trouble.write(
            f"complete {job.id}",
            lambda: self._end(self.jobs[job.id], "FAILED" if how.exit_code else "COMPLETED"),
            fail=lambda fault: _failure("job.complete", fault),
        )

    def _read(self, operation: str, path: str) -> dict[str, Any]:
        if path == "/diag/":
            return {"statistics": {"req_time_start": number(1)}}
        if path == "/jobs/state/":
            listed = [{"job_id": str(job.id), "state": [job.state]} for job in self.jobs.values()]
            return {"jobs": listed}
        return {"jobs": [self._find(operation, path).wired()]}

    def _write(self, operation: str, method: str, path: str, body: Any) -> dict[str, Any]:
        if path == "/job/submit":
            asked = body["job"]
            job = Job(
                id=max(self.jobs, default=0) + 1,
                comment=asked["admin_comment"],
                tasks=asked.get("tasks", 1),
            )
            self.jobs[job.id] = job
            return {"job_id": job.id}
        job = self._find(operation, path)
        if method == "DELETE":
            is_over = job.state in ENDED
            self._end(job, "CANCELLED")
            return {"status": [{"error": {"code": errors.ALREADY_DONE}}] if is_over else []}
        if job.state in ENDED:
            raise errors.Rejected(operation, "over", error_number=errors.JOB_FINISHED)
        job.comment = body.get("admin_comment", job.comment)
        if (limit := body.get("time_limit")) and job.limit_min is not None:
            job.ends_s += 60 * (limit["number"] - job.limit_min)
            job.limit_min = limit["number"]
        return {}

    def _end(self, job: Job, state: str) -> None:
        if job.state not in ENDED:
            job.state = state

    def _find(self, operation: str, path: str) -> Job:
        ref = path.rsplit("/", 1)[-1]
        for job in self.jobs.values():
            if ref in (str(job.id), job.sluid):
                return job
        raise errors.NotFound(operation, f"no job {ref}", status=404)


def _failure(operation: str, fault: Fault) -> errors.SlurmError:
    if fault is Fault.REFUSED:
        return errors.Unavailable(operation, "no connection")
    return errors.LostReply(operation, "no answer")
