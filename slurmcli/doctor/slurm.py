"""Gather the Slurm facts for `doctor`; reads only."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bridge.domain.observation import clocks
from bridge.slurm import nodes
from slurmcli.doctor.checks.slurm import Host, SlurmFacts, Trouble
from slurmclient.errors import SlurmError, TooOld, Unauthorized, Unavailable
from slurmclient.transport.jwt import expires_at
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.slurm import inspection
from slurmruntime.slurm.client import SlurmClient


async def examine(
    client: SlurmClient | None,
    *,
    url: str,
    token: str,
    hosts: Sequence[Host] | None,
    partition: str,
    has_gpus: bool,
    now: Callable[[], datetime],
) -> tuple[SlurmFacts, Sequence[SlurmNodeFacts] | None]:
    """Examine Slurm and list its nodes; the nodes are None if it does not answer."""
    facts = SlurmFacts(
        url=url,
        hosts=hosts,
        now=now(),
        token_expires_at=expires_at(token),
        partition=partition,
        has_gpus=has_gpus,
        trouble=Trouble.NOT_SET,
        words="give --slurm-url and --slurm-token-file, or SLURMRESTD_URL and SLURM_JWT",
    )
    if client is None:
        return facts, None
    try:
        release = (await client.dialect()).release_number
        facts = replace(facts, trouble=None, words="", release=release)
        # A ping succeeds with any token; a request that slurmctld itself answers proves that the
        # token is good.
        asked = now()
        at_s = await inspection.time_s(client)
        answered = now()
        slurm_nodes = await nodes.listing(client)
        return replace(
            facts,
            skew_s=None
            if at_s is None
            else clocks.skew_s(datetime.fromtimestamp(at_s, UTC), asked=asked, answered=answered),
            partitions=await inspection.partitions(client),
            slurm_nodes=len(slurm_nodes),
            qos=await inspection.qos(client),
            conf=await inspection.conf(client),
        ), slurm_nodes
    except Unavailable as error:
        if facts.trouble is None and not await _controller_responds(client):
            return replace(facts, controller_responds=False), None
        return _with_trouble(facts, error), None
    except SlurmError as error:
        return _with_trouble(facts, error), None


async def _controller_responds(client: SlurmClient) -> bool:
    try:
        return await inspection.controller_responds(client)
    except SlurmError:
        return True  # slurmrestd is the one that fails


def _with_trouble(facts: SlurmFacts, error: SlurmError) -> SlurmFacts:
    match error:
        case Unauthorized():
            trouble = Trouble.REFUSED
        case TooOld():
            trouble = Trouble.TOO_OLD
        case _:
            trouble = Trouble.UNREACHABLE
    return replace(facts, trouble=trouble, words=str(error))
