"""The tokens by which slurmctld's scripts prove who they are."""

import hmac
from pathlib import Path

SHORTEST = 32
"""Characters; `openssl rand -hex 32` makes 64."""

_LONGEST_FILE_BYTES = 4096
_SCHEME = "Bearer "


class Tokens:
    """The tokens in a file, one per line: two while one replaces the other.

    The file is read at every request, so a mounted Secret may change.
    """

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    def fault(self) -> str | None:
        """Return why no request can be admitted, for a health check; None if the file has a token."""
        try:
            return (
                None
                if self._read()
                else f"{self._file}: no token of at least {SHORTEST} characters"
            )
        except (OSError, ValueError) as error:
            return f"{self._file}: {error}"

    def admits(self, authorization: str) -> bool:
        """Check an Authorization header; none is admitted while the file cannot be read."""
        if not authorization.startswith(_SCHEME):
            return False
        token = authorization.removeprefix(_SCHEME).strip().encode()
        try:
            tokens = self._read()
        except (OSError, ValueError):
            return False
        return any(hmac.compare_digest(token, known) for known in tokens)

    def _read(self) -> list[bytes]:
        with self._file.open("rb") as file:
            text = file.read(_LONGEST_FILE_BYTES + 1)
        if len(text) > _LONGEST_FILE_BYTES:
            raise ValueError(f"longer than {_LONGEST_FILE_BYTES} bytes")
        return [token for line in text.splitlines() if len(token := line.strip()) >= SHORTEST]
