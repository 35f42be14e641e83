"""The client of one Slurm: its connections, its token, and all its operations."""

import copy
import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from types import TracebackType
from typing import Final, Self

from slurmclient.accounting.database import Database
from slurmclient.api.operation import VERSIONS, parser
from slurmclient.api.raw import Raw
from slurmclient.calls.caller import Caller
from slurmclient.calls.dialect import Dialect
from slurmclient.calls.observing import OnCall, reporting
from slurmclient.calls.speaker import Outcome, Speaker
from slurmclient.models import Config, ControllerPing, NodeResources, Statistics
from slurmclient.resources.cluster import Licenses, Nodes, Partitions, Reservations, Shares
from slurmclient.resources.jobs import Jobs
from slurmclient.transport import tokens
from slurmclient.transport.failover import MOST_BYTES, Transport
from slurmclient.transport.tls import Tls
from slurmclient.transport.tokens import Token, TokenSource
from slurmclient.wire.reading import Listing

_AUTO: Final = "auto"


@dataclass(eq=False, repr=False)
class Client:
    """A client of one Slurm, through slurmrestd. Any call may raise `SlurmError`.

    async with Client("http://slurmrestd:6820", token=TokenFile("/run/slurm/token")) as slurm:
        for job in await slurm.jobs.list():
            print(job.job_id, job.user_name, job.job_state)

    Nothing is sent before the block, so Slurm may be down.

    Raises:
        ValueError: If there is no URL, the version is unknown, or a number is below 1.
    """

    url: str | Sequence[str]
    """slurmrestd's address: `http://host:6820`, `https://…` or `unix:///run/slurmrestd.socket`; several for
    fail-over."""
    _: KW_ONLY
    token: str | TokenSource | None = None
    """A JWT or its source: `TokenFile`, `TokenCommand`, `JwtKey`. None if slurmrestd identifies you by other
    means, such as `rest_auth/local`."""
    api: str | Sequence[str] = _AUTO
    """`auto` for the newest version of the API that both sides speak; one version, such as `v0.0.44`; or
    several, the preferred one first."""
    tls: Tls | None = None
    """Certificates for https; by default the system's CAs are trusted and no certificate is presented."""
    timeout_s: float = 30
    """The deadline for one exchange."""
    connections: int = 8
    """The maximum number of concurrent calls; others wait. slurmrestd has 124 connections for all its clients
    and never closes an idle one."""
    attempts: int = 3
    """The maximum number of attempts for a read while Slurm cannot answer. A change is repeated only if it was
    not sent."""
    most_bytes: int = MOST_BYTES
    """The longest answer to take, 1 GiB by default; longer ones are `Malformed`. `iter` takes answers of any
    length, and objects of up to 64 MiB."""
    user_agent: str = "slurm-client"
    """Your program's name, for the logs of a proxy."""
    on_call: OnCall = lambda _operation, _seconds, _outcome: None
    """Called after every call with the operation, its seconds, and its outcome: `ok`, an error's `outcome` or
    `cancelled`."""

    def __post_init__(self) -> None:
        if min(self.attempts, self.connections, self.most_bytes) < 1:
            raise ValueError(
                "expected at least 1 attempt, 1 connection and 1 byte, got"
                f" {self.attempts}, {self.connections} and {self.most_bytes}"
            )
        self._urls = (self.url,) if isinstance(self.url, str) else tuple(self.url)
        if not self._urls:
            raise ValueError("expected the URL of at least one slurmrestd")
        self._token_source = Token(self.token) if isinstance(self.token, str) else self.token
        self._versions = _versions(self.api)
        self._open: Speaker | None = None

    @classmethod
    def from_env(
        cls, *, url: str = "", token: str | TokenSource | None = None, api: str = _AUTO
    ) -> Self:
        """Create a client from environment variables.

        SLURMRESTD_URL has the URL, or several with commas. SLURM_JWT has the token, or
        SLURM_JWT_FILE the path of its file. SLURMRESTD_CA has the path of a CA to trust.

        Args:
            url: Takes precedence over SLURMRESTD_URL.
            token: Takes precedence over SLURM_JWT and SLURM_JWT_FILE.

        Raises:
            ValueError: If there is no URL.
            UnusableTls: If the CA cannot be used.
        """
        text = url or os.environ.get("SLURMRESTD_URL", "")
        urls = [part.strip() for part in text.split(",") if part.strip()]
        if not urls:
            raise ValueError(
                "SLURMRESTD_URL is not set: expected the address of slurmrestd, such as http://HOST:6820"
            )
        ca_file = os.environ.get("SLURMRESTD_CA", "")
        return cls(
            urls,
            token=token if token is not None else tokens.from_environment(),
            api=api,
            tls=Tls(ca_file=ca_file) if ca_file else None,
        )

    async def __aenter__(self) -> Self:
        transport = Transport(
            self._urls,
            self._token_source,
            self.tls,
            connections=self.connections,
            timeout_s=self.timeout_s,
            user_agent=self.user_agent,
            most_bytes=self.most_bytes,
        )
        caller = Caller(
            transport,
            connections=self.connections,
            attempts=self.attempts,
            versions=self._versions,
            observe=reporting(self.on_call),
        )
        self._open = Speaker(caller=caller, user="")
        return self

    async def __aexit__(
        self,
        _: type[BaseException] | None,
        __: BaseException | None,
        ___: TracebackType | None,
    ) -> None:
        await self.speaker.caller.transport.close()

    def as_user(self, user: str) -> Self:
        """Return a client that acts as another user, by name or uid, over the same connections.

        The token must be root's or SlurmUser's.
        """
        other = copy.copy(self)
        for name in tuple(vars(other)):
            if isinstance(getattr(Client, name, None), cached_property):
                delattr(other, name)  # it acts as this client's user
        mine = self.speaker
        other._open = Speaker(  # noqa: SLF001  # of the same class
            caller=mine.caller, user=user, on_write=mine.on_write
        )
        return other

    @property
    def speaker(self) -> Speaker:
        """The speaker that the resources perform operations with; raises RuntimeError if the client is not open."""
        if self._open is None:
            raise RuntimeError("the client is not open: use it as `async with Client(…) as slurm`")
        return self._open

    @cached_property
    def jobs(self) -> Jobs:
        """The jobs that slurmctld knows."""
        return Jobs(self.speaker)

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes."""
        return Nodes(self.speaker)

    @cached_property
    def partitions(self) -> Partitions:
        """The partitions."""
        return Partitions(self.speaker)

    @cached_property
    def reservations(self) -> Reservations:
        """The reservations."""
        return Reservations(self.speaker)

    @cached_property
    def licenses(self) -> Licenses:
        """The licenses."""
        return Licenses(self.speaker)

    @cached_property
    def shares(self) -> Shares:
        """The fair-share tree."""
        return Shares(self.speaker)

    @cached_property
    def db(self) -> Database:
        """The records of slurmdbd."""
        return Database(self.speaker)

    @cached_property
    def raw(self) -> Raw:
        """All operations of slurmrestd, JSON in and out."""
        return Raw(self.speaker.raw)

    async def dialect(self) -> Dialect:
        """Return the version of the API in use, slurmrestd's release, and the cluster's name."""
        return await self.speaker.caller.dialect()

    async def user(self) -> str:
        """Return the user that calls act as, of `as_user` or else of the token; "" if the token names none."""
        return self.speaker.user or await self.speaker.caller.transport.user()

    async def ping(self) -> Listing[ControllerPing]:
        """Return which controllers respond; this works even if none does."""
        return await self.speaker.read_all("slurm_get_ping", "pings", ControllerPing)

    async def diag(self) -> Statistics:
        """Read slurmctld's statistics (sdiag(1))."""
        return await self.speaker.read_field("slurm_get_diag", "statistics", Statistics)

    async def conf(self) -> Config:
        """Read the configuration in force (slurm.conf(5)); needs v0.0.45."""
        return await self.speaker.read_field("slurm_get_conf", "slurm_conf", Config)

    async def resources(self, job_id: str | int) -> Listing[NodeResources]:
        """Read the resources of a running job on each of its nodes; needs v0.0.44.

        Returns:
            For each node: cores, memory in MiB, GPUs by index.

        Raises:
            NotFound: If there is no such job.
        """
        return await self.speaker.read_all(
            "slurm_get_resources", "nodes", NodeResources, {"job_id": job_id}
        )

    async def reconfigure(self) -> Outcome:
        """Make all daemons read slurm.conf again (`scontrol reconfigure`)."""
        _, outcome = await self.speaker.write("slurm_get_reconfigure")
        return outcome


def _versions(api: str | Sequence[str]) -> Sequence[int]:
    if api == _AUTO:
        return VERSIONS
    known = {parser(version): version for version in VERSIONS}
    chosen = (api,) if isinstance(api, str) else tuple(api)
    if not chosen or not known.keys() >= set(chosen):
        raise ValueError(f"api: expected {_AUTO} or one of {', '.join(known)}, got {api!r}")
    return [known[version] for version in chosen]
