"""A server that gives the answers it is told to: those that no healthy API server gives."""

import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from slurmruntime.kube.client import KubeClient

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(routes: Mapping[str, Answer]) -> AsyncIterator[KubeClient]:
    """A client of a server with these answers, by path."""
    app = web.Application()
    for path, answer in routes.items():
        app.router.add_get(path, answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0]
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump(_kubeconfig(f"http://{host}:{port}"), file)
            file.flush()
            async with KubeClient.open(file.name, request_timeout_s=5, user_agent="t") as client:
                yield client
    finally:
        await runner.cleanup()


def _kubeconfig(server: str) -> object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
