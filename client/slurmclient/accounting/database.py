"""What slurmdbd keeps: ended jobs, accounts, users, associations, QOS, and the rest of the accounting."""

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Generic, TypeVar, overload

from msgspec import Struct

from slurmclient.api.operation import Value
from slurmclient.calls.speaker import Collection, Outcome, Speaker, V
from slurmclient.models import (
    Account,
    AccountedJob,
    Association,
    Cluster,
    DatabaseConfig,
    DatabaseDump,
    DatabasePing,
    DatabaseStatistics,
    Instance,
    Qos,
    Tres,
    User,
    Wckey,
)
from slurmclient.wire import reading as wire
from slurmclient.wire.reading import Listing

M = TypeVar("M", bound=Struct)


class Records(Collection[M], Generic[M]):
    """Records that can be saved and removed."""

    def __init__(
        self,
        speaker: Speaker,
        kind: type[M],
        key: str,
        *,
        lists: str,
        gets: str = "",
        parameter: str = "",
        saves: str = "",
        deletes: str = "",
    ) -> None:
        """Say where they are; saves and deletes are operations, the others as of `Collection`."""
        super().__init__(speaker, kind, key, lists=lists, gets=gets, parameter=parameter)
        self._saves = saves
        self._deletes = deletes

    async def save(self, *records: Mapping[str, object]) -> Outcome:
        """Create records or change them: each has Slurm's fields, those that are not named stay as they are."""
        _, outcome = await self._speaker.write(self._saves, body={self._key: list(records)})
        return outcome

    async def delete(self, name: str | int) -> Outcome:
        """Remove a record."""
        _, outcome = await self._speaker.write(self._deletes, {self._parameter: name})
        return outcome


class Accounts(Records[Account]):
    """The accounts, or projects."""

    async def add(
        self,
        *names: str,
        description: str = "",
        organization: str = "",
        clusters: Iterable[str] = (),
        **association: object,
    ) -> Outcome:
        """Create accounts with their associations.

        Args:
            names: Theirs.
            description: Of each; "": its name.
            organization: Of each; "": its parent's.
            clusters: Where; by default on all.
            association: Slurm's fields, as `fairshare`, `maxjobs`, `parent`.
        """
        condition = {
            "accounts": list(names),
            "clusters": list(clusters) or None,
            "association": association or None,
        }
        account = {"description": description or None, "organization": organization or None}
        return await self._add("slurmdb_post_accounts_association", condition, account)

    async def _add(
        self, operation: str, condition: Mapping[str, object], account: Mapping[str, object]
    ) -> Outcome:
        body = {"association_condition": condition, "account": account}
        _, outcome = await self._speaker.write(operation, body=body)
        return outcome


class Users(Records[User]):
    """The users."""

    async def add(
        self,
        *names: str,
        accounts: Iterable[str],
        default_account: str = "",
        clusters: Iterable[str] = (),
        **association: object,
    ) -> Outcome:
        """Create users with their associations, or give users more of them.

        Args:
            names: Theirs.
            accounts: Which they belong to.
            default_account: One of these; "": the first for a new user.
            clusters: Where; by default on all.
            association: Slurm's fields, as `fairshare`, `maxjobs`.
        """
        body = {
            "association_condition": {
                "accounts": list(accounts),
                "users": list(names),
                "clusters": list(clusters) or None,
                "association": association or None,
            },
            "user": {"defaultaccount": default_account or None},
        }
        _, outcome = await self._speaker.write("slurmdb_post_users_association", body=body)
        return outcome


class Associations(Records[Association]):
    """The associations: a user, in an account, on a cluster, in a partition or all."""

    async def delete_where(self, **query: Value) -> Outcome:
        """Remove all that match, by `user`, `account`, `cluster`, `partition` and others.

        Raises:
            ValueError: no filter: that would be every association.
        """
        if not any(query.values()):
            raise ValueError("say which associations to remove: user=…, account=…, cluster=…")
        _, outcome = await self._speaker.write("slurmdb_delete_associations", query=query)
        return outcome


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


