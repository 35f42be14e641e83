"""Bodies too long, too slow and too many, heads without end, connections that say nothing: memory stays flat, reviews go on.

Against the webhook as a process of its own; the extender is served by the same code, behind a client certificate.
"""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from slurmruntime.process import serve
from tests.make.rude_clients import connected, head
from tests.webhook.recordings import recorded
from tests.webhook.running import Webhook, running_webhook

GROWTH = 160 * 2**20
"""What all bodies together may hold at once, and twice as much again for copies of what has just come whole."""


@pytest.fixture(scope="module")
def flooded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    with running_webhook(tmp_path_factory.mktemp("flooded")) as webhook:
        yield webhook


def resident_bytes(webhook: Webhook) -> int:
    status = Path(f"/proc/{webhook.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def still_works(webhook: Webhook) -> bool:
    return bool(webhook.review("/mutate", recorded("pod"))["allowed"])


@pytest.mark.attack(
    "send huge bodies, one after another",
    "8 MiB",
)
def test_long_bodies_are_refused_one_after_another(flooded: Webhook) -> None:
    before = resident_bytes(flooded)
    for _ in range(20):
        answer = flooded.post("/mutate", b"[" * (serve.BODY_LIMIT_BYTES + 1))
        assert 413 == answer.status_code

    assert resident_bytes(flooded) - before < GROWTH
    assert still_works(flooded)


@pytest.mark.attack(
    "send many bodies that never end",
    "a shared budget; small bodies pass",
)
def test_many_halves_of_long_bodies_hold_no_more_than_all_may(flooded: Webhook) -> None:
    before = resident_bytes(flooded)
    half = serve.BODY_LIMIT_BYTES - 1
    refused = 0
    with ExitStack() as stack:
        for _ in range(30):
            connection = stack.enter_context(connected(flooded.url, flooded.trusting))
            with contextlib.suppress(OSError):  # cut off in the middle
                connection.sendall(head(serve.BODY_LIMIT_BYTES) + b"x" * half)
            connection.settimeout(0.2)
            with contextlib.suppress(OSError):
                refused += connection.recv(64).startswith(b"HTTP/1.1 503")
        assert resident_bytes(flooded) - before < GROWTH
        assert refused > 0
        assert still_works(flooded)


@pytest.mark.attack(
    "send endless heads, keep silent connections",
    "64 KiB, 30 s",
)
def test_heads_without_end_and_silence_cost_next_to_nothing(flooded: Webhook) -> None:
    before = resident_bytes(flooded)
    with ExitStack() as stack:
        for number in range(200):
            connection = stack.enter_context(connected(flooded.url, flooded.trusting))
            if number % 2:
                with contextlib.suppress(OSError):
                    connection.sendall(b"POST /mutate HTTP/1.1\r\n" + b"X-A: b\r\n" * 20_000)
        assert still_works(flooded)
        assert resident_bytes(flooded) - before < GROWTH


LITTLE = 48 * 2**20
"""What all connections together may hold."""


@pytest.mark.attack(
    "open a thousand TLS connections and send a head of 60 kB on each, without an end",
    "512 connections, of which those that never asked are closed first; 8 MiB in all heads",
)
def test_heads_of_very_many_connections_cost_little_together(flooded: Webhook) -> None:
    before = resident_bytes(flooded)
    assert still_works(flooded)
    with ExitStack() as stack:
        for _ in range(1000):
            with contextlib.suppress(OSError):  # cut off by those that came after
                connection = stack.enter_context(connected(flooded.url, flooded.trusting))
                connection.sendall(b"POST /" + b"a" * 60_000)
        assert still_works(flooded)
        assert resident_bytes(flooded) - before < LITTLE


@pytest.mark.attack(
    "open thousands of connections that never begin a TLS handshake",
    "5 s, and 256 at once: the oldest ends for each new one",
)
def test_handshakes_that_never_begin_cost_little_together(flooded: Webhook) -> None:
    before = resident_bytes(flooded)
    where = urlsplit(flooded.url)
    with ExitStack() as stack:
        for _ in range(3000):
            with contextlib.suppress(OSError):
                address = (where.hostname, where.port)
                stack.enter_context(socket.create_connection(address, timeout=30))
        assert still_works(flooded)
        assert resident_bytes(flooded) - before < LITTLE


@pytest.mark.attack(
    "send two lengths, chunked and length, other header tricks",
    "refused by the parser",
)
@pytest.mark.parametrize(
    "sent",
    [
        b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nxxxxxx",
        b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nHost : x\r\n\r\n",
        b"POST http://elsewhere/mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        b"\x16\x03\x01 not HTTP at all\r\n\r\n",
    ],
    ids=["both lengths", "two lengths", "negative", "space", "absolute", "bytes"],
)
def test_odd_heads_are_answered_or_cut(flooded: Webhook, sent: bytes) -> None:
    with connected(flooded.url, flooded.trusting) as connection:
        connection.sendall(sent)
        try:
            status = connection.recv(64).split(b" ")
        except OSError:
            status = []
        assert not status or len(status) < 2 or status[1] in {b"400", b"404", b"415"}

    assert still_works(flooded)
    assert "Traceback" not in flooded.log


@pytest.mark.attack(
    "get secrets or noise into the log",
    "input is not repeated",
)
def test_the_log_does_not_repeat_what_was_sent(flooded: Webhook, tmp_path: Path) -> None:
    marker = b"do-not-repeat-me"
    flooded.post("/mutate", b'{"apiVersion": {"' + marker + b'": 1}}' + b" " * 100_000)

    assert marker.decode() not in flooded.log
