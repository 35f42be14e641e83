"""The accounting of jobs (sacct(1))."""

import logging
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, overload

from msgspec import Raw

from slurmclient.accounting.records import DatabaseCollection
from slurmclient.api.operation import Value
from slurmclient.calls.speaker import Outcome, Speaker, V
from slurmclient.errors import Malformed, NotFound, Rejected
from slurmclient.models import AccountedJob, Config
from slurmclient.resources.keys import check_key, mark_of
from slurmclient.wire import reading
from slurmclient.wire.reading import Listing, Model
from slurmclient.wire.values import Time

_STORES_COMMENTS: Final = "job_comment"
_log: Final = logging.getLogger("slurmclient")


class _Times(Model, frozen=True):
    submission: Time = None
    start: Time = None


class _Record(Model, frozen=True):
    time: _Times = _Times()


class AccountedJobs(DatabaseCollection[AccountedJob]):
    """All jobs that slurmdbd has recorded; it can lag minutes behind slurmctld.

    `get` takes a job's id or, since v0.0.45, its sluid, and reads its latest record; `runs` reads all.
    """

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker, AccountedJob, "jobs", one="job", parameter="job_id")

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
            records = await self.list(as_=kind, start_time=begins, end_time=ends, **query)
            for odd in records.odd:
                if not odd.field:
                    _log.warning("a record of %s to %s is left out: %s", begins, ends, odd.why)
            # A job that outlives a window is in the next one too; one that does not cannot reappear.
            now = {_identity(record) for record in records}
            for record in records:
                if _identity(record) not in seen:
                    yield record
            seen = now
            begins = ends

    async def _read(self, name: str | int, kind: type[V], query: Mapping[str, Value]) -> V:
        path = {self._parameter: name}
        records = await self._speaker.read_all(self._gets, self._key, Raw, path, query)  # type: ignore[type-var]  # Raw is no struct
        if not records:
            raise NotFound(self._gets, f"there is no {name!r}")
        latest = max(records, key=lambda raw: _age(reading.one(bytes(raw), _Record)[0]))
        record, odd = reading.one(bytes(latest), kind)
        if record is None:
            raise Malformed(self._gets, f"cannot decode {name!r}: {odd[0].why}")
        return record

    async def runs(self, job_id: str | int) -> Listing[AccountedJob]:
        """Read all records of a job, by its id or, since v0.0.45, its sluid, the latest submission first.

        A requeued job has a record for each run. After slurmctld has lost its state, several jobs
        have the same id; since v0.0.45 their `sluid` tells them apart.
        """
        records = await self._speaker.read_all(
            self._gets, self._key, AccountedJob, {self._parameter: job_id}
        )
        records.sort(key=_age, reverse=True)
        return records

    async def with_key(self, key: str, *, since: datetime) -> AccountedJob | None:
        """Read the job that was submitted with a key, after slurmctld has purged it.

        `jobs.submit(key=…)` does not search here. Call this first if the job may have ended more than
        MinJobAge seconds ago. slurmdbd receives a job's comment, and with it the key, when the job
        ends, and only if AccountingStoreFlags in slurm.conf has job_comment.

        Args:
            since: The time after which the job must have existed.

        Returns:
            The latest job with this key; None if slurmdbd has no ended job of the user's with this
            key, or not yet, as it can lag minutes behind slurmctld.

        Raises:
            ValueError: If the key is invalid.
            Rejected: If there is no such job, and Slurm does not store comments.
            TooOld: If there is no such job, and Slurm cannot say whether it stores comments; that
                needs v0.0.45.
        """
        check_key(key)
        owner = self._speaker.user or await self._speaker.caller.transport.user()
        query: dict[str, Value] = {"start_time": since, "users": owner or None, "skip_steps": True}
        records = [
            record
            async for record in self.iter(timeout_s=None, **query)
            if mark_of(record.comment.job) == (key, True)
        ]
        if records:
            return max(records, key=_age)
        conf = await self._speaker.read_field("slurm_get_conf", "slurm_conf", Config)
        if _STORES_COMMENTS not in conf.accounting_store_flags:
            words = "slurmdbd does not store comments of jobs: set AccountingStoreFlags=job_comment"
            raise Rejected(self._lists, f"cannot search for the key {key!r}: {words}")
        return None

    async def update(self, job_id: str | int, /, **fields: object) -> Outcome:
        """Change the record of a job; needs v0.0.44.

        Args:
            fields: Slurm's fields (OpenAPI: `job_modify`), such as `comment={"administrator": …}`,
                `derived_exit_code`, `extra`.

        Raises:
            NotFound: If there is no such job.
        """
        return await self._write("slurmdb_post_job", job_id, **fields)


def _age(record: AccountedJob | _Record | None) -> tuple[float, float]:
    """Return a key that sorts records from the oldest to the latest; slurmdbd sends them so."""
    submission = record.time.submission if record else None
    start = record.time.start if record else None
    return (submission.timestamp() if submission else 0, start.timestamp() if start else 0)


def _identity(job: Any) -> tuple[object, ...]:
    """Return what identifies a record: ids are reused, and each run of a job has its own."""
    return (
        job.job_id,
        getattr(job, "sluid", ""),
        getattr(job, "time", None) and job.time.submission,
    )
