"""The HTTP side: `POST /v1/start` and `POST /v1/end`, called by slurmctld's scripts.

The body is `{"job": 4711}`. The first word of the response is for the script: `go`, or `wait` with a reason,
after which it asks again. A start is answered once the job may be launched, at the latest after `HOLD_S`. An
end is answered at once.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.escrow.job_hints import JobHints
from bridge.escrow.tokens import Tokens
from slurmruntime.process.metrics import Metrics
from slurmruntime.process.serve import BodyLimit
from slurmruntime.values.ids import JobId

MOST_CONNECTIONS = 512
"""One for each waiting job. Beyond it, the script that has just asked is closed, and asks again. Connections that have not
shown a token are counted apart: they close no other, and none that waits."""

BODY_LIMIT_BYTES = 1024
_LARGEST_JOB = 2**32 - 1

UntilFree = Callable[[JobId], Awaitable[str]]
"""Waits a limited time until a job may be launched; returns why it may not yet, or ""."""


class _Message(Struct, frozen=True):
    job: int


def create(
    *,
    tokens: Tokens,
    until_free: UntilFree,
    note: Callable[[], Awaitable[None]],
    hints: JobHints,
    metrics: Metrics,
) -> ASGIApp:
    """Build the ASGI application.

    note: remembers that a start was asked about, before it is answered.
    """

    async def start(request: Request) -> Response:
        job_id = await _job_id(request, metrics)
        if isinstance(job_id, Response):
            return job_id
        hints.started(job_id)
        await note()
        reason = await until_free(job_id)
        metrics.escrow.answered("wait" if reason else "go")
        return PlainTextResponse(f"wait: {reason}\n" if reason else "go\n")

    async def end(request: Request) -> Response:
        job_id = await _job_id(request, metrics)
        if isinstance(job_id, Response):
            return job_id
        hints.ended(job_id)
        metrics.escrow.answered("told")
        return PlainTextResponse("go\n")

    routes = [Route("/v1/start", start, methods=["POST"]), Route("/v1/end", end, methods=["POST"])]
    within_limits = BodyLimit(
        Starlette(routes=routes),
        BODY_LIMIT_BYTES,
        all_limit_bytes=MOST_CONNECTIONS * BODY_LIMIT_BYTES,
        small_bytes=0,
    )
    return _behind_token(within_limits, tokens, metrics)


def _behind_token(app: ASGIApp, tokens: Tokens, metrics: Metrics) -> ASGIApp:
    """Refuse requests without a token before their body is read: one that never comes holds no connection."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if tokens.admits(Headers(scope=scope).get("authorization", "")):
            await app(scope, receive, send)
            return
        metrics.escrow.answered("unauthorized")
        refusal = PlainTextResponse(
            "wrong or no token\n", HTTPStatus.UNAUTHORIZED, headers={"connection": "close"}
        )
        await refusal(scope, receive, send)

    return answer


async def _job_id(request: Request, metrics: Metrics) -> JobId | Response:
    try:
        job = msgspec.json.decode(await request.body(), type=_Message).job
    except msgspec.DecodeError as error:
        metrics.escrow.answered("malformed")
        return PlainTextResponse(f"{error}\n", HTTPStatus.BAD_REQUEST)
    if not 0 < job <= _LARGEST_JOB:
        metrics.escrow.answered("malformed")
        return PlainTextResponse(f"not a job id: {job}\n", HTTPStatus.BAD_REQUEST)
    return JobId(job)
