"""The fault bench: a sandbox whose services reach both worlds through proxies that break what they are told to break.

with fault_bench(full_sandbox) as bench:
    bench.link("extender", "slurmrestd").inject(faults.LOST_REPLY, "POST", "/job/submit")
    bench.kill("controllers")

Each service has proxies of its own, so that a test says whose request is lost. The webhook speaks to nobody.
"""

import asyncio
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import uvloop

from sandbox import kubernetes, pki
from sandbox.client import Sandbox
from slurmruntime.process.clock import SystemClock
from tests.faults import Proxy, http_message, slurm_message

PEERS = ("apiserver", "slurmrestd", "slurmctld")
_START_TIMEOUT_S = 60.0


class FaultBench:
    """A sandbox and the proxies before its services' peers."""

    def __init__(self, sandbox: Sandbox, links: Mapping[tuple[str, str], Proxy]) -> None:
        self.sandbox = sandbox
        self._links = links

    @property
    def services(self) -> tuple[str, ...]:
        """Ours that speak to Slurm."""
        return self.sandbox.instance.options.slurm_services

    def link(self, service: str, peer: str) -> Proxy:
        """What lies between a service and a peer."""
        return self._links[service, peer]

    def links(self, peer: str) -> tuple[Proxy, ...]:
        """What lies between our services and a peer."""
        return tuple(self._links[service, peer] for service in self.services)

    def kill(self, part: str) -> None:
        """SIGKILL, this very moment, and a new process in its place."""
        self.sandbox.restart(part, signal="KILL", wait=False)

    def calm(self) -> None:
        """No more faults than those that have happened."""
        for proxy in self._links.values():
            proxy.forget()
            proxy.thaw()


@contextmanager
def fault_bench(sandbox: Sandbox, peers: Sequence[str] = PEERS) -> Iterator[FaultBench]:
    """Lead the services through the proxies before these peers, and back in the end."""
    ready, stop = threading.Event(), threading.Event()
    links: dict[tuple[str, str], Proxy] = {}
    thread = threading.Thread(target=lambda: uvloop.run(_serve(sandbox, links, ready, stop)))
    thread.start()
    try:
        if not ready.wait(_START_TIMEOUT_S):
            raise TimeoutError("the proxies did not start")
        services = sandbox.instance.options.slurm_services
        sandbox.detour({s: {peer: links[s, peer].port for peer in peers} for s in services})
        try:
            yield FaultBench(sandbox, links)
        finally:
            sandbox.detour({})
    finally:
        stop.set()
        thread.join()


async def _serve(
    sandbox: Sandbox,
    links: dict[tuple[str, str], Proxy],
    ready: threading.Event,
    stop: threading.Event,
) -> None:
    instance = sandbox.instance
    urls = {peer: instance.url(peer) for peer in PEERS}
    served, trusted = _served(sandbox), kubernetes.trust(instance)
    async with AsyncExitStack() as stack:
        for service in instance.options.slurm_services:
            for peer in PEERS:
                secure = peer == "apiserver"
                links[service, peer] = await stack.enter_async_context(
                    Proxy.to(
                        urls[peer],
                        framing=slurm_message if peer == "slurmctld" else http_message,
                        tls=served if secure else None,
                        upstream_tls=trusted if secure else None,
                    )
                )
        ready.set()
        await asyncio.to_thread(stop.wait)


def _served(sandbox: Sandbox) -> ssl.SSLContext:
    """A certificate that the services take for the API server's."""
    ca = kubernetes.authority(sandbox.instance)
    pair = pki.issue(ca, name="fault-bench", now=SystemClock().now())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pair.pem")
        path.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(path)
    return context
