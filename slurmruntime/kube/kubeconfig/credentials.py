"""Address of the API server and our credentials, from a kubeconfig or a service account.

This module keeps fresh what `slurmruntime.kube.kubeconfig.kubeconfig` reads. Bound service account tokens live for
an hour and are replaced on disk, as are the files named by a kubeconfig's `tokenFile`; exec plugins
issue short-lived tokens. All are reloaded once a minute, and immediately after a 401. So are the
cluster's CA and our client certificate, for new connections.
"""

import contextlib
import os
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Self

from slurmruntime.kube.errors import ConfigurationError
from slurmruntime.kube.kubeconfig import kubeconfig as files
from slurmruntime.kube.kubeconfig.kubeconfig import Connection, NotPlain, Pem, Unloadable

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder with token and ca.crt, written by the kubelet;
<https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/>."""

_RELOAD_AFTER_S = 60.0


class Credentials:
    """The API server's address, the TLS context and the current Authorization header."""

    def __init__(
        self,
        connection: Connection,
        reload: Callable[[], Awaitable[Connection]],
        monotonic: Callable[[], float],
    ) -> None:
        self.connection = connection
        self._reload = reload
        self._monotonic = monotonic
        self._loaded_at = monotonic()
        self.tls = _context(connection)
        """The TLS context for new connections."""
        self._tls_of = connection

    @classmethod
    async def load(
        cls,
        kubeconfig: str,
        *,
        service_account: Path = SERVICE_ACCOUNT,
        environ: Mapping[str, str] = os.environ,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Read a kubeconfig, "" for the service account's files; raise ConfigurationError if invalid."""
        reload = (
            partial(_of_file, kubeconfig)
            if kubeconfig
            else partial(_of_service_account, service_account, environ)
        )
        try:
            connection = await reload()
        except Unloadable as error:
            where = (
                f"kubeconfig {kubeconfig}" if kubeconfig else f"service account {service_account}"
            )
            raise ConfigurationError(
                f"{where}: {error}: expected a readable kubeconfig in"
                ' kubernetes.kubeconfig, or "" there when running in a pod with a service account'
            ) from error
        return cls(connection, reload, monotonic)

    async def authorization(self) -> str:
        """Return the Authorization header; "" if the client certificate authenticates us."""
        if self._monotonic() - self._loaded_at >= _RELOAD_AFTER_S:
            return await self.renewed()
        return self.connection.authorization

    async def renewed(self) -> str:
        """Reload everything and return the header; what cannot be reloaded stays in use."""
        self._loaded_at = self._monotonic()
        try:
            self.connection = await self._reload()
            if _of_tls(self.connection) != _of_tls(self._tls_of):
                # Trust and present what the files contain now, and no CA that was removed from them.
                self.tls = _context(self.connection)
                self._tls_of = self.connection
        except (Unloadable, ConfigurationError) as error:
            import structlog  # noqa: PLC0415  # it brings rich and pygments, 0.1 s of every command

            _log = structlog.get_logger()
            _log.warning(
                "credentials.reload_failed", server=self.connection.server, error=str(error)
            )
        return self.connection.authorization


async def _of_file(path: str) -> Connection:
    try:
        return files.read(path)
    except NotPlain:
        from slurmruntime.kube.kubeconfig import any_kubeconfig  # noqa: PLC0415  # expensive, and rarely needed

        return await any_kubeconfig.read(path)


async def _of_service_account(folder: Path, environ: Mapping[str, str]) -> Connection:
    return files.of_service_account(folder, environ)


def _of_tls(connection: Connection) -> tuple[object, ...]:
    return connection.ca, connection.certificate, connection.key, connection.verifies


def _context(connection: Connection) -> ssl.SSLContext:
    try:
        with (
            _file(connection.ca) as ca,
            _file(connection.certificate) as certificate,
            _file(connection.key) as key,
        ):
            context = ssl.create_default_context(cafile=ca)
            if certificate:
                context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"certificates for {connection.server}: {error}: expected PEM files"
            f" in {_place(connection.ca)} and {_place(connection.certificate)}"
        ) from error
    # On by default since Python 3.13. Go has no such check, so cluster CAs may lack the key
    # identifier it requires.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # Nor does Go take a common name for a server's: many CAs let those who ask choose it.
    context.hostname_checks_common_name = False
    if not connection.verifies:  # insecure-skip-tls-verify
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@contextlib.contextmanager
def _file(pem: Pem | None) -> Iterator[str | None]:
    """Yield the name of a file with this content; one that only we can read if it comes from the kubeconfig."""
    if pem is None or pem.file:
        yield pem.file if pem else None
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(pem.content)
        file.flush()
        yield file.name


def _place(pem: Pem | None) -> str:
    if pem is None:
        return "(nothing)"
    return pem.file or "the kubeconfig"
