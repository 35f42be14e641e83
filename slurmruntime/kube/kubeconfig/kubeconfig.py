"""Read how to reach the API server: from a kubeconfig, or from a pod's service account.

Certificates and tokens, in the kubeconfig or in files, are all that is read here. Anything else
in a kubeconfig is left to `slurmruntime.kube.kubeconfig.any_kubeconfig`, which is expensive to import.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from slurmruntime.model.objects import JsonDict, JsonObject

_CLUSTER = frozenset(
    {
        "server",
        "certificate-authority",
        "certificate-authority-data",
        "insecure-skip-tls-verify",
        "tls-server-name",
        "proxy-url",
    }
)
_USER = frozenset(
    {
        "token",
        "tokenFile",
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
    }
)
_IGNORED = frozenset({"extensions"})

SAFE: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader where PyYAML has it: a tenth of the time, which every command spends twice."""

Section = JsonObject
"""A cluster, user or context, as written in the file."""


class NotPlain(Exception):
    """The kubeconfig contains something else, or a fault: let kubernetes_asyncio read it or name the fault."""


class Unloadable(Exception):
    """The credentials are missing or invalid; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Pem:
    """Certificates or a key, and the file they come from; "" if they are in the kubeconfig itself."""

    content: bytes
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Address of the API server, and our credentials."""

    server: str
    """`https://host:port`, without a trailing slash."""
    authorization: str = ""
    """The header; "" if there is none."""
    ca: Pem | None = None
    """None: the CAs of the system."""
    certificate: Pem | None = None
    key: Pem | None = None
    verifies: bool = True
    server_name: str | None = None
    """Expected in the server's certificate; None: the host."""
    proxy: str | None = None


def read(path: str) -> Connection:
    """Read the cluster and the user of the current context; raise NotPlain to let kubernetes_asyncio do it."""
    try:
        config = _loaded(path)
        context = _named(config, "context", config["current-context"])
        cluster = _known(_named(config, "cluster", context["cluster"]), _CLUSTER)
        user = _known(_named(config, "user", context["user"]), _USER)
        return _connection(cluster, user, Path(path).absolute().parent)
    except (OSError, LookupError, TypeError, ValueError, yaml.YAMLError, binascii.Error) as error:
        raise NotPlain(f"{type(error).__name__}: {error}") from error


def of_service_account(folder: Path, environ: Mapping[str, str]) -> Connection:
    """Read the files that the kubelet puts into a pod; raise Unloadable if they are missing or empty."""
    try:
        host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
        token, ca = (folder / "token").read_text().strip(), (folder / "ca.crt").read_bytes()
    except (OSError, LookupError, ValueError) as error:
        raise Unloadable(f"{type(error).__name__}: {error}") from error
    if not (host and port and token and ca):
        raise Unloadable(
            "KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT, token or ca.crt is empty"
        )
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        authorization=f"Bearer {token}",
        ca=Pem(ca, str(folder / "ca.crt")),
    )


def namespace(path: str) -> str:
    """Return the namespace of the current context; "" if none is given or readable."""
    try:
        config = _loaded(path)
        context = _named(config, "context", config["current-context"])
    except (OSError, LookupError, TypeError, ValueError, NotPlain, yaml.YAMLError):
        return ""
    return str(context.get("namespace") or "")


def _loaded(path: str) -> JsonDict:
    config = yaml.load(Path(path).read_bytes(), Loader=SAFE)  # noqa: S506  # it is
    if not isinstance(config, dict):
        raise NotPlain("not a mapping")
    return config


def _named(config: Section, kind: str, name: object) -> Section:
    (section,) = (entry[kind] for entry in config[f"{kind}s"] if entry["name"] == name)
    if not isinstance(section, dict):
        raise NotPlain(f"{kind} {name} is not a mapping")
    return section


def _known(section: Section, keys: frozenset[str]) -> Section:
    """Return a section that contains nothing but these keys, each with a value."""
    if others := section.keys() - keys - _IGNORED:
        raise NotPlain(f"it contains {', '.join(map(str, others))}")
    for key in section.keys() & keys:
        expected = bool if key == "insecure-skip-tls-verify" else str
        if not isinstance(section[key], expected) or section[key] == "":
            raise NotPlain(f"{key} is {section[key]!r}")
    return section


def _connection(cluster: Section, user: Section, folder: Path) -> Connection:
    server = cluster["server"].rstrip("/")
    is_https = server.startswith("https")
    token = user.get("token")
    if token is None and (file := user.get("tokenFile")):
        token = _path(file, folder).read_text()
    return Connection(
        server=server,
        authorization=f"Bearer {token}".strip() if token else "",
        ca=_pem(cluster, "certificate-authority", folder) if is_https else None,
        certificate=_pem(user, "client-certificate", folder) if is_https else None,
        key=_pem(user, "client-key", folder) if is_https else None,
        verifies=not cluster.get("insecure-skip-tls-verify"),
        server_name=cluster.get("tls-server-name"),
        proxy=cluster.get("proxy-url"),
    )


def _pem(section: Section, key: str, folder: Path) -> Pem | None:
    """Return the content from the kubeconfig, or else from a file; None if neither is given."""
    if (data := section.get(f"{key}-data")) is not None:
        return Pem(base64.standard_b64decode(data))
    if (file := section.get(key)) is None:
        return None
    path = _path(file, folder)
    return Pem(path.read_bytes(), str(path))


def _path(file: str, folder: Path) -> Path:
    return Path(os.path.normpath(folder / file))
