"""TLS to slurmrestd or to a proxy in front of it."""

import contextlib
import ssl


class UnusableTls(Exception):
    """The CA, certificate or key cannot be used; the message names the files."""


class Tls:
    """A TLS context whose files are read again after a failed connection, as they may be renewed."""

    def __init__(self, *, ca_file: str = "", cert_file: str = "", key_file: str = "") -> None:
        """Load the files, all of them PEM.

        Args:
            ca_file: The CAs to trust; "" for the system's.
            cert_file: The certificate chain to present to a server that asks for one; "" for none.
            key_file: The certificate's key, not encrypted.

        Raises:
            UnusableTls: If a file cannot be read, or a certificate does not match its key.
        """
        self._ca_file = ca_file
        self._pair = (cert_file, key_file) if cert_file else None
        try:
            self.context = ssl.create_default_context(cafile=ca_file or None)
            # Python 3.13 turned it on by default; it rejects CAs without a key identifier.
            self.context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            self._load()
        except (OSError, ssl.SSLError) as error:
            raise UnusableTls(
                f"TLS to slurmrestd: expected a CA in {ca_file or '(the system)'}, a certificate in"
                f" {cert_file or '(none)'} and its unencrypted key in {key_file or '(none)'}, all"
                f" PEM: {error}"
            ) from error

    def reload(self) -> None:
        """Load the files again for future connections; keep the old ones if that fails."""
        with contextlib.suppress(OSError, ssl.SSLError):
            self._load()

    def _load(self) -> None:
        if self._ca_file:
            self.context.load_verify_locations(self._ca_file)
        if self._pair:
            self.context.load_cert_chain(*self._pair, password=lambda: "")
