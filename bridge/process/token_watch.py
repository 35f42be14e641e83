"""Warns before the Slurm token ends: whoever renews it should hear of it days before Slurm refuses us."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from bridge.process import liveness
from bridge.process.clock import Clock

_EVERY_S = 3600.0

_log = structlog.get_logger(__name__)


class TokenWatch:
    """Looks at the token's end once an hour."""

    def __init__(
        self,
        expires_at: Callable[[], datetime | None],
        *,
        warning: timedelta,
        file: str,
        clock: Clock,
    ) -> None:
        """expires_at: of the token in the file of the moment; None: it does not say, or there is none."""
        self._expires_at = expires_at
        self._warning = warning
        self._file = file
        self._clock = clock

    async def run(self, stop: asyncio.Event) -> None:
        """Look until told to stop."""
        await liveness.run("token", self._look_forever(), stop)

    async def _look_forever(self) -> None:
        while True:
            self.look()
            liveness.turned(_EVERY_S)
            await self._clock.sleep(_EVERY_S)

    def look(self) -> None:
        """Log how things are, if somebody has to know."""
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
