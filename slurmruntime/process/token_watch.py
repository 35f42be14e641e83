"""Warn days before the Slurm token expires, so that it is renewed before Slurm rejects it."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock

_EVERY_S = 3600.0

_log = structlog.get_logger(__name__)


async def run(
    expires_at: Callable[[], datetime | None],
    *,
    warning: timedelta,
    file: str,
    clock: Clock,
    stop: asyncio.Event,
) -> None:
    """Check hourly until `stop` is set; for the arguments see `check`."""

    async def check_forever() -> None:
        while True:
            check(expires_at(), clock.now(), warning=warning, file=file)
            liveness.turned(_EVERY_S)
            await clock.sleep(_EVERY_S)

    await liveness.run("token", check_forever(), stop)


def check(ends_at: datetime | None, now: datetime, *, warning: timedelta, file: str) -> None:
    """Log if the token has expired or expires soon.

    Args:
        ends_at: when it expires; None if it does not say, or if there is no token.
        file: the token's file, for the log.
    """
    if ends_at is None:
        return
    left = ends_at - now
    if left <= timedelta():
        _log.error("slurm_token.ended", at=ends_at.isoformat(), renew=file)
    elif left <= warning:
        hours = int(left / timedelta(hours=1))
        _log.warning("slurm_token.ends", at=ends_at.isoformat(), in_hours=hours, renew=file)
