"""Reads a web configuration file: the YAML format of Prometheus' exporter-toolkit, and `bearer_token_file`.

<https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md>. A field that is not
supported is refused, never ignored: somebody relies on it. So is whatever would leave the door open by
mistake: an empty file, an empty section, a list of users without users.
"""

import re
import ssl
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import UNSET, Struct, UnsetType

LONGEST_BYTES: Final = 2**20
"""Certificates may be written into the file."""
MOST_BRACKETS: Final = 64
"""A file has a handful of lists; the time that YAML takes grows with the square of how many are open at once."""

_BCRYPT: Final = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
_COSTS: Final = range(4, 17)
"""Cost 16 takes some five seconds."""

_VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "TLS12": ssl.TLSVersion.TLSv1_2,
    "TLS13": ssl.TLSVersion.TLSv1_3,
}
_CLIENTS: Final[Mapping[str, ssl.VerifyMode]] = {
    "": ssl.CERT_NONE,
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_CIPHERS: Final[Mapping[str, str]] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
"""Go's names and OpenSSL's, for TLS 1.2. TLS 1.3 has no choice of ciphers, there or here."""

_TLS13_CIPHERS: Final = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
_HEADERS: Final[Mapping[str, frozenset[str]]] = {
    "Content-Security-Policy": frozenset(),
    "X-Frame-Options": frozenset({"deny", "sameorigin"}),
    "X-Content-Type-Options": frozenset({"nosniff"}),
    "X-XSS-Protection": frozenset(),
    "Strict-Transport-Security": frozenset(),
}
"""The headers that may be set, and the values of each; none for any value."""


class UnusableWebConfig(Exception):
    """A web configuration cannot be used; the message names the file, the fields and what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pem:
    """A certificate or key: in a file, or written into the configuration."""

    field: str
    file: Path | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsRules:
    """What is presented to clients, and demanded of them."""

    cert: Pem
    key: Pem
    client_ca: Pem | None
    verify: ssl.VerifyMode
    allowed_names: frozenset[str] | None
    """Alternative names of which a client's certificate must have one; None for any."""
    lowest: ssl.TLSVersion
    highest: ssl.TLSVersion
    ciphers: str
    """As OpenSSL names them; "" for its own choice."""
    prefers_own_ciphers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    """What a web configuration file demands."""

    tls: TlsRules | None
    headers: Mapping[str, str]
    users: Mapping[str, str]
    """Hashes of passwords by user; empty if no password is asked for."""
    token_file: Path | None
    """A file of bearer tokens, one per line."""

    @property
    def asks_for_credentials(self) -> bool:
        """Whether a request must carry a password or token."""
        return bool(self.users) or self.token_file is not None


class _TlsSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cert: str = ""
    key: str = ""
    client_ca: str = ""
    cert_file: str = ""
    key_file: str = ""
    client_ca_file: str = ""
    client_auth_type: str = ""
    client_allowed_sans: list[str] | UnsetType = UNSET
    min_version: str = "TLS12"
    max_version: str = "TLS13"
    cipher_suites: list[str] = []
    prefer_server_cipher_suites: bool = True
    curve_preferences: list[str] = []


class _HttpSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    http2: bool = False
    headers: dict[str, str] = {}


class _File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tls_server_config: _TlsSection | UnsetType = UNSET
    http_server_config: _HttpSection = _HttpSection()
    basic_auth_users: dict[str, str] | UnsetType = UNSET
    rate_limit: object = UNSET
    bearer_token_file: str | UnsetType = UNSET


class _Loader(yaml.SafeLoader):
    """Refuses keys that are written twice: the second would replace the first without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002  # as the base class has it
        """Return the mapping of a node.

        Raises:
            yaml.YAMLError: If a key is no text, or is written twice.
        """
        names: set[str] = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str):
                raise yaml.YAMLError(f"{name!r} is no name; put it into quotes")
            if name in names:
                raise yaml.YAMLError(f"{name!r} is written twice")
            names.add(name)
        return super().construct_mapping(node, deep)


def parse(content: bytes, file: Path) -> WebConfig:
    """Parse a file's content; relative names of files are relative to its folder.

    Raises:
        UnusableWebConfig: If it is not understood, or asks for what is not supported.
    """
    section = _decode(content, file)
    if section == _File() and content.strip() != b"{}":
        raise UnusableWebConfig(
            f"{file}: demands nothing; leave out --web-config-file to serve everybody by HTTP, or write {{}}"
        )
    if faults := [*_faults(section)]:
        raise UnusableWebConfig(f"{file}: {'; '.join(faults)}")
    tls, token_file = section.tls_server_config, section.bearer_token_file
    return WebConfig(
        tls=None if tls is UNSET else _tls_rules(tls, file.parent),
        headers={name: text for name, text in section.http_server_config.headers.items() if text},
        users={} if section.basic_auth_users is UNSET else section.basic_auth_users,
        token_file=None if token_file is UNSET else file.parent / token_file,
    )


def _decode(content: bytes, file: Path) -> _File:
    if len(content) > LONGEST_BYTES:
        raise UnusableWebConfig(f"{file}: longer than {LONGEST_BYTES} bytes")
    if content.count(b"[") + content.count(b"{") > MOST_BRACKETS:
        raise UnusableWebConfig(f"{file}: more than {MOST_BRACKETS} opening brackets")
    try:
        document = yaml.load(content.decode(), _Loader)  # noqa: S506  # a safe loader
        return msgspec.convert({} if document is None else document, _File)
    except (ValueError, yaml.YAMLError, msgspec.MsgspecError, RecursionError) as error:
        words = " ".join(str(error).replace("`$.", "`").split())
        raise UnusableWebConfig(f"{file}: {words or type(error).__name__}") from error


def _faults(section: _File) -> Iterator[str]:
    tls = section.tls_server_config
    if tls is not UNSET:
        yield from (f"tls_server_config.{fault}" for fault in _tls_faults(tls))
    if section.http_server_config.http2:
        yield "http_server_config.http2: HTTP/2 is not served; write false, or leave it out"
    yield from _header_faults(section.http_server_config.headers)
    if section.rate_limit is not UNSET:
        yield "rate_limit: not supported; connections are bounded without it"
    if section.basic_auth_users is not UNSET:
        yield from _user_faults(section.basic_auth_users)
    if section.bearer_token_file == "":
        yield "bearer_token_file: expected the name of a file"


def _tls_faults(tls: _TlsSection) -> Iterator[str]:
    yield from _pem_faults(tls)
    yield from _client_faults(tls)
    for name in ("min_version", "max_version"):
        if getattr(tls, name) not in _VERSIONS:
            yield f"{name}: expected TLS12 or TLS13, got {getattr(tls, name)!r}"
    if (tls.min_version, tls.max_version) == ("TLS13", "TLS12"):
        yield "max_version: is below min_version"
    for name in tls.cipher_suites:
        if name not in _CIPHERS and name not in _TLS13_CIPHERS:
            yield f"cipher_suites: {name!r} is not supported; expected {', '.join(_CIPHERS)}"
    if tls.min_version == "TLS12" and _TLS13_CIPHERS.issuperset(tls.cipher_suites or ("",)):
        yield "cipher_suites: has none for TLS 1.2; add one, or write min_version: TLS13"
    if tls.curve_preferences:
        yield "curve_preferences: not supported; leave it out for OpenSSL's choice"


def _pem_faults(tls: _TlsSection) -> Iterator[str]:
    for name in ("cert", "key", "client_ca"):
        if getattr(tls, name) and getattr(tls, f"{name}_file"):
            yield f"{name}: is given, and {name}_file as well; expected one of them"
    for name in ("cert", "key"):
        if not getattr(tls, name) and not getattr(tls, f"{name}_file"):
            yield f"{name}_file: is missing"


def _client_faults(tls: _TlsSection) -> Iterator[str]:
    verify = _CLIENTS.get(tls.client_auth_type)
    has_ca = bool(tls.client_ca or tls.client_ca_file)
    if verify is None:
        yield (
            f"client_auth_type: {tls.client_auth_type!r} is not supported; expected NoClientCert, "
            "VerifyClientCertIfGiven or RequireAndVerifyClientCert"
        )
    elif verify is ssl.CERT_NONE and has_ca:
        yield "client_auth_type: is missing beside a client CA; expected RequireAndVerifyClientCert"
    elif verify is not ssl.CERT_NONE and not has_ca:
        yield "client_ca_file: is missing; clients' certificates are checked against it"
    if tls.client_allowed_sans is not UNSET and verify is not ssl.CERT_REQUIRED:
        yield "client_allowed_sans: needs client_auth_type: RequireAndVerifyClientCert"


def _header_faults(headers: Mapping[str, str]) -> Iterator[str]:
    for name, text in headers.items():
        if name not in _HEADERS:
            yield f"http_server_config.headers: {name!r} is not supported; expected {', '.join(_HEADERS)}"
        elif text and _HEADERS[name] and text.lower() not in _HEADERS[name]:
            expected = " or ".join(sorted(_HEADERS[name]))
            yield f"http_server_config.headers.{name}: expected {expected}, got {text!r}"
        elif not text.isprintable() or not text.isascii():
            yield f"http_server_config.headers.{name}: expected one line of printable ASCII"


def _user_faults(users: Mapping[str, str]) -> Iterator[str]:
    if not users:
        yield "basic_auth_users: has no user; leave it out to ask for no password"
    for name, hashed in users.items():
        match = _BCRYPT.fullmatch(hashed)
        if not match:
            yield f"basic_auth_users.{name}: expected a bcrypt hash, as of `htpasswd -nBC 10 {name}`"
        elif int(match[1]) not in _COSTS:
            yield f"basic_auth_users.{name}: expected a cost from {_COSTS[0]} to {_COSTS[-1]}, got {match[1]}"
        if ":" in name or not name:
            yield f"basic_auth_users.{name}: a name is not empty and has no colon"


def _tls_rules(tls: _TlsSection, folder: Path) -> TlsRules:
    def pem(name: str) -> Pem:
        file = getattr(tls, f"{name}_file")
        return Pem(
            field=f"tls_server_config.{name}_file" if file else f"tls_server_config.{name}",
            file=folder / file if file else None,
            text=getattr(tls, name),
        )

    sans = tls.client_allowed_sans
    return TlsRules(
        cert=pem("cert"),
        key=pem("key"),
        client_ca=pem("client_ca") if tls.client_ca or tls.client_ca_file else None,
        verify=_CLIENTS[tls.client_auth_type],
        allowed_names=None if sans is UNSET else frozenset(sans),
        lowest=_VERSIONS[tls.min_version],
        highest=_VERSIONS[tls.max_version],
        ciphers=":".join(_CIPHERS[name] for name in tls.cipher_suites if name in _CIPHERS),
        prefers_own_ciphers=tls.prefer_server_cipher_suites,
    )
