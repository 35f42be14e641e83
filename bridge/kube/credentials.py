"""Address of the API server and our credentials, from a kubeconfig or a service account.

kubernetes_asyncio reads them; this module keeps them fresh. Bound service account tokens live for
an hour and are replaced on disk, as are the files named by a kubeconfig's `tokenFile`; exec plugins
issue short-lived tokens. All are reloaded once a minute, and immediately after a 401. So are the
cluster's CA and our client certificate, for new connections.
"""

import os
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Self

import structlog
import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, load_kube_config
from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader

from bridge.kube.errors import ConfigurationError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder with token and ca.crt, written by the kubelet;
<https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/>."""

_RELOAD_AFTER_S = 60.0
# The loader does not validate shapes: malformed input surfaces as whatever Python raises.
_LOADER_ERRORS = (
    ConfigException,
    yaml.YAMLError,
    OSError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)

_log = structlog.get_logger()


class Credentials:
    """The API server's address, the TLS context and the current Authorization header."""

    def __init__(
        self,
        configuration: Configuration,
        reload: Callable[[], Awaitable[None]],
        monotonic: Callable[[], float],
    ) -> None:
        self._configuration = configuration
        self._reload = reload
        self._monotonic = monotonic
        self._loaded_at = monotonic()
        self.tls = self._context()
        """The TLS context for new connections."""
        self._files = self._content()

    @classmethod
    async def load(
        cls,
        kubeconfig: str,
        *,
        service_account: Path = SERVICE_ACCOUNT,
        environ: Mapping[str, str] = os.environ,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Read a kubeconfig, or the service account's files if `kubeconfig` is "".

        Raises:
            ConfigurationError: they are missing or invalid.
        """
        configuration = Configuration()
        try:
            if kubeconfig:
                reload = await _from_file(kubeconfig, configuration)
            else:
                reload = await _from_service_account(service_account, environ, configuration)
        except _LOADER_ERRORS as error:
            where = (
                f"kubeconfig {kubeconfig}" if kubeconfig else f"service account {service_account}"
            )
            raise ConfigurationError(
                f"{where}: {type(error).__name__}: {error}: expected a readable kubeconfig in"
                ' kubernetes.kubeconfig, or "" there when running in a pod with a service account'
            ) from error
        return cls(configuration, reload, monotonic)

    @property
    def server(self) -> str:
        """`https://host:port`, without a trailing slash."""
        return str(self._configuration.host).rstrip("/")

    @property
    def server_name(self) -> str | None:
        """Name expected in the server's certificate (`tls-server-name`); None: the host."""
        return self._configuration.tls_server_name

    @property
    def proxy(self) -> str | None:
        """Proxy to use (`proxy-url`); None: connect directly."""
        return self._configuration.proxy

    async def authorization(self) -> str:
        """Return the Authorization header; "" if the client certificate authenticates us."""
        if self._monotonic() - self._loaded_at >= _RELOAD_AFTER_S:
            return await self.renewed()
        return self._header()

    async def renewed(self) -> str:
        """Reload everything and return the header; what cannot be reloaded stays as it was."""
        self._loaded_at = self._monotonic()
        try:
            await self._reload()
            self._renew_tls()
        except (*_LOADER_ERRORS, ConfigurationError) as error:
            _log.warning("credentials.reload_failed", server=self.server, error=str(error))
        return self._header()

    def _header(self) -> str:
        return str(self._configuration.api_key.get("BearerToken", "")).strip()

    def _renew_tls(self) -> None:
        """Trust and present what the files contain now; a CA that has left them loses our trust.

        Raises:
            OSError: a file cannot be read.
            ConfigurationError: it contains no certificate or key.
        """
        if (found := self._content()) != self._files:
            self.tls = self._context()
            self._files = found

    def _content(self) -> tuple[bytes, ...]:
        names = self._configuration
        files = (names.ssl_ca_cert, names.cert_file, names.key_file)
        return tuple(Path(name).read_bytes() if name else b"" for name in files)

    def _context(self) -> ssl.SSLContext:
        """Return a TLS context with the cluster's CA and the client certificate, if any.

        Raises:
            ConfigurationError: a certificate or key cannot be read.
        """
        configuration = self._configuration
        try:
            context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
            if configuration.cert_file:
                context.load_cert_chain(configuration.cert_file, configuration.key_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(
                f"certificates for {self.server}: {error}: expected PEM files in"
                f" {configuration.ssl_ca_cert}"
                f" and {configuration.cert_file or '(no client certificate)'}"
            ) from error
        # On by default since Python 3.13. Go has no such check, so cluster CAs may lack the key
        # identifier it requires.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not configuration.verify_ssl:  # insecure-skip-tls-verify
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


async def _from_file(path: str, configuration: Configuration) -> Callable[[], Awaitable[None]]:
    _must_exist(Path(path))

    async def reload() -> None:
        await load_kube_config(
            config_file=path, client_configuration=configuration, persist_config=False
        )

    await reload()
    return reload


def _must_exist(path: Path) -> None:
    """Raise if the file is missing; the loader would only log a warning and continue empty."""
    path.stat()


async def _from_service_account(
    folder: Path, environ: Mapping[str, str], configuration: Configuration
) -> Callable[[], Awaitable[None]]:
    async def reload() -> None:
        InClusterConfigLoader(
            token_filename=str(folder / "token"),
            cert_filename=str(folder / "ca.crt"),
            try_refresh_token=False,
            environ=dict(environ),
        ).load_and_set(configuration)

    await reload()
    return reload
