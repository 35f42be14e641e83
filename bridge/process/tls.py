"""The TLS side of a server: certificates that are replaced while it runs.

Mounted Secrets are replaced under our feet and send no reliable file events, so their contents are looked at every few
seconds. A new pair is served as soon as it parses and the key fits; until then the old one is. Connections that are open
stay as they are.
"""

import asyncio
import hashlib
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog
from cryptography import x509

from bridge.process.clock import pause

_log = structlog.get_logger(__name__)

POLL_S = 1.0
"""Three small reads, so that certificates of minutes can be told from those of months by their dates alone."""


class Unusable(Exception):
    """A certificate, key or CA that cannot be served; the message names the files and what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Material:
    """What the files say at one moment."""

    chain: bytes
    key: bytes
    client_ca: bytes

    @property
    def digest(self) -> bytes:
        """Tells one state of the files from another."""
        parts = (self.chain, self.key, self.client_ca)
        return b"".join(hashlib.sha256(part).digest() for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """What one state of the files amounts to."""

    context: ssl.SSLContext
    expires_at: datetime


class ServerTls:
    """What a server shows its clients, and which clients it lets in."""

    def __init__(self, cert_file: str, key_file: str, client_ca_file: str | None = None) -> None:
        """Read the files for the first time.

        Args:
            cert_file: The chain, PEM, the server's own certificate first.
            key_file: Its private key, PEM, not encrypted.
            client_ca_file: If given (and not ""), clients must show a certificate that this CA signed (PEM).

        Raises:
            Unusable: they cannot be served.
        """
        self._cert_file = Path(cert_file)
        self._key_file = Path(key_file)
        self._client_ca_file = Path(client_ca_file) if client_ca_file else None
        material = self._read()
        self._served = self._load(material)
        self._seen = material.digest
        self.context = self._front()
        """Give this to the server."""

    @property
    def expires_at(self) -> datetime:
        """When the certificate that is served now ends."""
        return self._served.expires_at

    def fault(self, now: datetime) -> str | None:
        """What is wrong with it, for a health check; None if nothing is."""
        if now < self.expires_at:
            return None
        return f"the certificate in {self._cert_file} ended at {self.expires_at.isoformat()}"

    async def run(self, stop: asyncio.Event) -> None:
        """Look at the files from time to time until told to stop."""
        while not stop.is_set():
            await pause(POLL_S, stop)
            self.reload()

    def reload(self) -> None:
        """Serve what the files say now, if it has changed and can be served."""
        try:
            material = self._read()
            if material.digest == self._seen:
                return
            self._seen = material.digest
            self._served = self._load(material)
        except Unusable as error:
            _log.error("tls.reload_refused", error=str(error), still_until=str(self.expires_at))
        else:
            _log.info("tls.reloaded", cert_file=str(self._cert_file), until=str(self.expires_at))

    def _front(self) -> ssl.SSLContext:
        """A context without a certificate, which each handshake leaves for the one of the moment.

        A context in use could be given a new chain, but it would go on trusting a client CA that was taken away, and a
        pair that does not fit would leave it without a key.
        """

        def choose(connection: ssl.SSLObject, _name: str | None, _front: ssl.SSLContext) -> None:
            connection.context = self._served.context

        front = _new_context(has_client_ca=self._client_ca_file is not None)
        front.sni_callback = choose  # called for clients that name no server, too
        return front

    def _read(self) -> _Material:
        try:
            return _Material(
                chain=self._cert_file.read_bytes(),
                key=self._key_file.read_bytes(),
                client_ca=self._client_ca_file.read_bytes() if self._client_ca_file else b"",
            )
        except OSError as error:
            raise Unusable(f"{error.filename}: {error.strerror}") from error

    def _load(self, material: _Material) -> _Served:
        context = _new_context(has_client_ca=self._client_ca_file is not None)
        try:
            with _as_file(material.key + b"\n" + material.chain) as path:
                context.load_cert_chain(path, password=lambda: "")
            expires_at = x509.load_pem_x509_certificate(material.chain).not_valid_after_utc
        except (ssl.SSLError, ValueError) as error:
            raise Unusable(
                f"{self._cert_file} and {self._key_file} are no pair of a certificate chain and its key "
                f"(PEM, not encrypted): {error}"
            ) from error
        try:
            if self._client_ca_file:
                context.load_verify_locations(cadata=material.client_ca.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise Unusable(f"{self._client_ca_file} holds no CA certificate: {error}") from error
        return _Served(context=context, expires_at=expires_at)


def _new_context(*, has_client_ca: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if has_client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        # a resumed session would not be checked against a CA that has changed since
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """The name of a file in memory: the ssl module wants files, and those on disk may change while it reads."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
