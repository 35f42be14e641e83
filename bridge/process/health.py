"""What a process answers when asked how it is: `/livez`, `/readyz` and `/metrics`.

Live means that the event loop turns, as it gives the answer itself, and that a leader's own loops do
(`bridge.process.liveness`). It never depends on a peer, or an outage of Slurm would have Kubernetes restart us for nothing.
Ready means that every registered check is content.
"""

from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bridge.process import metrics as exposition
from bridge.process.metrics import Metrics

Check = Callable[[], str | None]
"""Says what is wrong, or None. Called at every probe: it looks at what is known and asks nobody."""


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
        """What each check says now."""
        return {name: check() for name, check in self._checks.items()}


def app(
    health: Health, metrics: Metrics, stalled: Callable[[], Mapping[str, str]] = dict
) -> Starlette:
    """Build the ASGI application; stalled: says which of our own loops have, and why, for `/livez`."""

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
