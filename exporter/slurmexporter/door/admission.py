"""Decides whether a request may be answered: by its password, its token, and its client's certificate."""

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from slurmexporter.door.passwords import Busy
from slurmexporter.door.web_file import Rules

OPEN_PATHS: Final = frozenset({"/livez", "/readyz", "/healthz"})
"""Say "ok" and nothing else, to probes that have no credentials."""

_KINDS: Final = {"DNS", "IP Address", "email", "URI"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A response in the place of the page."""

    status: int
    text: str
    headers: Mapping[str, str]


async def refusal(
    rules: Rules, *, path: str, authorization: str, certificate: Mapping[str, Any] | None
) -> Refusal | None:
    """Return why a request is not answered; None if it may be.

    Args:
        authorization: The header of this name, or "".
        certificate: The client's, as the ssl module decodes it; None or empty if it has none.
    """
    tls = rules.config.tls
    if tls and tls.allowed_names is not None and not tls.allowed_names & _names(certificate):
        return Refusal(status=403, text="the client certificate has no allowed name", headers={})
    if path in OPEN_PATHS or not rules.config.asks_for_credentials:
        return None
    try:
        if await _is_admitted(rules, authorization):
            return None
    except Busy:
        text = "too many passwords wait to be checked"
        return Refusal(status=503, text=text, headers={"Retry-After": "1"})
    scheme = "Basic" if rules.config.users else "Bearer"
    challenge = {"WWW-Authenticate": f'{scheme} realm="slurm-exporter"'}
    return Refusal(status=401, text="wrong or no credentials", headers=challenge)


async def _is_admitted(rules: Rules, authorization: str) -> bool:
    scheme, _, words = authorization.partition(" ")
    match scheme.lower():
        case "bearer":
            token = words.strip().encode(errors="replace")
            return any(hmac.compare_digest(token, known) for known in rules.tokens)
        case "basic" if rules.config.users:
            try:
                user, _, password = base64.b64decode(words.strip()).partition(b":")
                return await rules.passwords.admit(user.decode(), password)
            except (binascii.Error, ValueError):
                return False
    return False


def _names(certificate: Mapping[str, Any] | None) -> frozenset[str]:
    names = (certificate or {}).get("subjectAltName", ())
    return frozenset(name for kind, name in names if kind in _KINDS)
