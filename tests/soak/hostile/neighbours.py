"""A neighbour on the network without credentials: connections that say nothing, too much, too slowly, or take nothing."""

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack

import httpx

from sandbox.client import Sandbox
from slurmruntime.process import health, serve
from tests.fuzz.grammars import JSON
from tests.make import rude_clients
from tests.make.dear_scripts import DEAREST, slurm_job
from tests.make.rude_clients import CHUNKED, WITHOUT_END, address_of
from tests.soak.hostile.grounds import Grounds, at_once
from tests.webhook.recordings import recorded

_HALF_OPEN = 300
"""More than the handshakes that may be under way."""
_HEADS = 150
_HALVES = 12
"""Of bodies of 8 MiB: more than all together may hold."""
_AHEAD = 30
_HELD_S = 2.0
_STORM_S = 2.0
_REVIEWS = 60


def attacks(grounds: Grounds) -> Mapping[str, Callable[[], None]]:
    """By what a person calls them."""
    neighbour = _Neighbour(grounds)
    return {
        "TLS handshakes that never begin": neighbour.open_halves,
        "heads of 60 kB without an end": neighbour.send_heads,
        "requests ahead, and no answer is read": neighbour.send_ahead,
        "trailers, chunks and extensions without an end": neighbour.send_on,
        "bodies of 8 MiB, whole and halves": neighbour.send_bodies,
        "metrics asked for, and not taken": neighbour.ask_and_take_nothing,
        "a storm of short connections": neighbour.storm,
        "reviews of the dearest scripts and of deep JSON": neighbour.review,
    }


class _Neighbour:
    def __init__(self, grounds: Grounds) -> None:
        url = grounds.sandbox.instance.url
        services = grounds.sandbox.instance.options.services
        self._dice = grounds.dice
        self._webhook = url("webhook", "https")
        self._tls = (self._webhook, url("extender", "https"))
        self._pages = (*(url(f"{name}-health") for name in services), grounds.exporter)
        self._trusting = _trusting(grounds.sandbox)

    def open_halves(self) -> None:
        for url in self._tls:
            with ExitStack() as stack:
                for _ in range(_HALF_OPEN):
                    with contextlib.suppress(OSError):
                        stack.enter_context(socket.create_connection(address_of(url), timeout=5))
                time.sleep(_HELD_S)

    def send_heads(self) -> None:
        with ExitStack() as stack:
            for _ in range(_HEADS):
                with contextlib.suppress(OSError):
                    peer = stack.enter_context(
                        rude_clients.connected(self._webhook, self._trusting)
                    )
                    peer.sendall(b"POST /" + b"a" * 60_000)
            time.sleep(_HELD_S)

    def send_ahead(self) -> None:
        page = self._dice.choice(self._pages)
        many = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 1000
        for url in (self._webhook, page):
            with ExitStack() as stack:
                for _ in range(_AHEAD):
                    with contextlib.suppress(OSError):
                        peer = stack.enter_context(rude_clients.stubborn(url, self._trusting))
                        peer.settimeout(0.1)
                        rude_clients.taken_bytes(peer, many, 2**20)

    def send_on(self) -> None:
        for begin, piece in WITHOUT_END.values():
            with (
                contextlib.suppress(OSError),
                rude_clients.stubborn(self._webhook, self._trusting) as peer,
            ):
                peer.sendall(CHUNKED + begin)
                rude_clients.taken_bytes(peer, piece, 20 * 2**20)

    def send_bodies(self) -> None:
        self._post("/mutate", b"[" * (serve.BODY_LIMIT_BYTES + 1))
        with ExitStack() as stack:
            for _ in range(_HALVES):
                with contextlib.suppress(OSError):
                    peer = stack.enter_context(
                        rude_clients.connected(self._webhook, self._trusting)
                    )
                    half = b"x" * (serve.BODY_LIMIT_BYTES - 1)
                    peer.sendall(rude_clients.head(serve.BODY_LIMIT_BYTES) + half)
            time.sleep(_HELD_S)

    def ask_and_take_nothing(self) -> None:
        with ExitStack() as stack:
            for url in self._pages:
                for _ in range(health.MOST_CONNECTIONS):
                    with contextlib.suppress(OSError):
                        peer = stack.enter_context(rude_clients.deaf(address_of(url)))
                        peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 2)
            time.sleep(_HELD_S)

    def storm(self) -> None:
        address = address_of(self._dice.choice(self._pages))
        end_s = time.monotonic() + _STORM_S
        while time.monotonic() < end_s:
            with contextlib.suppress(OSError), socket.create_connection(address, timeout=5):
                pass

    def review(self) -> None:
        deep = self._dice.choice(list(JSON.worst(2**20))).encode(errors="surrogatepass")
        bodies = [("/validate", slurm_job(DEAREST))] * _REVIEWS
        bodies += [("/mutate", recorded("pod")), ("/mutate", deep)] * 4
        at_once([_posting(self._post, path, body) for path, body in bodies], 8)

    def _post(self, path: str, body: bytes) -> None:
        with (
            contextlib.suppress(httpx.TransportError),
            httpx.Client(verify=self._trusting, trust_env=False, timeout=10) as web,
        ):
            web.post(
                f"{self._webhook}{path}",
                content=body,
                headers={"Content-Type": "application/json"},
            )


def _posting(post: Callable[[str, bytes], None], path: str, body: bytes) -> Callable[[], None]:
    return lambda: post(path, body)


def _trusting(sandbox: Sandbox) -> ssl.SSLContext:
    """Whoever it is: the name in the certificate is that of a Service."""
    context = ssl.create_default_context(cafile=str(sandbox.instance.bridge / "serving-ca.crt"))
    context.check_hostname = False
    return context
