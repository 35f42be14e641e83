"""The accounting of jobs (sacct(1))."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, overload

from slurmclient.api.operation import Value
from slurmclient.calls.speaker import Outcome, Speaker, V
from slurmclient.models import AccountedJob
from slurmclient.resources.collection import Collection


class AccountedJobs(Collection[AccountedJob]):
    """All jobs that slurmdbd has recorded; it can lag minutes behind slurmctld."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(
            speaker,
            AccountedJob,
            "jobs",
            lists="slurmdb_get_jobs",
            gets="slurmdb_get_job",
            parameter="job_id",
        )

    @overload
    def windows(
        self, start: datetime, end: datetime, *, window: timedelta = ..., **query: Value
    ) -> AsyncIterator[AccountedJob]: ...
    @overload
    def windows(
        self,
        start: datetime,
        end: datetime,
        *,
        window: timedelta = ...,
        as_: type[V],
        **query: Value,
    ) -> AsyncIterator[V]: ...
    async def windows(
        self,
        start: datetime,
        end: datetime,
        *,
        window: timedelta = timedelta(hours=6),
        as_: Any = None,
        **query: Value,
    ) -> AsyncIterator[Any]:
        """Yield the jobs that existed in a span of time, each job once, reading it in windows.

        Args:
            start: The start of the span.
            end: Its end.
            window: The length of a window; slurmdbd and this program hold one in memory.
            as_: A struct with the fields that you need, `job_id` among them.
            query: Slurm's query parameters, such as `users`, `account`, `state`.

        Raises:
            ValueError: If the window is not positive.
            TypeError: If Slurm has no such parameter.
        """
        if window <= timedelta():
            raise ValueError(f"expected a positive window, got {window}")
        kind = as_ or AccountedJob
        seen: set[tuple[object, ...]] = set()
        begins = start
        while begins < end:
            ends = min(begins + window, end)
            found = await self.list(as_=kind, start_time=begins, end_time=ends, **query)
            # A job that outlives a window is in the next one too; one that does not cannot reappear.
            now = {_identity(one) for one in found}
            for one in found:
                if _identity(one) not in seen:
                    yield one
            seen = now
            begins = ends

    async def update(self, job_id: str | int, /, **fields: object) -> Outcome:
        """Change the record of a job; needs v0.0.44.

        Args:
            job_id: The job's id.
            fields: Slurm's fields (OpenAPI: `job_modify`), such as `comment={"administrator": …}`,
                `derived_exit_code`, `extra`.

        Raises:
            NotFound: If there is no such job.
        """
        return await self._write("slurmdb_post_job", job_id, **fields)


def _identity(job: Any) -> tuple[object, ...]:
    """Return what identifies a record: ids are reused, and each run of a job has its own."""
    return (
        job.job_id,
        getattr(job, "sluid", ""),
        getattr(job, "time", None) and job.time.submission,
    )
