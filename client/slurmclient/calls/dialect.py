"""Negotiating the API version with slurmrestd."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Raw, Struct

from slurmclient.api.operation import parser
from slurmclient.calls import answers
from slurmclient.calls.answers import A
from slurmclient.errors import Malformed, TooOld, Unavailable
from slurmclient.transport.exchange import OK, Reply, Request
from slurmclient.transport.failover import Sender
from slurmclient.wire.reading import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The API version in use, and the server that speaks it."""

    version: int
    """The version's last number: 45 is v0.0.45."""
    release: str
    """slurmrestd's release, such as 26.05.5; slurmctld's is the same or newer."""
    release_number: tuple[int, int]
    """The first two parts of the release: (26, 5)."""
    cluster: str
    """The name of the cluster."""


class _Version(Struct, frozen=True):
    major: Annotated[str, Meta(pattern="^[0-9]{1,4}$")]
    minor: Annotated[str, Meta(pattern="^[0-9]{1,4}$")]


class _Slurm(Struct, frozen=True):
    version: _Version
    release: str = ""
    cluster: str = ""


class _Meta(Struct, frozen=True):
    slurm: _Slurm


class _Ping(Answer, frozen=True, kw_only=True):
    meta: _Meta


class _Paths(Answer, frozen=True, kw_only=True):
    paths: dict[str, Raw]


async def negotiate(transport: Sender, versions: Sequence[int]) -> Dialect:
    """Return the first of these versions, the preferred one first, in which slurmrestd answers a ping.

    Raises:
        TooOld: If slurmrestd speaks none of them; the message lists those it offers.
        SlurmError: If it refuses the ping, or does not answer.
    """
    for version in versions:
        path = f"/slurm/{parser(version)}/ping/"
        ping = Request(operation="slurm_get_ping", method="GET", path=path, is_resent=True)
        reply = await transport.exchange(ping)
        if not reply.is_unknown_path:
            slurm = _answer(transport, ping.operation, reply, _Ping).meta.slurm
            number = int(slurm.version.major), int(slurm.version.minor)
            return Dialect(
                version=version,
                release=slurm.release or f"{number[0]}.{number[1]:02}",
                release_number=number,
                cluster=slurm.cluster,
            )
    offered = await _offered(transport)
    raise TooOld(
        "slurm_get_ping",
        f"slurmrestd offers {', '.join(sorted(offered)) or 'no Slurm API'}; expected one of"
        f" {', '.join(map(parser, versions))}",
    )


async def _offered(transport: Sender) -> set[str]:
    question = Request(operation="openapi", method="GET", path="/openapi/v3", is_resent=True)
    reply = await transport.exchange(question)
    paths = _answer(transport, question.operation, reply, _Paths).paths
    return {path.split("/")[2] for path in paths if path.startswith("/slurm/v")}


def _answer(transport: Sender, operation: str, reply: Reply, kind: type[A]) -> A:
    try:
        if reply.status != OK:
            answers.refuse(operation, reply)
        return answers.decode(operation, reply.body, kind)
    except (Unavailable, Malformed):
        transport.avoid(reply.server)
        raise
