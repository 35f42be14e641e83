"""Negotiating the API version with slurmrestd."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Raw, Struct

from slurmclient.api.operation import parser
from slurmclient.calls import answers
from slurmclient.errors import TooOld
from slurmclient.transport.exchange import OK, Request
from slurmclient.transport.failover import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The API version in use, and who speaks it."""

    version: int
    """The version's last number: 45 is v0.0.45."""
    release: str
    """slurmrestd's release, such as 26.05.5."""
    cluster: str
    """The name of the cluster."""


class _Slurm(Struct, frozen=True):
    release: str = ""
    cluster: str = ""


class _Meta(Struct, frozen=True):
    slurm: _Slurm = _Slurm()


class _Ping(Struct, frozen=True):
    meta: _Meta = _Meta()


class _Paths(Struct, frozen=True):
    paths: dict[str, Raw]


async def negotiate(transport: Transport, versions: Sequence[int]) -> Dialect:
    """Return the first of these versions that slurmrestd answers a ping in.

    Args:
        transport: Sends the pings.
        versions: The versions to try, the preferred one first.

    Raises:
        TooOld: If slurmrestd speaks none of them; the message says which ones it offers.
        SlurmError: If it refuses the ping, or does not answer.
    """
    for version in versions:
        path = f"/slurm/{parser(version)}/ping/"
        ping = Request(operation="slurm_get_ping", method="GET", path=path)
        reply = await transport.exchange(ping)
        if not reply.is_unknown_path:
            if reply.status != OK:
                answers.refuse(ping.operation, reply)
            slurm = answers.parsed(ping.operation, reply.body, _Ping).meta.slurm
            return Dialect(version=version, release=slurm.release, cluster=slurm.cluster)
    offered = await _offered(transport)
    raise TooOld(
        "slurm_get_ping",
        f"slurmrestd offers {', '.join(sorted(offered)) or 'no Slurm API'}; expected one of"
        f" {', '.join(map(parser, versions))}",
    )


async def _offered(transport: Transport) -> set[str]:
    """Return the API versions in slurmrestd's own specification."""
    question = Request(operation="openapi", method="GET", path="/openapi/v3")
    reply = await transport.exchange(question)
    if reply.status != OK:
        answers.refuse(question.operation, reply)
    paths = answers.parsed(question.operation, reply.body, _Paths).paths
    return {path.split("/")[2] for path in paths if path.startswith("/slurm/v")}
