"""The endpoints `/livez`, `/readyz` and `/metrics`.

A process is live if its event loop runs, which the response itself proves, and if a leader's own
loops make progress (`slurmruntime.process.liveness`). Liveness never depends on a peer, or Kubernetes
would restart us for an outage of Slurm. A process is ready if every check that is needed passes.

Anyone who reaches the port may ask the leader's own event loop. So responses are cheap however
often they are requested, and the number of connections is limited.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from slurmruntime.process.liveness import Check
from slurmruntime.process.metrics import Metrics, registry
from slurmruntime.process.serve import serve
from slurmruntime.process.standstill import Standstill

MOST_CONNECTIONS: Final = 64
"""Probes and a few Prometheus servers; each may keep its connection open."""

EXPOSITION_S: Final = 1.0
"""How old the metrics may be: writing them out takes milliseconds."""

Stalled = Callable[[], Mapping[str, str]]


class Health:
    """The checks of one process."""

    def __init__(self) -> None:
        self._needed: dict[str, Check] = {}
        self._optional: dict[str, Check] = {}

    def register(self, name: str, check: Check, *, is_needed: bool = True) -> None:
        """Show what `check` finds, and make readiness depend on it if `is_needed`."""
        if name in self._needed or name in self._optional:
            raise ValueError(f"a health check named {name!r} is registered already")
        (self._needed if is_needed else self._optional)[name] = check

    def faults(self) -> dict[str, str | None]:
        """Return the current result of each check on which readiness depends."""
        return {name: check() for name, check in self._needed.items()}

    def notes(self) -> dict[str, str | None]:
        """Return the current result of the other checks."""
        return {name: check() for name, check in sorted(self._optional.items())}


async def run(
    health: Health,
    metrics: Metrics,
    sock: socket.socket,
    *,
    stop: asyncio.Event,
    stalled: Stalled = dict,
) -> None:
    """Serve the endpoints until `stop` is set, and measure how long the event loop stands still."""
    answers = app(health, metrics, stalled)
    standstill = Standstill()
    metrics.loops.watch_standstill("main", standstill.longest_s)
    with standstill.measured():
        await serve(answers, sock, stop=stop, most_connections=MOST_CONNECTIONS)


def app(
    health: Health,
    metrics: Metrics,
    stalled: Stalled = dict,
    monotonic: Callable[[], float] = time.monotonic,
) -> Starlette:
    """Build the ASGI application; `stalled` is for `/livez`."""
    written = MetricsText(metrics.registry.exposition, monotonic)

    async def livez(_request: Request) -> Response:
        return _verdict(stalled())

    async def readyz(_request: Request) -> Response:
        return _verdict(health.faults(), health.notes())

    async def scrape(_request: Request) -> Response:
        return Response(written.now(), media_type=registry.CONTENT_TYPE)

    return Starlette(
        routes=[Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", scrape)]
    )


class MetricsText:
    """The metrics as text, written out at most once per `EXPOSITION_S`."""

    def __init__(self, write: Callable[[], bytes], monotonic: Callable[[], float]) -> None:
        self._write = write
        self._monotonic = monotonic
        self._text = b""
        self._stale_at: float | None = None

    def now(self) -> bytes:
        """Return text that is recent enough."""
        if self._stale_at is None or self._monotonic() >= self._stale_at:
            self._text = self._write()
            self._stale_at = self._monotonic() + EXPOSITION_S
        return self._text


def _verdict(
    faults: Mapping[str, str | None], notes: Mapping[str, str | None] = MappingProxyType({})
) -> Response:
    lines = [
        f"[{'-' if fault else '+'}] {name}: {fault or 'ok'}\n"
        for name, fault in {**faults, **notes}.items()
    ]
    return PlainTextResponse("".join(lines) or "ok\n", 503 if any(faults.values()) else 200)
