"""Warn before the Slurm token expires, so that it is renewed before Slurm rejects it."""

import asyncio
from datetime import datetime, timedelta

import structlog

from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock
from slurmruntime.slurm.client import ExpiringToken

_EVERY_S = 3600.0
_WARNING = timedelta(days=3)
"""A weekend and a day, in which somebody renews it."""
_WARNED_SHARE = 0.25
"""Or the last quarter of its lifetime, if that is less: who renews one of two hours every hour is not warned."""

_log = structlog.get_logger(__name__)


async def run(token: ExpiringToken, *, file: str, clock: Clock, stop: asyncio.Event) -> None:
    """Check hourly until `stop` is set; file: the token's, for the log."""

    async def check_forever() -> None:
        while True:
            check(token, clock.now(), file=file)
            liveness.turned(_EVERY_S)
            await clock.sleep(_EVERY_S)

    await liveness.run("token", check_forever(), stop)


def check(token: ExpiringToken, now: datetime, *, file: str) -> None:
    """Log if the token has expired or expires soon."""
    ends_at = token.expires_at
    if ends_at is None:
        return
    left = ends_at - now
    if left <= timedelta():
        _log.error("slurm_token.ended", at=ends_at.isoformat(), renew=file)
    elif left <= _warned_for(token.issued_at, ends_at):
        hours = int(left / timedelta(hours=1))
        _log.warning("slurm_token.ends", at=ends_at.isoformat(), in_hours=hours, renew=file)


def _warned_for(issued_at: datetime | None, ends_at: datetime) -> timedelta:
    """Return how long before its end a token should be renewed."""
    return min(_WARNING, _WARNED_SHARE * (ends_at - issued_at)) if issued_at else _WARNING
