"""Jobs: submit, read, change, cancel, wait."""

import asyncio
import signal as signals
import time
from collections.abc import Iterable, Mapping
from typing import Final, overload

from msgspec import Struct

from slurmclient.calls import answers
from slurmclient.calls.speaker import Outcome, Speaker, V
from slurmclient.errors import NotFound
from slurmclient.models import Cancelled, Job, JobArrayResponseMsgEntry
from slurmclient.resources import submission
from slurmclient.resources.job_states import has_ended
from slurmclient.resources.submission import SubmitResult
from slurmclient.resources.watched import WatchableCollection
from slurmclient.watching.job_picture import JobPicture
from slurmclient.watching.picture import Picture
from slurmclient.wire.reading import Listing

_ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
"""The environment of a script unless the user gives one; Slurm demands that it is not empty."""
_DIRECTORY: Final = "/tmp"  # noqa: S108  # it exists on every node
"""The working directory unless the user gives one; Slurm demands one."""


class _State(Struct, frozen=True):
    job_id: str
    state: frozenset[str] = frozenset()


class _UpdateReply(Struct, frozen=True):
    results: tuple[JobArrayResponseMsgEntry, ...] | None = None


class _CancelReply(Struct, frozen=True):
    status: tuple[Cancelled, ...] | None = None


