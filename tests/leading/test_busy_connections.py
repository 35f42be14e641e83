"""A lease is renewed while more writes are under way than there are connections for."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from bridge.reconcile import program
from bridge.settings.schema import Settings
from slurmruntime.kube.errors import Unavailable
from slurmruntime.kube.leases import KubeLeases

WRITES = 300
"""More than the connections for them."""


class BusyApiServer:
    """Answers for leases, and to nothing else."""

    def __init__(self) -> None:
        self.hanging = 0
        self.is_busy = asyncio.Event()
        self.ends = asyncio.Event()

    async def answer(self, request: web.Request) -> web.Response:
        if "/leases/" in request.path:
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        self.hanging += 1
        self.is_busy.set()
        await self.ends.wait()
        return web.json_response({}, status=503)


@pytest.fixture
async def busy(unused_tcp_port: int) -> AsyncIterator[tuple[BusyApiServer, str]]:
    server = BusyApiServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", unused_tcp_port)
    await site.start()
    try:
        yield server, f"http://127.0.0.1:{unused_tcp_port}"
    finally:
        server.ends.set()
        await runner.cleanup()


async def test_a_lease_is_read_while_all_connections_for_writes_are_busy(
    busy: tuple[BusyApiServer, str], tmp_path: Path
) -> None:
    server, url = busy
    kubeconfig, token = tmp_path / "kubeconfig", tmp_path / "token"
    kubeconfig.write_text(
        json.dumps(
            {
                "current-context": "it",
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                "clusters": [{"name": "it", "cluster": {"server": url}}],
                "users": [{"name": "it", "user": {"token": "any"}}],
            }
        )
    )
    token.write_text("any")
    settings = Settings.model_validate(
        {
            "cluster_id": "c",
            "kubernetes": {"kubeconfig": str(kubeconfig)},
            "slurm": {"url": "http://127.0.0.1:1", "token_file": str(token)},
        }
    )
    async with program.opened("extender", settings) as opened, asyncio.TaskGroup() as group:

        async def write(number: int) -> None:
            with pytest.raises(Unavailable):
                await opened.kube.request("PATCH", f"/api/v1/namespaces/a/pods/{number}")

        writes = [group.create_task(write(number)) for number in range(WRITES)]
        async with asyncio.timeout(20):
            await server.is_busy.wait()
            assert await KubeLeases(opened.lease_kube, "ns").get("extender") is None
        assert not any(each.done() for each in writes)
        assert server.hanging < WRITES, "the others wait for a connection"
        server.ends.set()
