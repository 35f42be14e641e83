"""TLS towards slurmrestd or a proxy in front of it: trusted CAs and our client certificate."""

import contextlib
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

RELOAD_AFTER_S: Final = 60.0


class UnusableTls(Exception):
    """The CA, certificate or key cannot be used; the message names the files."""


class ClientTls:
    """TLS context that follows its files: they may be renewed, and a CA may be removed.

    They are reloaded when a connection fails, and once a minute.
    """

    def __init__(
        self,
        *,
        ca_file: str = "",
        cert_file: str = "",
        key_file: str = "",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load the files; each is PEM, or "" if there is none.

        Args:
            ca_file: the CAs to trust; "": the system's CAs.
            cert_file: our certificate chain, for a server that requests one.
            key_file: its unencrypted key.
            monotonic: seconds.

        Raises:
            UnusableTls: the files cannot be used.
        """
        self._ca_file = ca_file
        self._pair = (cert_file, key_file) if cert_file else None
        self._monotonic = monotonic
        self._loaded_at = monotonic()
        try:
            self._files = self._content()
            self._context = self._made()
        except (OSError, ssl.SSLError) as error:
            raise UnusableTls(
                f"TLS towards slurmrestd: expected a CA in {ca_file or '(the system)'} and"
                f" certificate and key, PEM, not encrypted, in {cert_file or '(none)'} and"
                f" {key_file or '(none)'}: {error}"
            ) from error

    @property
    def context(self) -> ssl.SSLContext:
        """The context for new connections."""
        if self._monotonic() - self._loaded_at >= RELOAD_AFTER_S:
            self.reload()
        return self._context

    def reload(self) -> None:
        """Reload the files for future connections; keep the old ones if they cannot be used."""
        self._loaded_at = self._monotonic()
        with contextlib.suppress(OSError, ssl.SSLError):
            if (found := self._content()) != self._files:
                self._context = self._made()
                self._files = found

    def _content(self) -> tuple[bytes, ...]:
        names = (self._ca_file, *(self._pair or ()))
        return tuple(Path(name).read_bytes() for name in names if name)

    def _made(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._ca_file or None)
        # On by default since Python 3.13. Other software has no such check, so CAs may lack the
        # key identifier it requires.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self._pair:
            context.load_cert_chain(*self._pair, password=lambda: "")
        return context