class Jobs(WatchableCollection[Job]):
    """The jobs that slurmctld knows, including those that ended less than MinJobAge seconds ago.

    `get` takes a job's id or, since v0.0.45, its sluid, and reads the first part of an array or a heterogeneous job. It raises
    `NotFound` for a job that slurmctld has purged, too; see `db.jobs.get`.
    """

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker, Job, "jobs", one="job", parameter="job_id")

    @overload
    async def parts(self, job_id: str | int) -> Listing[Job]: ...
    @overload
    async def parts(self, job_id: str | int, *, as_: type[V]) -> Listing[V]: ...
    async def parts(self, job_id: str | int, *, as_: type[Struct] | None = None) -> object:
        """Read all tasks of an array, or all components of a heterogeneous job; raise NotFound without any."""
        return await self._speaker.read_all("slurm_get_job", "jobs", as_ or Job, {"job_id": job_id})

    async def states(self, job_ids: Iterable[str | int] = ()) -> Mapping[str, frozenset[str]]:
        """Read the states of these jobs, or of all: 38 bytes a job instead of 5 kB.

        Returns:
            States by id: `7`, `7_3` for a task of an array, `7+1` for a component of a
            heterogeneous job. Unknown jobs are absent.
        """
        entries = await self._speaker.read_all(
            "slurm_get_jobs_state", "jobs", _State, query={"job_id": list(job_ids) or None}
        )
        return {entry.job_id: entry.state for entry in entries}

    async def submit(
        self,
        script: str = "",
        *,
        key: str = "",
        environment: Mapping[str, str] | None = None,
        **fields: object,
    ) -> SubmitResult:
        """Submit a job.

        Args:
            script: The batch script, starting with `#!`.
            key: Run at most one job with this key, however often and from wherever it is submitted:
                after a lost answer, after a crash, or concurrently. The key is part of the job's
                comment and lasts until slurmctld purges the job. See `resources.submission`.
            environment: The script's environment; by default only a PATH.
            fields: Slurm's fields (OpenAPI: `job_desc_msg`), such as `name`, `partition`, `account`,
                `time_limit` (minutes or a timedelta), `begin_time` (a datetime), `minimum_nodes`,
                `tres_per_node`. `current_working_directory` is /tmp by default.

        Raises:
            LostReply: If the job may have been submitted. With a key, try again.
            Rejected: If Slurm refuses; if `job_id` is set, the job *was* submitted.
            ValueError: If the key is invalid.
        """
        description: dict[str, object] = {"current_working_directory": _DIRECTORY, **fields}
        if script:
            variables = environment or _ENVIRONMENT
            description["script"] = script
            description["environment"] = [f"{name}={value}" for name, value in variables.items()]
        if key:
            submitted = await submission.submit_once(self._speaker, description, key)
        else:
            submitted = await submission.submit(self._speaker, description)
        await self._speaker.notify("jobs", str(submitted.job_id))
        return submitted

    async def update(self, job_id: str | int, /, **fields: object) -> Outcome:
        """Change a job.

        Args:
            fields: Slurm's fields (OpenAPI: `job_desc_msg`), such as `time_limit`, `priority`,
                `comment`, `partition`.

        Raises:
            NotFound: If there is no such job.
            Conflict: If it has ended, or is running and can no longer be changed in this way.
        """
        operation = "slurm_post_job"
        answer, outcome = await self._speaker.write(
            operation, {"job_id": job_id}, body=fields, written=("jobs", str(job_id))
        )
        for result in answers.parse(operation, answer, _UpdateReply).results or ():
            if result.error_code:
                words = f"job {result.step_id}: {result.error}"
                raise answers.object_error(operation, result.error_code, words)
        return outcome

    async def hold(self, job_id: str | int) -> Outcome:
        """Keep a pending job from starting; raise like `update`."""
        return await self.update(job_id, hold=True)

    async def release(self, job_id: str | int) -> Outcome:
        """Let a held job start; raise like `update`."""
        return await self.update(job_id, hold=False)

    async def cancel(
        self, job_id: str | int, *, signal: str = "", flags: Iterable[str] = ()
    ) -> None:
        """Cancel a job, or only send it a signal (scancel(1)).

        Args:
            job_id: The job's id, or `7_3` for a task of an array.
            signal: The signal, such as `TERM`, `SIGTERM` or `15`; "" to cancel the job.
            flags: Slurm's flags, such as `BATCH_JOB`.

        Raises:
            NotFound: If there is no such job.
            Conflict: If it has ended already.
            ValueError: If there is no such signal; Slurm would kill the job.
        """
        if signal and not _is_signal(signal):
            raise ValueError(f"expected a signal such as TERM, SIGTERM or 15, got {signal!r}")
        operation = "slurm_delete_job"
        answer, _ = await self._speaker.write(
            operation,
            {"job_id": job_id},
            {"signal": signal or None, "flags": ",".join(flags) or None},
            written=("jobs", str(job_id)),
        )
        for status in answers.parse(operation, answer, _CancelReply).status or ():
            if status.error.code:
                words = f"job {job_id}: {status.error.string}"
                raise answers.object_error(operation, status.error.code, words)

    async def cancel_many(self, *job_ids: str | int, **which: object) -> tuple[Cancelled, ...]:
        """Cancel several jobs with one request.

        Args:
            which: Filters instead of ids (OpenAPI: `kill_jobs_msg`), such as `user_name`, `account`,
                `partition`, `job_state`.

        Returns:
            The result for each job; `error.code` is 0 for those that were cancelled.

        Raises:
            ValueError: If there are neither ids nor filters, which would mean every job.
        """
        if not job_ids and not which:
            raise ValueError("name the jobs to cancel, or filter them: user_name=…, partition=…")
        body: dict[str, object] = dict(which)
        if job_ids:
            body["jobs"] = [str(job_id) for job_id in job_ids]
        operation = "slurm_delete_jobs"
        answer, _ = await self._speaker.write(operation, body=body)
        for job_id in job_ids:
            await self._speaker.notify("jobs", str(job_id))
        return answers.parse(operation, answer, _CancelReply).status or ()

    async def requeue(self, job_id: str | int, *, hold: bool = False) -> None:
        """Put a batch job back into the queue, optionally held; needs v0.0.45.

        Raises:
            NotFound: If there is no such job.
            TooOld: If the server does not speak v0.0.45.
        """
        await self._speaker.write(
            "slurm_get_job_requeue",
            {"job_id": job_id},
            {"hold": hold or None},
            written=("jobs", str(job_id)),
        )

    async def wait(
        self, job_id: str | int, *, timeout_s: float | None = None, interval_s: float = 1.0
    ) -> Job:
        """Wait until a job has ended, polling every `interval_s`, and read it.

        Raises:
            TimeoutError: If it has not ended within `timeout_s`.
            NotFound: If there is no such job, or slurmctld purged it between polls; then
                `db.jobs.get` may have it.
        """
        async with asyncio.timeout(timeout_s):
            while True:
                states = await self.states([job_id])
                if not states:
                    raise NotFound("slurm_get_jobs_state", f"there is no job {job_id}")
                if all(map(has_ended, states.values())):
                    return await self.get(job_id)
                await asyncio.sleep(interval_s)

    def _picture(self, kind: type[V], resync_s: float) -> Picture[V]:
        return JobPicture(self._speaker, kind, time.monotonic, resync_s=resync_s)


def _is_signal(text: str) -> bool:
    if text.isdecimal():
        return 0 < int(text) < signals.NSIG
    return f"SIG{text.upper().removeprefix('SIG')}" in signals.Signals.__members__
