"""The endpoints `/livez`, `/readyz` and `/metrics`.

A process is live if its event loop runs, which the response itself proves, and if a leader's own
loops make progress (`bridge.process.liveness`). Liveness never depends on a peer, or Kubernetes
would restart us for an outage of Slurm. A process is ready if every registered check passes.
"""

from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bridge.process import metrics as exposition
from bridge.process.metrics import Metrics

Check = Callable[[], str | None]
"""Returns what is wrong, or None. Called at every probe, so it only uses what is already known."""


class Health:
    """The checks of one process."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def register(self, name: str, check: Check) -> None:
        """Make readiness depend on `check`."""
        if name in self._checks:
            raise ValueError(f"a health check named {name!r} is registered already")
        self._checks[name] = check

    def faults(self) -> dict[str, str | None]:
        """Return the current result of each check."""
        return {name: check() for name, check in self._checks.items()}


def app(
    health: Health, metrics: Metrics, stalled: Callable[[], Mapping[str, str]] = dict
) -> Starlette:
    """Build the ASGI application; `stalled` returns our stalled loops and why, for `/livez`."""

    async def livez(_request: Request) -> Response:
        return _verdict(stalled())

    async def readyz(_request: Request) -> Response:
        return _verdict(health.faults())

    async def scrape(_request: Request) -> Response:
        return Response(metrics.exposition(), media_type=exposition.CONTENT_TYPE)

    return Starlette(
        routes=[Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", scrape)]
    )


def _verdict(faults: Mapping[str, str | None]) -> Response:
    lines = [
        f"[{'-' if fault else '+'}] {name}: {fault or 'ok'}\n" for name, fault in faults.items()
    ]
    return PlainTextResponse("".join(lines) or "ok\n", 503 if any(faults.values()) else 200)
