"""Sign short-lived tokens with the key of a Controller's Slurm; a new key is noticed when a token is refused."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from slurmclient.errors import Unauthorized
from slurmclient.transport import jwt
from slurmruntime.process.clock import Clock
from slurmruntime.values.errors import PEER_ERRORS
from slurmruntime.values.faults import Refusal

USER: Final = "root"
"""Slurm's uid 0 may do anything in every Slurm, whatever SlurmUser is called there."""
LIFETIME_S: Final = 600
_RENEWED_AT: Final = 0.8
"""The fraction of its lifetime after which a token is replaced."""

ReadKey = Callable[[], Awaitable[bytes]]


class TokenSigner:
    """Signs a token when one is needed, and reuses it until shortly before it expires."""

    def __init__(self, read_key: ReadKey, clock: Clock) -> None:
        """read_key: reads the key, without a cache; raises Refusal, PeerError."""
        self._read_key = read_key
        self._clock = clock
        self._text = ""
        self._signing = asyncio.Lock()
        self.expires_at: datetime | None = None
        """When the last token expires; None before the first one."""

    @property
    def issued_at(self) -> datetime | None:
        """When the last token was signed; None before the first one."""
        return self.expires_at - timedelta(seconds=LIFETIME_S) if self.expires_at else None

    async def token(self, *, refused: str = "") -> str:
        """Return a token, after a refusal a new one if the key has changed; raise Unauthorized without a key."""
        async with self._signing:
            now = self._clock.now()
            is_refused = bool(refused) and self._text == refused
            if self._text and not is_refused and self._left(now) > (1 - _RENEWED_AT) * LIFETIME_S:
                return self._text
            try:
                key = await self._read_key()
            except Refusal as refusal:
                raise Unauthorized("token", refusal.text) from refusal
            except PEER_ERRORS as error:
                if self._text and not is_refused and self._left(now) > 0:
                    return self._text
                raise Unauthorized(
                    "token", f"cannot read the key that signs it: {error}"
                ) from error
            now_s = int(now.timestamp())
            self._text = jwt.mint(key, user=USER, now_s=now_s, lifetime_s=LIFETIME_S)
            self.expires_at = now + timedelta(seconds=LIFETIME_S)
            return self._text

    def _left(self, now: datetime) -> float:
        return (self.expires_at - now).total_seconds() if self.expires_at else 0.0
