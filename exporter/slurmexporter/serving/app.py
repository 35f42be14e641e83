"""The HTTP server: pages of metrics, health, and an index."""

import contextlib
import html
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from aiohttp import hdrs, web

from slurmexporter.collecting.collector import Collector
from slurmexporter.collecting.journal import Journal
from slurmexporter.collecting.latest import Latest
from slurmexporter.families import catalogue
from slurmexporter.serving.pages import Pages
from slurmexporter.serving.self_page import self_metrics
from slurmexporter.settings import Settings
from slurmexporter.text.rendering import CONTENT_TYPE, MetricsText, compressed, join, render

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_MOST: Final = 10_000
"""More series than the exporter's own page can have."""
_SLICE_BYTES: Final = 64 * 2**10
"""Of a page, written at a time. The pages are shared: a client that takes nothing has no copy, but costs one or two of these."""


class Server:
    """Answers scrapes from rendered pages; never asks Slurm."""

    def __init__(
        self,
        settings: Settings,
        *,
        pages: Pages,
        collector: Collector,
        latest: Latest,
        journal: Journal,
        version: str,
        started_s: float,
    ) -> None:
        """started_s: when the exporter started, in seconds since 1970."""
        self._settings = settings
        self._pages = pages
        self._collector = collector
        self._latest = latest
        self._journal = journal
        self._version = version
        self._started_s = started_s

    def app(self) -> web.Application:
        """Return the application with all its paths."""
        app = web.Application()
        app.router.add_get("/", self._index)
        for path in ("/livez", "/readyz", "/healthz"):
            app.router.add_get(path, self._ok)
        app.router.add_get("/metrics", self._metrics(self._settings.names))
        app.router.add_get("/metrics/exporter", self._metrics(""))
        for name in (*catalogue.NAMES, *catalogue.NATIVE_PAGES):
            app.router.add_get(f"/metrics/{name}", self._metrics(name))
        return app

    async def text(self, name: str) -> bytes:
        """Return a page as text."""
        return join(await self._parts(name))

    def _metrics(self, name: str) -> _Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            began_s = time.perf_counter()
            parts = await self._parts(name)
            headers = {"Content-Type": CONTENT_TYPE, "Vary": "Accept-Encoding"}
            if "gzip" in request.headers.get("Accept-Encoding", ""):
                headers["Content-Encoding"] = "gzip"
                pieces = compressed(parts)
            else:
                pieces = [part.plain for part in parts]
            self._journal.scrapes += 1
            self._journal.scrape_s += time.perf_counter() - began_s
            return await _send(request, pieces, headers)

        return answer

    async def _parts(self, name: str) -> list[MetricsText]:
        """Return a page in pieces; the exporter's own names include its metrics about itself."""
        parts = list(await self._pages.page(name)) if name else []
        return [*parts, self._self_page()] if name in {"", "own"} else parts

    def _self_page(self) -> MetricsText:
        metrics = self_metrics(
            self._journal,
            self._latest,
            sources=self._collector.sources,
            sizes=self._pages.sizes(),
            pace=self._collector.pace.factor,
            version=self._version,
            started_s=self._started_s,
        )
        return render(metrics, max_series=_MOST)

    async def _ok(self, _: web.Request) -> web.Response:
        """Ready means able to answer scrapes; whether Slurm is up is for the metrics to say."""
        return web.Response(text="ok\n")

    async def _index(self, _: web.Request) -> web.Response:
        names = ("", "/exporter", *(f"/{name}" for name in catalogue.NAMES))
        links = "".join(f'<li><a href="/metrics{name}">/metrics{name}</a></li>' for name in names)
        ages_s = self._latest.ages_s()
        rows = "".join(self._row(source, ages_s.get(source)) for source in self._collector.sources)
        text = (
            f"<!doctype html><title>slurm-exporter</title><h1>slurm-exporter {self._version}</h1>"
            f"<ul>{links}</ul>"
            f"<table><tr><th>source<th>age<th>last reading</tr>{rows}</table>"
        )
        return web.Response(text=text, content_type="text/html")

    def _row(self, source: str, age_s: float | None) -> str:
        age = "never" if age_s is None else f"{age_s:.0f} s"
        error = self._journal.last_error.get(source) or ("" if age_s is None else "ok")
        return f"<tr><td>{source}</td><td>{age}</td><td>{html.escape(error)}</td></tr>"


async def _send(
    request: web.Request, pieces: Sequence[bytes], headers: dict[str, str]
) -> web.StreamResponse:
    """Send a page as fast as the client takes it."""
    response = web.StreamResponse(headers=headers)
    response.content_length = sum(map(len, pieces))
    await response.prepare(request)
    if request.method != hdrs.METH_HEAD:
        with contextlib.suppress(ConnectionError):  # the client has gone
            for piece in pieces:
                for start in range(0, len(piece), _SLICE_BYTES):
                    await response.write(piece[start : start + _SLICE_BYTES])
    return response
