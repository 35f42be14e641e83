"""Clients that send on and on and take nothing: requests ahead of responses, trailers, tiny chunks, responses that nobody reads.

No bound on heads and bodies holds these: they come after a head, and belong to no body.
"""

import asyncio
import contextlib
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from slurmruntime.process import health, serve
from slurmruntime.process.health import Health
from slurmruntime.process.metrics import Metrics
from tests.attacks import attack
from tests.make.certificates import Authority
from tests.make.peers import Connection, connection, serving, talk
from tests.make.rude_clients import (
    CHUNKED,
    SMALL_BUFFER,
    WITHOUT_END,
    deaf,
    stubborn,
    taken_bytes,
)
from tests.servers import wait_until
from tests.webhook.recordings import recorded
from tests.webhook.running import Webhook, running_webhook

LITTLE = 24 * 2**20
"""What all of it together may cost."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    with running_webhook(tmp_path_factory.mktemp("ahead")) as webhook:
        assert webhook.review("/mutate", recorded("pod"))["allowed"]
        yield webhook


def resident_bytes(webhook: Webhook) -> int:
    status = Path(f"/proc/{webhook.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize(
    ("port", "path"),
    [
        attack(
            "webhook",
            "send the webhook very many requests ahead, on 30 connections, and read no response",
            "a connection with 8 requests ahead is closed",
            "url",
            "/nothing",
        ),
        attack(
            "health",
            "send a health port very many requests ahead, on 30 connections, and read no response",
            "a connection with 8 requests ahead is closed",
            "health_url",
            "/metrics",
        ),
    ],
)
def test_requests_far_ahead_of_their_responses_cost_little(
    running: Webhook, port: str, path: str
) -> None:
    before = resident_bytes(running)
    many = f"GET {path} HTTP/1.1\r\n\r\n".encode() * 1000
    with ExitStack() as stack:
        for _ in range(30):
            peer = stack.enter_context(stubborn(getattr(running, port), running.trusting))
            peer.settimeout(0.5)
            taken_bytes(peer, many, 20 * 2**20)
        assert running.review("/mutate", recorded("pod"))["allowed"]
        assert 200 == httpx.get(f"{running.health_url}/livez", trust_env=False).status_code
        assert resident_bytes(running) - before < LITTLE


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        attack(
            "trailers",
            "end a body, and send trailers without an end",
            "what belongs to no body counts like a head: 64 KiB",
            *WITHOUT_END["trailers"],
        ),
        attack(
            "one trailer",
            "send one trailer that never ends, which no parser hands on",
            "what belongs to no body counts like a head: 64 KiB",
            *WITHOUT_END["one trailer"],
        ),
        attack(
            "chunks",
            "send a body in chunks of one byte, so that other requests wait while these are read one by one",
            "the sizes of chunks count like a head: 64 KiB, so 13 000 such chunks",
            *WITHOUT_END["chunks"],
        ),
        attack(
            "extension",
            "hide hundreds of megabytes in the extension of a chunk, which belongs to no body",
            "it counts like a head: 64 KiB",
            *WITHOUT_END["extension"],
        ),
    ],
)
def test_what_belongs_to_no_body_is_bounded(running: Webhook, begin: bytes, piece: bytes) -> None:
    before = resident_bytes(running)
    with stubborn(running.url, running.trusting) as peer:
        peer.sendall(CHUNKED + begin)
        began = time.monotonic()
        taken = taken_bytes(peer, piece, 100 * 2**20)
        took_s = time.monotonic() - began
        assert running.review("/mutate", recorded("pod"))["allowed"]
        assert resident_bytes(running) - before < LITTLE
    assert taken < 20 * 2**20  # the sockets' own buffers take some of it
    assert took_s < serve.REQUEST_S / 2


@asynccontextmanager
async def health_port() -> AsyncIterator[tuple[str, int]]:
    """One with long metrics, whose system holds little of what a client does not take."""
    metrics = Metrics("test")
    for number in range(3000):
        metrics.pods.decided(f"an-action-with-a-rather-long-name-{number:0>40}")
    stop, sock = asyncio.Event(), serve.bind("127.0.0.1:0")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)
    sock.listen(health.MOST_CONNECTIONS)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(health.run(Health(), metrics, sock, stop=stop))
        yield sock.getsockname()
        stop.set()


async def ask_and_take_nothing(address: tuple[str, int], stack: ExitStack) -> None:
    """Ask twice: the first response is left in buffers, and the second waits for room in them."""
    peer = stack.enter_context(deaf(address))
    for _ in range(2):
        peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        await asyncio.sleep(0.02)


def live(address: tuple[str, int]) -> int:
    """The status that a probe gets; 0 if its connection is closed."""
    with contextlib.suppress(OSError), connection(address) as peer:
        return peer.ask("GET", "/livez").status
    return 0


@pytest.mark.attack(
    "ask a health port for metrics on all its connections and read nothing, so that probes get no place and the kubelet restarts us",
    "a connection whose client does not take its response is closed for one that asks",
)
async def test_responses_that_nobody_takes_hold_no_place_of_probes() -> None:
    async with health_port() as address:
        with ExitStack() as held:
            for _ in range(health.MOST_CONNECTIONS):
                await ask_and_take_nothing(address, held)
            statuses = [await asyncio.to_thread(live, address) for _ in range(5)]
    assert [200] * 5 == statuses


@pytest.mark.attack(
    "ask for much, read nothing, and hold memory and files for ever",
    "30 s to take a response",
)
async def test_a_response_that_nobody_takes_is_not_kept_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve, "REQUEST_S", 0.3)
    async with health_port() as address:
        assert 200 == await asyncio.to_thread(live, address)
        before = open_files()
        with ExitStack() as held:
            for _ in range(5):
                await ask_and_take_nothing(address, held)
            own_ends = before + 5
            await asyncio.to_thread(wait_until, lambda: open_files() <= own_ends, 20)


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.attack(
    "send reviews whose uid or user has millions of characters, which responses repeat, and read none",
    "4096 characters",
)
def test_what_responses_repeat_is_short(running: Webhook) -> None:
    review = json.loads(recorded("pod"))
    user = review["request"]["userInfo"]
    honest = {"uid": review["request"]["uid"]}, {"userInfo": user}
    long = {"uid": "u" * 2_000_000}, {"userInfo": {**user, "username": "u" * 2_000_000}}
    for fields, status in ((honest, 200), (long, 400)):
        for field in fields:
            changed = {**review, "request": {**review["request"], **field}}
            answer = running.post("/mutate", json.dumps(changed).encode())
            assert status == answer.status_code
            assert len(answer.content) < 4096


@pytest.mark.attack(
    "ask for long responses on many connections with TLS, and take none",
    "16 MiB of all responses that are not taken; beyond it the oldest connections are closed",
)
async def test_responses_that_nobody_takes_are_bounded_together(tmp_path: Path) -> None:
    authority = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server").write(tmp_path, "server"))
    trusting = ssl.create_default_context(cadata=authority.certificate.decode())

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(b"x" * 8 * 2**20)(scope, receive, send)

    def ask_and_read_nothing(address: tuple[str, int], held: ExitStack) -> None:
        plain = held.enter_context(deaf(address))
        peer = held.enter_context(trusting.wrap_socket(plain, server_hostname="127.0.0.1"))
        peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")

    async with serving(answer, tls=context, within_s=60, grace_s=0) as address:
        before = own_bytes()
        with ExitStack() as held:
            for _ in range(30):
                await asyncio.to_thread(ask_and_read_nothing, address, held)
                await asyncio.sleep(0.02)
            grown = own_bytes() - before
            last = await talk(address, Connection.ask, tls=trusting)
    assert 8 * 2**20 == len(last.body)
    assert grown < 64 * 2**20


def own_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def test_few_requests_ahead_are_answered() -> None:
    """Proxies may send some."""

    def ask_ahead(peer: Connection) -> int:
        peer.sock.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n" * serve.MOST_AHEAD)
        received = b""
        while received.count(b"ok\n") < serve.MOST_AHEAD:
            received += peer.sock.recv(65536) or b"ok\n" * 100
        return received.count(b"HTTP/1.1 200")

    async with health_port() as address:
        assert serve.MOST_AHEAD == await talk(address, ask_ahead)
