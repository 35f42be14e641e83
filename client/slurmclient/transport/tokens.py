"""Sources of tokens: a constant, a file, a command, the cluster's own key.

A source is asked for a token before each request. If Slurm refuses the token, the source is
asked for another one; if it has one, the request is repeated once.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from slurmclient.errors import Unauthorized
from slurmclient.transport.jwt import expires_at, issued_at, mint

_COMMAND_TIMEOUT_S: Final = 30.0
_RENEWED_AT: Final = 0.8
"""Fraction of a token's lifetime after which to renew it; leaves room for clock skew."""
_ASSUMED_LIFETIME_S: Final = 60.0
"""The lifetime of a token without an `exp` claim."""


_FORM: Final = re.compile(r"[!-~]+")


def check_token(text: str) -> str:
    """Return a token that an HTTP header can hold; raise Unauthorized, without repeating it, for another."""
    if _FORM.fullmatch(text) is None:
        raise Unauthorized(
            "token",
            "the token contains blanks or control characters; expected a Slurm JWT: one line of letters, digits, dots, - and _",
        )
    return text


class TokenSource(Protocol):
    """Provides the token to send."""

    async def token(self, *, refused: str = "") -> str:
        """Return a token.

        Args:
            refused: The token that Slurm has just refused; return another one if possible.

        Raises:
            Unauthorized: If there is no token.
        """


class Token:
    """A token that does not change."""

    def __init__(self, text: str) -> None:
        """Take a token; the prefix `SLURM_JWT=`, as `scontrol token` prints it, is stripped."""
        self._text = bare(text)

    async def token(self, *, refused: str = "") -> str:  # noqa: ARG002  # there is no other
        """Return the token."""
        return self._text


class TokenFile:
    """A token in a file that another program renews; read again when it changes or is refused."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._text = ""
        self._version: tuple[int, int, int] | None = None

    async def token(self, *, refused: str = "") -> str:
        """Return the token in the file; raise Unauthorized if it cannot be read, or is empty."""
        return self._read(again=bool(refused))

    @property
    def expires_at(self) -> datetime | None:
        """When the token in the file expires; None if it has no expiry, or there is no token."""
        try:
            return expires_at(self._read(again=False))
        except Unauthorized:
            return None

    @property
    def issued_at(self) -> datetime | None:
        """When the token in the file was issued; None if it does not say, or there is no token."""
        try:
            return issued_at(self._read(again=False))
        except Unauthorized:
            return None

    def _read(self, *, again: bool) -> str:
        try:
            status = self._path.stat()
            version = (status.st_ino, status.st_mtime_ns, status.st_size)
            if again or version != self._version:
                self._text = bare(self._path.read_text(encoding="ascii"))
                self._version = version
        except (OSError, UnicodeDecodeError) as error:
            raise Unauthorized("token", f"cannot read {self._path}: {error}") from error
        if not self._text:
            raise Unauthorized("token", f"{self._path} is empty; expected a Slurm JWT")
        return self._text


class TokenCommand:
    """A token that a command prints, such as `scontrol token lifespan=3600`.

    The command runs again at 80 % of the token's lifetime, and when Slurm refuses the token. It may
    take 30 s.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        clock: Callable[[], float] = time.time,  # noqa: TID251  # the default clock of a library
    ) -> None:
        self._command = tuple(command)
        self._clock = clock
        self._text = ""
        self._renew_at = 0.0
        self._running = asyncio.Lock()

    async def token(self, *, refused: str = "") -> str:
        """Return the token printed last, or run the command; raise Unauthorized if it fails or takes too long."""
        async with self._running:
            if self._text == refused or self._clock() >= self._renew_at:
                self._text = bare(await self._run())
                now = self._clock()
                expiry = expires_at(self._text)
                end = expiry.timestamp() if expiry else now + _ASSUMED_LIFETIME_S
                self._renew_at = now + (end - now) * _RENEWED_AT
            return self._text

    async def _run(self) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
            )
            try:
                async with asyncio.timeout(_COMMAND_TIMEOUT_S):
                    printed, complaint = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        except OSError as error:  # TimeoutError is one
            raise Unauthorized(
                "token", f"{self._command[0]} printed no token: {error!r}"
            ) from error
        text = printed.decode(errors="replace").strip()
        if process.returncode or not text:
            message = complaint.decode(errors="replace").strip()[-300:]
            raise Unauthorized(
                "token",
                f"{self._command[0]} printed no token, exit code {process.returncode}: {message}",
            )
        return text


class JwtKey:
    """The cluster's own key (`jwt_key` in AuthAltParameters), which mints tokens for any user."""

    def __init__(
        self,
        key: bytes | Path,
        *,
        user: str = "root",
        lifetime_s: int = 600,
        clock: Callable[[], float] = time.time,  # noqa: TID251  # the default clock of a library
    ) -> None:
        """Mint nothing yet.

        Args:
            key: The key, or the path of its file.
            user: The tokens' user. Only tokens of root and SlurmUser can act as other users.
            lifetime_s: The lifetime of a token; it is renewed at 80 % of it.
            clock: Returns seconds since 1970. Slurm judges expiry by its own clock.
        """
        self._key = key
        self._user = user
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._text = ""
        self._renew_at = 0.0

    async def token(self, *, refused: str = "") -> str:
        """Return the current token, or mint one; raise Unauthorized if the key's file cannot be read."""
        now = self._clock()
        if self._text == refused or now >= self._renew_at:
            try:
                key = self._key.read_bytes() if isinstance(self._key, Path) else self._key
            except OSError as error:
                raise Unauthorized("token", f"cannot read Slurm's key: {error}") from error
            self._text = mint(key, user=self._user, now_s=int(now), lifetime_s=self._lifetime_s)
            self._renew_at = now + self._lifetime_s * _RENEWED_AT
        return self._text


def bare(text: str) -> str:
    """Strip white space and the prefix that `scontrol token` prints."""
    return text.strip().removeprefix("SLURM_JWT=")


def from_environment() -> TokenSource | None:
    """Return the token in SLURM_JWT or in the file named by SLURM_JWT_FILE; None if neither is set."""
    if text := os.environ.get("SLURM_JWT"):
        return Token(text)
    path = os.environ.get("SLURM_JWT_FILE")
    return TokenFile(path) if path else None
