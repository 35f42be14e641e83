"""Jobs."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, overload

from slurmclient.api.operation import Value
from slurmclient.calls.speaker import Outcome, Speaker, V
from slurmclient.models import AccountedJob
from slurmclient.resources.collection import Collection


class AccountedJobs(Collection[AccountedJob]):
    """The jobs of the accounting: all there have been, minutes behind at times."""

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
        """Read the jobs that were there between two moments, a window of time after the other, each job once.

        Args:
            start: The first moment.
            end: The last.
            window: How much to ask for at a time; slurmdbd and this program hold one window in memory.
            as_: A struct with the fields you need, `job_id` among them.
            query: Parameters of Slurm's, as `users`, `account`, `state`.
        """
        kind = as_ or AccountedJob
        seen: set[tuple[object, ...]] = set()
        begins = start
        while begins < end:
            ends = min(begins + window, end)
            found = await self.list(as_=kind, start_time=begins, end_time=ends, **query)
            # A job that ran on at the end of a window is in the next one again; older ones cannot come any more.
            now = {_identity(one) for one in found}
            for one in found:
                if _identity(one) not in seen:
                    yield one
            seen = now
            begins = ends

    async def update(self, job_id: str | int, /, **fields: object) -> Outcome:
        """Change what the accounting says of a job: `comment={"administrator": …}`, `derived_exit_code`, `extra`."""
        return await self._write("slurmdb_post_job", job_id, **fields)


def _identity(job: Any) -> tuple[object, ...]:
    """Return what tells jobs apart: ids are used again, and a requeued job has one record for each run."""
    return (
        job.job_id,
        getattr(job, "sluid", ""),
        getattr(job, "time", None) and job.time.submission,
    )
