"""The tokens by which slurmctld's scripts prove who they are."""

import hmac
from pathlib import Path

SHORTEST = 32
"""Characters; `openssl rand -hex 32` makes 64."""

_LONGEST_FILE_BYTES = 4096
_SCHEME = "Bearer "


class Tokens:
    """A file with one token per line: a second one while it is replaced.

    It is read at every request, so that a mounted Secret may change.
    """

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    def fault(self) -> str | None:
        """Return why nobody can be let in, for a health check; None if somebody can."""
        try:
            return None if self._read() else f"{self._file}: no token of {SHORTEST} characters"
        except (OSError, ValueError) as error:
            return f"{self._file}: {error}"

    def admits(self, authorization: str) -> bool:
        """Check an Authorization header; nobody is admitted while the file cannot be read."""
        if not authorization.startswith(_SCHEME):
            return False
        shown = authorization.removeprefix(_SCHEME).strip().encode()
        try:
            known = self._read()
        except (OSError, ValueError):
            return False
        return any(hmac.compare_digest(shown, each) for each in known)

    def _read(self) -> list[bytes]:
        with self._file.open("rb") as file:
            text = file.read(_LONGEST_FILE_BYTES + 1)
        if len(text) > _LONGEST_FILE_BYTES:
            raise ValueError(f"longer than {_LONGEST_FILE_BYTES} bytes")
        return [
            line for splitline in text.splitlines() if len(line := splitline.strip()) >= SHORTEST
        ]
