"""TLS towards slurmrestd or a proxy in front of it: trusted CAs and our client certificate."""

import contextlib
import ssl


class UnusableTls(Exception):
    """The CA, certificate or key cannot be used; the message names the files."""


class ClientTls:
    """TLS context whose files are reloaded when a connection fails: they may have been renewed."""

    def __init__(self, *, ca_file: str = "", cert_file: str = "", key_file: str = "") -> None:
        """Load the files; each is PEM, or "" if there is none.

        Args:
            ca_file: the CAs to trust; "": the system's CAs.
            cert_file: our certificate chain, for a server that requests one.
            key_file: its unencrypted key.

        Raises:
            UnusableTls: the files cannot be used.
        """
        self._ca_file = ca_file
        self._pair = (cert_file, key_file) if cert_file else None
        try:
            self.context = ssl.create_default_context(cafile=ca_file or None)
            # On by default since Python 3.13. Other software has no such check, so CAs may lack the
            # key identifier it requires.
            self.context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            self._load()
        except (OSError, ssl.SSLError) as error:
            raise UnusableTls(
                f"TLS towards slurmrestd: expected a CA in {ca_file or '(the system)'} and"
                f" certificate and key, PEM, not encrypted, in {cert_file or '(none)'} and"
                f" {key_file or '(none)'}: {error}"
            ) from error

    def reload(self) -> None:
        """Reload the files for future connections; keep the old ones if they cannot be used.

        A CA removed from its file stays trusted until the process restarts.
        """
        with contextlib.suppress(OSError, ssl.SSLError):
            self._load()

    def _load(self) -> None:
        if self._ca_file:
            self.context.load_verify_locations(self._ca_file)
        if self._pair:
            self.context.load_cert_chain(*self._pair, password=lambda: "")
