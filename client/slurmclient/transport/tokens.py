"""Where the token of a request comes from: Slurm's JSON web tokens (slurm.schedmd.com/jwt.html).

A source is asked before each request, and once more with the token that Slurm has refused: a source that then has another
one gives the request a second try.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from slurmclient.errors import Unauthorized
from slurmclient.transport.jwt import expires_at, mint

_COMMAND_TIMEOUT_S: Final = 30.0


_RENEWED_AT: Final = 0.8
"""Of a token's life: by then there is a new one, whatever the clocks say."""


_ASSUMED_LIFETIME_S: Final = 60.0
"""Of a token that does not say when it ends."""


class TokenSource(Protocol):
    """Gives the token to send."""

    async def token(self, *, refused: str = "") -> str:
        """Return a token; if one was refused, another one if there is any by now.

        Raises:
            Unauthorized: there is none.
        """
        ...


class Token:
    """One that does not change."""

    def __init__(self, text: str) -> None:
        """text: the token, with or without `SLURM_JWT=` before it, as `scontrol token` prints it."""
        self._text = bare(text)

    async def token(self, *, refused: str = "") -> str:  # noqa: ARG002  # there is no other one
        """Return it."""
        return self._text


class TokenFile:
    """A file that somebody else renews; it is read again whenever it changes, and at once after a refusal."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._text = ""
        self._version: tuple[int, int, int] | None = None

    async def token(self, *, refused: str = "") -> str:
        """Return what the file holds."""
        try:
            status = self._path.stat()
            version = (status.st_ino, status.st_mtime_ns, status.st_size)
            if refused or version != self._version:
                self._text = bare(self._path.read_text(encoding="ascii"))
                self._version = version
        except (OSError, UnicodeDecodeError) as error:
            raise Unauthorized("token", f"cannot read {self._path}: {error}") from error
        if not self._text:
            raise Unauthorized("token", f"{self._path} is empty, a Slurm JWT is expected")
        return self._text


class TokenCommand:
    """A command that prints a token, as `scontrol token lifespan=3600`; run again when the token nears its end."""

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
        """Return the last one printed, or run the command."""
        async with self._running:
            if self._text == refused or self._clock() >= self._renew_at:
                self._text = bare(await self._run())
                now = self._clock()
                end = expires_at(self._text) or now + _ASSUMED_LIFETIME_S
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
            raise Unauthorized("token", f"{self._command[0]} gave no token: {error!r}") from error
        text = printed.decode(errors="replace").strip()
        if process.returncode or not text:
            said = complaint.decode(errors="replace").strip()[-300:]
            raise Unauthorized(
                "token", f"{self._command[0]} gave no token, exit code {process.returncode}: {said}"
            )
        return text


class JwtKey:
    """The cluster's own key (`jwt_key=` of AuthAltParameters): mints a token for any user, and renews it."""

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
            key: The key, or the file that holds it.
            user: Whose tokens; only root's and SlurmUser's may act as others.
            lifetime_s: Of each token.
            clock: Seconds since 1970; Slurm's clock decides what has expired.
        """
        self._key = key
        self._user = user
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._text = ""
        self._renew_at = 0.0

    async def token(self, *, refused: str = "") -> str:
        """Return the one of the moment, or mint one."""
        now = self._clock()
        if self._text == refused or now >= self._renew_at:
            try:
                key = self._key.read_bytes() if isinstance(self._key, Path) else self._key
            except OSError as error:
                raise Unauthorized("token", f"cannot read Slurm's key: {error}") from error
            self._text = mint(key, user=self._user, now_s=int(now), lifetime_s=self._lifetime_s)
            self._renew_at = now + self._lifetime_s * _RENEWED_AT
        return self._text


def source(token: "str | TokenSource | None") -> TokenSource | None:
    """Take a plain string for a token."""
    return Token(token) if isinstance(token, str) else token


def bare(text: str) -> str:
    """Strip what `scontrol token` prints before a token."""
    return text.strip().removeprefix("SLURM_JWT=")


def from_environment() -> TokenSource | None:
    """Return the token in SLURM_JWT, or the file that SLURM_JWT_FILE names; None if neither is set."""
    if text := os.environ.get("SLURM_JWT"):
        return Token(text)
    path = os.environ.get("SLURM_JWT_FILE")
    return TokenFile(path) if path else None
