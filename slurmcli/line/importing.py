"""Import what a command needs for less: nearly all that a short command costs is importing."""

import contextlib
import gc
import os
from collections.abc import Iterator

_OF_THE_SYSTEM = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where OpenSSL finds the CAs of the system; <https://docs.openssl.org/master/man3/SSL_CTX_load_verify_locations/>."""


@contextlib.contextmanager
def cheaply() -> Iterator[None]:
    """Import without what is in vain: looking for garbage, and reading the CAs of the system.

    aiohttp makes TLS contexts of its own when it is imported, with all these CAs. Each client of
    ours brings another context, so aiohttp's may trust nobody. What has been imported stays to the
    end: it is not looked through for garbage later, either.
    """
    before = {name: os.environ.get(name) for name in _OF_THE_SYSTEM}
    os.environ.update(dict.fromkeys(_OF_THE_SYSTEM, os.devnull))
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
