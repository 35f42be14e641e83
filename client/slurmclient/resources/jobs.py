"""Jobs: submit, read, change, cancel."""

import asyncio
import signal as signals
import time
from collections.abc import Iterable, Mapping
from typing import Any, overload

from msgspec import Struct

from slurmclient.api.operation import Value
from slurmclient.calls.answers import refused
from slurmclient.calls.speaker import Outcome, Speaker, V
from slurmclient.errors import NotFound
from slurmclient.models import Cancelled, Job, JobArrayResponseMsgEntry
from slurmclient.resources import submission
from slurmclient.resources.job_states import has_ended
from slurmclient.resources.submission import Submitted
from slurmclient.resources.watched import Watched
from slurmclient.watching.job_picture import JobPicture
from slurmclient.watching.picture import Picture
from slurmclient.wire import reading
from slurmclient.wire.reading import Listing


def _is_signal(text: str) -> bool:
    if text.isdecimal():
        return 0 < int(text) < signals.NSIG
    return f"SIG{text.upper().removeprefix('SIG')}" in signals.Signals.__members__


class _State(Struct, frozen=True):
    job_id: str
    state: frozenset[str] = frozenset()


class _Updated(Struct, frozen=True):
    results: tuple[JobArrayResponseMsgEntry, ...] | None = None


class _Statuses(Struct, frozen=True):
    status: tuple[Cancelled, ...] | None = None


