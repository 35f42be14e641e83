"""slurmdbd, by way of slurmrestd: all its collections, and its state."""

from functools import cached_property

from slurmclient import models
from slurmclient.accounting.accounts import Accounts, Associations, Users
from slurmclient.accounting.jobs import AccountedJobs
from slurmclient.accounting.records import DatabaseCollection, Records
from slurmclient.calls.speaker import Speaker
from slurmclient.errors import Malformed
from slurmclient.wire import reading
from slurmclient.wire.reading import Listing


class Database:
    """The collections of slurmdbd. Any method may raise `SlurmError`."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    @cached_property
    def jobs(self) -> AccountedJobs:
        """All jobs that were recorded."""
        return AccountedJobs(self._speaker)

    @cached_property
    def accounts(self) -> Accounts:
        """The accounts."""
        return Accounts(
            self._speaker, models.Account, "accounts", one="account", parameter="account_name"
        )

    @cached_property
    def users(self) -> Users:
        """The users."""
        return Users(self._speaker, models.User, "users", one="user", parameter="name")

    @cached_property
    def associations(self) -> Associations:
        """The associations."""
        return Associations(self._speaker, models.Association, "associations")

    @cached_property
    def qos(self) -> Records[models.Qos]:
        """The qualities of service."""
        return Records(self._speaker, models.Qos, "qos", one="single_qos", parameter="qos")

    @cached_property
    def wckeys(self) -> Records[models.Wckey]:
        """The workload characterization keys, by id."""
        return Records(self._speaker, models.Wckey, "wckeys", one="wckey", parameter="id")

    @cached_property
    def clusters(self) -> Records[models.Cluster]:
        """The clusters that report to this slurmdbd."""
        return Records(
            self._speaker, models.Cluster, "clusters", one="cluster", parameter="cluster_name"
        )

    @cached_property
    def tres(self) -> Records[models.Tres]:
        """The trackable resources, such as CPUs, memory, GPUs, licenses; Slurm can only list them."""
        return Records(self._speaker, models.Tres, "TRES")

    @cached_property
    def instances(self) -> DatabaseCollection[models.Instance]:
        """The cloud instances that nodes have run on."""
        return DatabaseCollection(self._speaker, models.Instance, "instances")

    async def ping(self) -> Listing[models.DatabasePing]:
        """Ping all slurmdbd, primary and backup."""
        return await self._speaker.read_all("slurmdb_get_ping", "pings", models.DatabasePing)

    async def diag(self) -> models.DatabaseStatistics:
        """Read slurmdbd's statistics."""
        return await self._speaker.read_field(
            "slurmdb_get_diag", "statistics", models.DatabaseStatistics
        )

    async def conf(self) -> models.DatabaseConfig:
        """Read slurmdbd's configuration; needs v0.0.45."""
        return await self._speaker.read_field(
            "slurmdb_get_conf", "slurmdbd_conf", models.DatabaseConfig
        )

    async def dump(self) -> models.DatabaseDump:
        """Read all clusters, accounts, users, associations, QOS, wckeys and TRES with one request."""
        operation = "slurmdb_get_config"
        body = await self._speaker.caller.call(operation, user=self._speaker.user)
        dump, odd = reading.one(body, models.DatabaseDump)
        if dump is None:
            raise Malformed(operation, f"cannot decode the answer: {odd[0].why}")
        return dump
