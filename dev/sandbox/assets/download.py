"""HTTP downloads that either deliver the expected bytes or fail with a clear message."""

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from sandbox.assets.errors import FetchError

TIMEOUT_S = 30
PAUSES_S = (1.0, 2.0, 4.0)
"""Pauses between attempts."""
ATTEMPTS = len(PAUSES_S) + 1
FINAL = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE}
)
"""Statuses that another attempt does not change."""


@dataclass(frozen=True, slots=True)
class Web:
    """Fetches over HTTP, through the given proxies."""

    opener: urllib.request.OpenerDirector
    pauses_s: tuple[float, ...] = PAUSES_S

    def get(self, url: str, *, sha256: str = "", attempts: int = ATTEMPTS) -> bytes:
        """Return the body.

        Raises:
            FetchError: no answer, an error status, or bytes that do not match `sha256`.
        """
        for pause_s in self.pauses_s[: attempts - 1]:
            try:
                return self._once(url, sha256)
            except _Passing:
                time.sleep(pause_s)
        return self._once(url, sha256)

    def _once(self, url: str, sha256: str) -> bytes:
        try:
            with self.opener.open(url, timeout=TIMEOUT_S) as response:
                data: bytes = response.read()
        except urllib.error.HTTPError as error:
            kind = FetchError if error.code in FINAL else _Passing
            raise kind(f"{url}: {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise _Passing(f"{url}: {reason}") from error
        digest = hashlib.sha256(data).hexdigest()
        if sha256 and digest != sha256:
            raise _Passing(f"{url}: SHA256 is {digest}, expected {sha256}")
        return data


def web(proxies: Mapping[str, str], pauses_s: tuple[float, ...] = PAUSES_S) -> Web:
    """Return a Web with these proxies (scheme -> URL, "" for none).

    Other schemes use the environment's.
    """
    known = {**urllib.request.getproxies(), **proxies}
    handler = urllib.request.ProxyHandler({scheme: url for scheme, url in known.items() if url})
    return Web(urllib.request.build_opener(handler), pauses_s)


class _Passing(FetchError):
    """A failure that may be temporary; `get` tries again."""