class Jobs(Watched[Job]):
    """The jobs that slurmctld remembers: also ended ones, for MinJobAge seconds."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(
            speaker, Job, "jobs", lists="slurm_get_jobs", gets="slurm_get_job", parameter="job_id"
        )

    def _picture(self, kind: type[V], resync_s: float) -> Picture[V]:
        return JobPicture(self._speaker, kind, time.monotonic, resync_s=resync_s)

    @overload
    async def get(self, name: str | int, **query: Value) -> Job: ...
    @overload
    async def get(self, name: str | int, *, as_: type[V], **query: Value) -> V: ...
    async def get(self, name: str | int, *, as_: Any = None, **query: Value) -> Any:
        """Read a job by its id or, since v0.0.44, its sluid. Of an array or a heterogeneous job: its first part.

        Raises:
            NotFound: there is no such job, or Slurm has forgotten it.
        """
        return await super().get(name, as_=as_ or Job, **query)

    async def parts(self, job_id: str | int) -> Listing[Job]:
        """Read all tasks of an array, or all components of a heterogeneous job."""
        found = await self._speaker.read("slurm_get_job", "jobs", Job, {"job_id": job_id})
        return Listing() if found is None else found

    async def states(self, job_ids: Iterable[str | int] = ()) -> Mapping[str, frozenset[str]]:
        """Read the states of all jobs, or of these: 38 bytes a job instead of 5 kB.

        The ids are text: `7`, `7_3` for a task of an array, `7+1` for a component of a heterogeneous job. A job that Slurm
        does not know is absent.
        """
        found = await self._speaker.read(
            "slurm_get_jobs_state", "jobs", _State, query={"job_id": list(job_ids) or None}
        )
        return {one.job_id: one.state for one in found or ()}

    async def submit(
        self,
        script: str = "",
        *,
        key: str = "",
        environment: Mapping[str, str] | None = None,
        **fields: object,
    ) -> Submitted:
        """Submit a job.

        Args:
            script: The batch script, with its `#!` line.
            key: Submits at most one job with this key that ever runs, however often, and from wherever, you ask: after a
                lost answer, a crash, or at the same time. It is kept in the job's comment, for as long as Slurm remembers
                the job. See `slurmclient.submission`.
            environment: Of the script; by default only a PATH.
            fields: Slurm's, as `name`, `partition`, `account`, `time_limit`, `minimum_nodes`, `tres_per_node`. A timedelta
                and a datetime are understood. Slurm demands `current_working_directory`, by default "/tmp".

        Raises:
            LostReply: without a key: the job may have been submitted all the same.
            Rejected: Slurm says why; if its `job_id` is set the job *was* submitted.
        """
        description: dict[str, object] = {"current_working_directory": "/tmp", **fields}  # noqa: S108  # there is one on every node
        if script:
            description["script"] = script
            description["environment"] = [
                f"{name}={value}"
                for name, value in (environment or {"PATH": "/usr/local/bin:/usr/bin:/bin"}).items()
            ]
        if key:
            submitted = await submission.once(self._speaker, description, key)
        else:
            submitted = await submission.submit(self._speaker, description)
        await self._speaker.notify("jobs", str(submitted.job_id))
        return submitted

    async def update(self, job_id: str | int, /, **fields: object) -> Outcome:
        """Change a job: Slurm's fields, as `time_limit`, `priority`, `comment`, `partition`.

        Raises:
            NotFound: there is no such job.
            Conflict: it has ended, or runs and may not be changed so any more.
        """
        operation = "slurm_post_job"
        answer, outcome = await self._speaker.write(
            operation, {"job_id": job_id}, body=fields, written=("jobs", str(job_id))
        )
        for one in reading.decode(answer, _Updated).results or ():
            if one.error_code:
                raise refused(operation, one.error_code, f"job {one.step_id}: {one.error}")
        return outcome

    async def hold(self, job_id: str | int) -> Outcome:
        """Keep a pending job from starting."""
        return await self.update(job_id, hold=True)

    async def release(self, job_id: str | int) -> Outcome:
        """Let a held job start."""
        return await self.update(job_id, hold=False)

    async def cancel(
        self, job_id: str | int, *, signal: str = "", flags: Iterable[str] = ()
    ) -> None:
        """Cancel a job, or only send it a signal.

        Args:
            job_id: Its id, or `7_3` for a task of an array.
            signal: As `TERM`; "": it is cancelled.
            flags: Slurm's, as `BATCH_JOB`.

        Raises:
            NotFound: there is no such job.
            Conflict: it has ended already.
            ValueError: there is no such signal. Slurm would kill the job.
        """
        if signal and not _is_signal(signal):
            raise ValueError(f"expected a signal, as TERM, SIGTERM or 15; got {signal!r}")
        operation = "slurm_delete_job"
        answer, _ = await self._speaker.write(
            operation,
            {"job_id": job_id},
            {"signal": signal or None, "flags": ",".join(flags) or None},
            written=("jobs", str(job_id)),
        )
        for one in reading.decode(answer, _Statuses).status or ():
            if one.error.code:
                raise refused(operation, one.error.code, f"job {job_id}: {one.error.string}")

    async def cancel_many(self, *job_ids: str | int, **which: object) -> tuple[Cancelled, ...]:
        """Cancel these jobs, or all that match: `user_name`, `account`, `partition`, `job_state`, …; returns what was done.

        Raises:
            ValueError: neither ids nor a filter: that would be every job.
        """
        if not job_ids and not which:
            raise ValueError("name the jobs to cancel, or filter them: user_name=…, partition=…")
        body: dict[str, object] = dict(which)
        if job_ids:
            body["jobs"] = [str(one) for one in job_ids]
        answer, _ = await self._speaker.write("slurm_delete_jobs", body=body)
        for one in job_ids:
            await self._speaker.notify("jobs", str(one))
        return reading.decode(answer, _Statuses).status or ()

    async def requeue(self, job_id: str | int, *, hold: bool = False) -> None:
        """Put a batch job back into the queue; since v0.0.45."""
        await self._speaker.write(
            "slurm_get_job_requeue",
            {"job_id": job_id},
            {"hold": hold or None},
            written=("jobs", str(job_id)),
        )

    async def wait(
        self, job_id: str | int, *, timeout_s: float | None = None, interval_s: float = 1.0
    ) -> Job:
        """Wait until a job is over, and read it.

        Raises:
            TimeoutError: it is not.
            NotFound: there is no such job, or Slurm forgot it between two looks: `db.jobs` may know it.
        """
        async with asyncio.timeout(timeout_s):
            while True:
                found = await self.states([job_id])
                if not found:
                    raise NotFound("slurm_get_jobs_state", f"there is no job {job_id}")
                if all(map(has_ended, found.values())):
                    return await self.get(job_id)
                await asyncio.sleep(interval_s)
