"""Quick probes of a starting server; every error means no."""

import http.client
import socket
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

_TIMEOUT_S = 2.0


def listens(port: int) -> bool:
    """Check whether something accepts connections on this loopback port."""
    with socket.socket() as sock:
        sock.settimeout(_TIMEOUT_S)
        return sock.connect_ex(("127.0.0.1", port)) == 0


def says_yes(
    url: str, *, headers: Mapping[str, str] | None = None, context: ssl.SSLContext | None = None
) -> bool:
    """Check whether GET answers 2xx."""
    parts = urlsplit(url)
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(parts.netloc, timeout=_TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(parts.netloc, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}".rstrip("?"), headers=headers or {})
        return connection.getresponse().status // 100 == 2  # noqa: PLR2004  # any 2xx
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
