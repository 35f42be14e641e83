"""TLS to slurmrestd or to a proxy in front of it: the CAs to trust, and our certificate."""

import contextlib
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

RELOAD_AFTER_S: Final = 60.0


class UnusableTls(Exception):
    """The CA, certificate or key cannot be used; the message names the files."""


class Tls:
    """A TLS context that follows its files: they may be renewed, and a CA may be removed.

    The files are read again when a connection fails, and once a minute.
    """

    def __init__(
        self,
        *,
        ca_file: str = "",
        ca_data: str = "",
        cert_file: str = "",
        key_file: str = "",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load the files, all of them PEM.

        Args:
            ca_file: The CAs to trust; "" for the system's.
            ca_data: The CAs themselves instead of a file.
            cert_file: The certificate chain to present to a server that asks for one; "" for none.
            key_file: The certificate's key, not encrypted.

        Raises:
            UnusableTls: If a file cannot be read, or a certificate does not match its key.
        """
        self._ca_file = ca_file
        self._ca_data = ca_data
        self._pair = (cert_file, key_file) if cert_file else None
        self._monotonic = monotonic
        self._loaded_at = monotonic()
        try:
            self._files = self._content()
            # Loading the system's CAs takes 20 ms, which plain HTTP does not need.
            self._context = self._create_context() if self._files or ca_data else None
        except (OSError, ssl.SSLError) as error:
            raise UnusableTls(
                f"TLS towards slurmrestd: expected a CA in {ca_file or ('(given)' if ca_data else '(the system)')} and"
                f" certificate and key, PEM, not encrypted, in {cert_file or '(none)'} and"
                f" {key_file or '(none)'}: {error}"
            ) from error

    @property
    def context(self) -> ssl.SSLContext:
        """The context for new connections; a new one once the files have changed."""
        if self._monotonic() - self._loaded_at >= RELOAD_AFTER_S:
            self.reload()
        if self._context is None:
            self._context = self._create_context()
        return self._context

    def reload(self) -> None:
        """Read the files again for future connections; keep the old ones if that fails."""
        self._loaded_at = self._monotonic()
        with contextlib.suppress(OSError, ssl.SSLError):
            if (content := self._content()) != self._files:
                self._context = self._create_context()
                self._files = content

    def _content(self) -> tuple[bytes, ...]:
        names = (self._ca_file, *(self._pair or ()))
        return tuple(Path(name).read_bytes() for name in names if name)

    def _create_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(
            cafile=self._ca_file or None, cadata=self._ca_data or None
        )
        # Python 3.13 turned it on by default; it rejects CAs without a key identifier.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self._pair:
            context.load_cert_chain(*self._pair, password=lambda: "")
        return context
