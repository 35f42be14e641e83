"""The token sent with every request: a Slurm JWT in a file that is renewed externally."""

import base64
import binascii
import json
from datetime import UTC, datetime
from pathlib import Path

from bridge.slurm.errors import Unauthorized


class TokenFile:
    """Rereads the file whenever it changes, and immediately after Slurm has rejected the token."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = ""
        self._version: tuple[int, int, int] | None = None

    def read(self, *, again: bool = False) -> str:
        """Return the token; `again` reads the file even if it looks unchanged.

        Raises:
            Unauthorized: the file cannot be read or is empty.
        """
        try:
            status = self._path.stat()
            version = (status.st_ino, status.st_mtime_ns, status.st_size)
            if again or version != self._version:
                self._token = self._path.read_text(encoding="ascii").strip()
                self._version = version
        except (OSError, UnicodeDecodeError) as error:
            raise Unauthorized("token.read", f"cannot read {self._path}: {error}") from error
        if not self._token:
            raise Unauthorized("token.read", f"{self._path} is empty, a Slurm JWT is expected")
        return self._token

    @property
    def expires_at(self) -> datetime | None:
        """When the current token expires; None if it does not say, or there is no token."""
        try:
            return expires_at(self.read())
        except Unauthorized:
            return None


def expires_at(token: str) -> datetime | None:
    """Return a JWT's `exp` claim (RFC 7519); None if it has none or is not a JWT."""
    try:
        _, claims, _ = token.split(".")
        padded = claims + "=" * (-len(claims) % 4)
        return datetime.fromtimestamp(int(json.loads(base64.urlsafe_b64decode(padded))["exp"]), UTC)
    except (
        ValueError,
        KeyError,
        TypeError,
        OverflowError,
        OSError,
        RecursionError,
        binascii.Error,
    ):
        return None
