"""Puts the rules before the pages of an application."""

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from slurmexporter.door.admission import refusal
from slurmexporter.door.reception import Room
from slurmexporter.door.web_file import WebFile


def protect(app: web.Application, file: WebFile, room: Room) -> None:
    """Let an application answer only what the rules admit."""
    app.middlewares.append(_guard(file, room))

    async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(file.rules.config.headers)

    app.on_response_prepare.append(add_headers)


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
            response = web.Response(
                status=refused.status, text=f"{refused.text}\n", headers=refused.headers
            )
            response.force_close()
            return response
        finally:
            caller.end()

    return answer
