"""TLS towards slurmrestd, or the proxy before it: whom to trust, and who we say we are."""

import contextlib
import ssl


class UnusableTls(Exception):
    """The CA, certificate or key cannot be used; the message names the files."""


class Tls:
    """A context whose files are read again when a connection cannot be made: somebody may have renewed them."""

    def __init__(self, *, ca_file: str = "", cert_file: str = "", key_file: str = "") -> None:
        """Read the files for the first time; each is PEM, and "" where there is none.

        Args:
            ca_file: Whom to trust; "": the system's CAs.
            cert_file: Our own chain, for a server that asks for one.
            key_file: Its key, not encrypted.

        Raises:
            UnusableTls: they make no sense.
        """
        self._ca_file = ca_file
        self._pair = (cert_file, key_file) if cert_file else None
        try:
            self.context = ssl.create_default_context(cafile=ca_file or None)
            # On by default since Python 3.13: it refuses CAs that omit a key identifier.
            self.context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            self._load()
        except (OSError, ssl.SSLError) as error:
            raise UnusableTls(
                f"TLS towards slurmrestd: expected a CA in {ca_file or '(the system)'} and certificate and key, PEM, not"
                f" encrypted, in {cert_file or '(none)'} and {key_file or '(none)'}: {error}"
            ) from error

    def reload(self) -> None:
        """Use what the files say now for connections to come; what cannot be used leaves it as it was."""
        with contextlib.suppress(OSError, ssl.SSLError):
            self._load()

    def _load(self) -> None:
        if self._ca_file:
            self.context.load_verify_locations(self._ca_file)
        if self._pair:
            self.context.load_cert_chain(*self._pair, password=lambda: "")
