"""Warn days before the Slurm token expires, so that it is renewed before Slurm rejects it."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock

_EVERY_S = 3600.0

_log = structlog.get_logger(__name__)


class TokenWatch:
    """Checks the token's expiry once an hour."""

    def __init__(
        self,
        expires_at: Callable[[], datetime | None],
        *,
        warning: timedelta,
        file: str,
        clock: Clock,
    ) -> None:
        """Prepare the watch.

        Args:
            expires_at: returns when the current token expires; None if it does not say, or if there
                is no token.
            warning: how long before that to warn.
            file: the token's file, for the log.
        """
        self._expires_at = expires_at
        self._warning = warning
        self._file = file
        self._clock = clock

    async def run(self, stop: asyncio.Event) -> None:
        """Check hourly until `stop` is set."""
        await liveness.run("token", self._check_forever(), stop)

    async def _check_forever(self) -> None:
        while True:
            self.check()
            liveness.turned(_EVERY_S)
            await self._clock.sleep(_EVERY_S)

    def check(self) -> None:
        """Log if the token has expired or expires soon."""
        ends_at = self._expires_at()
        if ends_at is None:
            return
        left = ends_at - self._clock.now()
        if left <= timedelta():
            _log.error("slurm_token.ended", at=ends_at.isoformat(), renew=self._file)
        elif left <= self._warning:
            hours = int(left / timedelta(hours=1))
            _log.warning(
                "slurm_token.ends", at=ends_at.isoformat(), in_hours=hours, renew=self._file
            )
