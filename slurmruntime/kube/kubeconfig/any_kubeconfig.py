"""Read any kubeconfig (plug-ins, OIDC, …) with kubernetes_asyncio.

Import this module only where it is needed: the library imports every model of the API, which takes
more CPU and memory than all the rest of a command.
"""

from pathlib import Path

import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, load_kube_config

from slurmruntime.kube.kubeconfig.kubeconfig import Connection, Pem, Unloadable

# The loader does not validate shapes: malformed input surfaces as whatever Python raises.
_ERRORS = (
    ConfigException,
    yaml.YAMLError,
    OSError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


async def read(path: str) -> Connection:
    """Read the cluster and the user of the current context; run its plug-in, if it names one.

    Raises:
        Unloadable: the kubeconfig is missing or invalid.
    """
    loaded = Configuration()
    try:
        _must_exist(Path(path))
        await load_kube_config(config_file=path, client_configuration=loaded, persist_config=False)
        return Connection(
            server=str(loaded.host).rstrip("/"),
            authorization=str(loaded.api_key.get("BearerToken", "")).strip(),
            ca=_pem(loaded.ssl_ca_cert),
            certificate=_pem(loaded.cert_file),
            key=_pem(loaded.key_file),
            verifies=bool(loaded.verify_ssl),
            server_name=loaded.tls_server_name,
            proxy=loaded.proxy,
        )
    except _ERRORS as error:
        raise Unloadable(f"{type(error).__name__}: {error}") from error


def _must_exist(path: Path) -> None:
    """Raise if the file is missing; the loader would only log a warning and continue empty."""
    path.stat()


def _pem(file: str | None) -> Pem | None:
    return Pem(Path(file).read_bytes(), file) if file else None
