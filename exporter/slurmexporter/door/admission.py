"""Decides whether a request may be answered: by its password, its token, and its client's certificate."""

import base64
import binascii
import hmac
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from slurmexporter.door.passwords import Busy
from slurmexporter.door.reception import Room
from slurmexporter.door.web_file import Rules, WebFile

OPEN_PATHS: Final = frozenset({"/livez", "/readyz", "/healthz"})
"""Say "ok" and nothing else, to probes that have no credentials."""

_KINDS: Final = {"DNS", "IP Address", "email", "URI"}


def protect(app: web.Application, file: WebFile, room: Room) -> None:
    """Let an application answer only what the rules admit."""
    app.middlewares.append(_guard(file, room))

    async def begin_to_send(request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(file.rules.config.headers)
        if caller := room.caller(request.protocol):
            caller.end()

    app.on_response_prepare.append(begin_to_send)


def _guard(file: WebFile, room: Room) -> Middleware:
    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        caller = room.caller(request.protocol)
        if caller is None:  # it has just been closed
            raise web.HTTPServiceUnavailable
        caller.begin()
        try:
            refused = await refusal(
                file.rules,
                path=request.path,
                authorization=request.headers.get("Authorization", ""),
                certificate=request.get_extra_info("peercert"),
            )
            if refused is None:
                room.has_asked(caller)
                return await handler(request)
            refused.force_close()
            return refused
        finally:
            caller.end()

    return answer


async def refusal(
    rules: Rules, *, path: str, authorization: str, certificate: Mapping[str, Any] | None
) -> web.Response | None:
    """Return the response in the place of the page; None if the request may be answered.

    Args:
        authorization: The header of this name, or "".
        certificate: The client's, as the ssl module decodes it; None or empty if it has none.
    """
    tls = rules.config.tls
    if tls and tls.allowed_names is not None and not tls.allowed_names & _names(certificate):
        return web.Response(status=403, text="the client certificate has no allowed name\n")
    if path in OPEN_PATHS or not rules.config.asks_for_credentials:
        return None
    try:
        if await _is_admitted(rules, authorization):
            return None
    except Busy:
        text = "too many passwords wait to be checked\n"
        return web.Response(status=503, text=text, headers={"Retry-After": "1"})
    scheme = "Basic" if rules.config.users else "Bearer"
    challenge = {"WWW-Authenticate": f'{scheme} realm="slurm-exporter"'}
    return web.Response(status=401, text="wrong or no credentials\n", headers=challenge)


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
