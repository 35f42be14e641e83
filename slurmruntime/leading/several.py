"""Leadership under several leases at once: one process does the work of several programs.

A process that leads under two leases never works beside one that has only one of them, such as an
older release's, or a replica that is configured differently during an upgrade. So it

- takes the leases one after another, always in the same order: two such processes cannot each hold
  what the other waits for;
- works while it holds all of them, and counts as a leader in the metrics only then;
- stops when it loses any, and releases none of them: a write of the interrupted work may be in
  flight, and the next leader must know.

Each lease is led by `lease.lead`, the later ones within the earlier ones, so everything documented
there about clocks, deadlines and lost replies applies here.
"""

import asyncio
from collections.abc import Sequence

import structlog

from slurmruntime.leading import lease
from slurmruntime.leading.lease import Accession, Body, Candidate
from slurmruntime.process.metrics import Metrics

_log = structlog.get_logger(__name__)


class _Lost(Exception):
    """A later lease was lost; raised through the earlier ones, so that they are left to expire."""


async def lead(
    candidate: Candidate,
    names: Sequence[str],
    *,
    stop: asyncio.Event,
    metrics: Metrics,
    on_lead: Body,
) -> bool:
    """Wait for the leases, in this order, then run `on_lead` while we hold all of them; lead once.

    Return True at `stop`, or after `on_lead` has ended by itself: all leases are then released.
    Return False after any was lost. The work gets the worst of the accessions.
    """

    async def lead_under(remaining: Sequence[str], so_far: Sequence[Accession]) -> bool:
        if not remaining:
            with lease.recorded_in(metrics, *names):
                await on_lead(stop, worst(so_far))
            return True
        if so_far:
            _log.info("lease.waits_for_next", lease=remaining[0], identity=candidate.identity)

        async def body(_stop: asyncio.Event, accession: Accession) -> None:
            if not await lead_under(remaining[1:], (*so_far, accession)):
                raise _Lost(remaining[1])

        return await lease.lead(candidate, remaining[0], stop=stop, metrics=None, on_lead=body)

    try:
        return await lead_under(names, ())
    except* _Lost:
        pass
    return stop.is_set()


def worst(accessions: Sequence[Accession]) -> Accession:
    """Return the accession that assumes the most left in flight."""
    return Accession.SEIZED if Accession.SEIZED in accessions else Accession.ORDERLY
