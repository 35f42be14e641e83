"""A source of short tokens, signed with the key of a Controller's Slurm; another key is noticed when a token is refused."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from slurmclient.errors import Unauthorized
from slurmclient.transport import jwt
from slurmruntime.process.clock import Clock
from slurmruntime.values.errors import PeerError
from slurmruntime.values.faults import Refused

USER: Final = "root"
"""Slurm's uid 0 may do anything in every Slurm, whatever SlurmUser is called there."""
LIFETIME_S: Final = 600
_RENEWED_AT: Final = 0.8
"""The share of its lifetime after which a token is replaced."""

ReadKey = Callable[[], Awaitable[bytes | Refused]]


class SignedToken:
    """Signs a token when one is needed, and keeps it until shortly before it ends."""

    def __init__(self, read_key: ReadKey, clock: Clock) -> None:
        """read_key: reads the key anew; raises PeerError."""
        self._read_key = read_key
        self._clock = clock
        self._text = ""
        self._signing = asyncio.Lock()
        self.expires_at: datetime | None = None
        """When the token that was signed last ends; None before the first one."""

    async def token(self, *, refused: str = "") -> str:
        """Return a token; another one than was refused, if the key has changed since.

        Raises:
            Unauthorized: there is no key, or it could not be read.
        """
        async with self._signing:
            now = self._clock.now()
            is_refused = bool(refused) and self._text == refused
            if self._text and not is_refused and self._left(now) > (1 - _RENEWED_AT) * LIFETIME_S:
                return self._text
            try:
                key = await self._read_key()
            except PeerError as error:
                if self._text and not is_refused and self._left(now) > 0:
                    return self._text
                raise Unauthorized(
                    "token", f"the key that signs it was not read: {error}"
                ) from error
            if isinstance(key, Refused):
                raise Unauthorized("token", key.text)
            now_s = int(now.timestamp())
            self._text = jwt.mint(key, user=USER, now_s=now_s, lifetime_s=LIFETIME_S)
            self.expires_at = now + timedelta(seconds=LIFETIME_S)
            return self._text

    def _left(self, now: datetime) -> float:
        return (self.expires_at - now).total_seconds() if self.expires_at else 0.0
