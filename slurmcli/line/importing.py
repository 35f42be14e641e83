"""Make imports cheaper: they are nearly all that a short command costs."""

import contextlib
import gc
import os
from collections.abc import Iterator

_OF_THE_SYSTEM = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where OpenSSL finds the CAs of the system; <https://docs.openssl.org/master/man3/SSL_CTX_load_verify_locations/>."""


@contextlib.contextmanager
def cheaply() -> Iterator[None]:
    """Import without two needless costs: collecting garbage, and reading the CAs of the system.

    aiohttp creates TLS contexts with all these CAs when it is imported. Our clients bring their own
    contexts, so aiohttp's need no CAs. Imported modules live until the end, so they are frozen: later
    garbage collections skip them, too.
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
