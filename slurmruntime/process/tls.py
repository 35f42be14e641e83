"""TLS of a server, with certificates that are replaced while it runs.

Mounted Secrets are replaced while we run and send no reliable file events, so their contents are
polled every second. A new pair is served as soon as it parses and the key matches; until then the
old one is. Open connections are not affected.
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

from slurmruntime.process.clock import pause

_log = structlog.get_logger(__name__)

POLL_S = 1.0
"""Cheap, three small reads; short enough even for certificates that live for minutes."""


class Unusable(Exception):
    """A certificate, key or CA cannot be used; the message names the files and the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Material:
    """The contents of the files at one moment."""

    chain: bytes
    key: bytes
    client_ca: bytes

    @property
    def digest(self) -> bytes:
        """A value that changes whenever the files do."""
        parts = (self.chain, self.key, self.client_ca)
        return b"".join(hashlib.sha256(part).digest() for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServingContext:
    """The TLS context made from one state of the files."""

    context: ssl.SSLContext
    expires_at: datetime


class ServerTls:
    """The certificate a server presents, and the clients it accepts."""

    def __init__(self, cert_file: str, key_file: str, client_ca_file: str | None = None) -> None:
        """Load the files, all of them PEM.

        Args:
            cert_file: The chain, the server's own certificate first.
            key_file: Its private key, not encrypted.
            client_ca_file: If set and not "", clients must present a certificate signed by this CA.

        Raises:
            Unusable: the files cannot be used.
        """
        self._cert_file = Path(cert_file)
        self._key_file = Path(key_file)
        self._client_ca_file = Path(client_ca_file) if client_ca_file else None
        material = self._read()
        self._served = self._load(material)
        self._seen = material.digest
        self.context = self._front()
        """The context to pass to the server."""

    @property
    def expires_at(self) -> datetime:
        """When the certificate being served expires."""
        return self._served.expires_at

    def fault(self, now: datetime) -> str | None:
        """Return what is wrong with the certificate, for a health check; None if nothing is."""
        if now < self.expires_at:
            return None
        return f"the certificate in {self._cert_file} expired at {self.expires_at.isoformat()}"

    async def run(self, stop: asyncio.Event) -> None:
        """Poll the files until `stop` is set."""
        while not stop.is_set():
            await pause(POLL_S, stop)
            self.reload()

    def reload(self) -> None:
        """Serve the files' current contents if they have changed and can be used."""
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
        """Return a context without a certificate; each handshake switches to the current one.

        A context in use could load a new chain, but it would continue to trust a removed client CA,
        and a pair that does not match would leave it without a key.
        """

        def choose(connection: ssl.SSLObject, _name: str | None, _front: ssl.SSLContext) -> None:
            connection.context = self._served.context

        front = _new_context(has_client_ca=self._client_ca_file is not None)
        front.sni_callback = choose  # also called for clients that send no server name
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

    def _load(self, material: _Material) -> _ServingContext:
        context = _new_context(has_client_ca=self._client_ca_file is not None)
        try:
            with _as_file(material.key + b"\n" + material.chain) as path:
                context.load_cert_chain(path, password=lambda: "")
            expires_at = x509.load_pem_x509_certificate(material.chain).not_valid_after_utc
        except (ssl.SSLError, ValueError) as error:
            raise Unusable(
                f"{self._cert_file} and {self._key_file} are not a matching certificate chain and key"
                f" (PEM, not encrypted): {error}"
            ) from error
        try:
            if self._client_ca_file:
                context.load_verify_locations(cadata=material.client_ca.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise Unusable(f"{self._client_ca_file} contains no CA certificate: {error}") from error
        return _ServingContext(context=context, expires_at=expires_at)


def _new_context(*, has_client_ca: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if has_client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        # A resumed session would not be checked against a CA that has changed since.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Yield the name of an in-memory file: the ssl module requires files, and those on disk may change while it reads."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
