"""Scrapers that ask for the page of a large Slurm and take nothing of it: no copy is kept for them, and no place."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from slurmclient.fake import FakeSlurm
from slurmexporter.door import reception
from tests.exporter.doors import Door, door
from tests.servers import wait_until

NODES = 12_000
LONG = 4 * 2**20
"""Bytes of the page of so many nodes, at least."""
GROWTH_MIB = 64
"""A copy for each connection would be more than ten times as much."""


@contextmanager
def deaf(opened: Door) -> Iterator[None]:
    """A connection that asks for the page, and whose own end takes next to nothing."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(10)
        sock.connect(("127.0.0.1", opened.port))
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        assert sock.recv(1)
        yield


def scrape(opened: Door) -> int:
    """The status of a scrape; 0 if its connection is closed."""
    try:
        answer = opened.ask(tls=False)
    except httpx.TransportError:
        return 0
    assert len(answer.content) > LONG
    return answer.status_code


@pytest.mark.attack(
    "ask slurm-exporter for the page of a large Slurm on all its connections and read nothing, so that each holds a copy of megabytes and no scrape gets a place",
    "pages are sent in slices of 64 KiB of one text; who takes nothing is closed for one who asks, and after 30 s",
)
async def test_who_reads_nothing_costs_no_copy_of_the_page_and_no_place(tmp_path: Path) -> None:
    async with FakeSlurm(nodes=NODES) as slurm:
        await asyncio.to_thread(crowd_and_scrape, tmp_path, slurm.url)


def crowd_and_scrape(folder: Path, slurm: str) -> None:
    with door(folder, slurm) as opened:
        wait_until(lambda: len(opened.ask(tls=False).content) > LONG, 60)
        before_mib = opened.resident_mib()
        with ExitStack() as crowd:
            for _ in range(reception.MOST_CALLERS):
                crowd.enter_context(deaf(opened))
            assert [200] * 5 == [scrape(opened) for _ in range(5)]
            assert opened.resident_mib() - before_mib < GROWTH_MIB
        head = httpx.head(f"http://127.0.0.1:{opened.port}/metrics", trust_env=False)
        plain = httpx.get(
            f"http://127.0.0.1:{opened.port}/metrics",
            headers={"Accept-Encoding": "identity"},
            trust_env=False,
        )
        assert (200, b"") == (head.status_code, head.content)
        assert len(plain.content) == int(plain.headers["Content-Length"]) > LONG
    assert "Traceback" not in (folder / "log").read_text()