class Database:
    """slurmdbd, by way of slurmrestd."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    @cached_property
    def jobs(self) -> AccountedJobs:
        """All jobs there have been."""
        return AccountedJobs(self._speaker)

    @cached_property
    def accounts(self) -> Accounts:
        """The accounts."""
        return Accounts(
            self._speaker,
            Account,
            "accounts",
            lists="slurmdb_get_accounts",
            gets="slurmdb_get_account",
            parameter="account_name",
            saves="slurmdb_post_accounts",
            deletes="slurmdb_delete_account",
        )

    @cached_property
    def users(self) -> Users:
        """The users."""
        return Users(
            self._speaker,
            User,
            "users",
            lists="slurmdb_get_users",
            gets="slurmdb_get_user",
            parameter="name",
            saves="slurmdb_post_users",
            deletes="slurmdb_delete_user",
        )

    @cached_property
    def associations(self) -> Associations:
        """The associations."""
        return Associations(
            self._speaker,
            Association,
            "associations",
            lists="slurmdb_get_associations",
            saves="slurmdb_post_associations",
        )

    @cached_property
    def qos(self) -> Records[Qos]:
        """The qualities of service."""
        return Records(
            self._speaker,
            Qos,
            "qos",
            lists="slurmdb_get_qos",
            gets="slurmdb_get_single_qos",
            parameter="qos",
            saves="slurmdb_post_qos",
            deletes="slurmdb_delete_single_qos",
        )

    @cached_property
    def wckeys(self) -> Records[Wckey]:
        """The workload characterization keys, by their names."""
        return Records(
            self._speaker,
            Wckey,
            "wckeys",
            lists="slurmdb_get_wckeys",
            gets="slurmdb_get_wckey",
            parameter="id",
            saves="slurmdb_post_wckeys",
            deletes="slurmdb_delete_wckey",
        )

    @cached_property
    def clusters(self) -> Records[Cluster]:
        """The clusters of this accounting."""
        return Records(
            self._speaker,
            Cluster,
            "clusters",
            lists="slurmdb_get_clusters",
            gets="slurmdb_get_cluster",
            parameter="cluster_name",
            saves="slurmdb_post_clusters",
            deletes="slurmdb_delete_cluster",
        )

    @cached_property
    def tres(self) -> Records[Tres]:
        """What can be accounted, as CPUs, memory, GPUs, licenses; Slurm cannot be asked for one."""
        return Records(
            self._speaker,
            Tres,
            "TRES",
            lists="slurmdb_get_tres",
            saves="slurmdb_post_tres",
        )

    @cached_property
    def instances(self) -> Collection[Instance]:
        """The cloud instances that nodes have run on."""
        return Collection(self._speaker, Instance, "instances", lists="slurmdb_get_instances")

    async def ping(self) -> Listing[DatabasePing]:
        """Ask whether slurmdbd answers; since v0.0.42."""
        found = await self._speaker.read("slurmdb_get_ping", "pings", DatabasePing)
        return Listing() if found is None else found

    async def diag(self) -> DatabaseStatistics:
        """Read slurmdbd's statistics."""
        return await self._speaker.read_field("slurmdb_get_diag", "statistics", DatabaseStatistics)

    async def conf(self) -> DatabaseConfig:
        """Read slurmdbd's configuration; since v0.0.45."""
        return await self._speaker.read_field("slurmdb_get_conf", "slurmdbd_conf", DatabaseConfig)

    async def dump(self) -> DatabaseDump:
        """Read clusters, accounts, users, associations, QOS, wckeys and TRES at once."""
        body = await self._speaker.caller.call("slurmdb_get_config", user=self._speaker.user)
        found, _ = wire.one(body, DatabaseDump)
        return DatabaseDump() if found is None else found
