"""Who sits between us and slurmrestd or the API server: other hosts, answers to nobody, bombs, cookies, answers without an end."""

import asyncio
import contextlib
import functools
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from slurmclient.errors import SlurmError
from slurmruntime.kube.errors import KubeError
from tests.attacks import attack
from tests.fuzz.between import OK, PING, TIMEOUT_S, TOKEN, Pieces, asking, between, whole


@pytest.mark.parametrize(
    "kind",
    [
        attack(
            "slurmrestd",
            "answer for slurmrestd with a Location on another host, to have the token sent there",
            "no redirect is followed",
            "slurmrestd",
        ),
        attack(
            "API server",
            "answer for the API server with a Location on another host, to have the token sent there",
            "no redirect is followed",
            "API server",
        ),
    ],
)
async def test_no_redirect_is_followed(kind: str) -> None:
    statuses = iter([b"301 R", b"302 R", b"303 R", b"307 R", b"308 R"] * 2)

    async with between(lambda _: [whole(json.dumps(PING).encode())]) as elsewhere:
        where = b"Location: http://localhost:%d/elsewhere\r\n" % elsewhere.port
        async with (
            between(lambda _: [whole(b"", where, next(statuses))]) as peer,
            asking(kind, peer.port) as ask,
        ):
            for _ in range(5):
                with pytest.raises((SlurmError, KubeError)):
                    await ask()
    assert [] == elsewhere.asked
    assert 5 == len([head for head in peer.asked if TOKEN.encode() in head])


@pytest.mark.attack(
    "have a proxy's address put into the environment of our programs, or a password into a .netrc, so that tokens go there",
    "nothing of it is read; a proxy of the API server stands in the kubeconfig",
)
@pytest.mark.parametrize("kind", ["slurmrestd", "API server"])
async def test_no_proxy_of_the_environment_gets_a_token(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login evil password evil\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with (
        between(lambda _: [whole(json.dumps(PING).encode())]) as proxy,
        between(lambda _: [whole(json.dumps(PING).encode())]) as peer,
    ):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        async with asking(kind, peer.port) as ask:
            await ask()
    assert [] == proxy.asked
    assert peer.asked
    assert not [head for head in peer.asked if b"authorization: basic" in head.lower()]


@pytest.mark.parametrize(
    "kind",
    [
        attack(
            "slurmrestd",
            "say something on slurmrestd's idle connection, so that each later request gets the answer to the one before",
            "a connection on which something comes unasked is closed",
            "slurmrestd",
        ),
        attack(
            "API server",
            "say something on the API server's idle connection, so that each later request gets the answer to the one before",
            "a connection on which something comes unasked is closed",
            "API server",
        ),
    ],
)
async def test_what_nobody_asked_for_answers_no_request(kind: str) -> None:
    async with (
        between(lambda _: [whole(json.dumps(PING).encode())]) as peer,
        asking(kind, peer.port) as ask,
    ):
        await ask()
        assert peer.writer
        peer.writer.write(whole(b'{"errors":[{"error":"evil"}]}', status=b"500 Evil"))
        await asyncio.sleep(0.1)
        count = len(peer.asked)
        for _ in range(3):
            await ask()
    assert count + 3 == len(peer.asked)


@pytest.mark.attack(
    "set cookies with each answer, until every request is longer than a server takes",
    "no cookie is remembered",
)
@pytest.mark.parametrize("kind", ["slurmrestd", "API server"])
async def test_no_cookie_is_sent_back(kind: str) -> None:
    number = 0

    def answer(_head: bytes) -> Pieces:
        nonlocal number
        number += 1
        cookie = b"Set-Cookie: a%d=%s; Path=/\r\n" % (number, b"x" * 3000)
        return [whole(json.dumps(PING).encode(), cookie)]

    async with between(answer) as peer, asking(kind, peer.port) as ask:
        for _ in range(5):
            await ask()
    assert len(peer.asked) >= 5
    assert not [head for head in peer.asked if b"\ncookie" in head.lower()]


@pytest.mark.parametrize(
    "kind",
    [
        attack(
            "slurmrestd",
            "answer for slurmrestd with a megabyte that expands to a gigabyte",
            "64 MiB of what it expands to",
            "slurmrestd",
        ),
        attack(
            "API server",
            "answer for the API server with a megabyte that expands to a gigabyte, although nothing compressed was asked for",
            "it is not expanded",
            "API server",
        ),
    ],
)
async def test_a_compressed_answer_does_not_fill_memory(kind: str) -> None:
    bomb = gigabyte()

    def answer(head: bytes) -> Pieces:
        is_first = b"/ping" in head
        return [
            whole(json.dumps(PING).encode())
            if is_first
            else whole(bomb, b"Content-Encoding: gzip\r\n")
        ]

    async with between(answer) as peer, asking(kind, peer.port) as ask:
        before = peak_mib(begins_anew=True)
        with contextlib.suppress(SlurmError, KubeError):
            assert len(await ask()) < 2 * 2**20
        grown = peak_mib() - before
    assert grown < 160
    assert b"identity" in peer.asked[-1] or kind == "slurmrestd"


@functools.cache
def gigabyte() -> bytes:
    stream = zlib.compressobj(9, wbits=31)
    return b"".join([*(stream.compress(b" " * 2**20) for _ in range(1024)), stream.flush()])


def peak_mib(*, begins_anew: bool = False) -> int:
    """What this process has held at most since the last beginning."""
    if begins_anew:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) // 1024


def drip(beginning: bytes) -> Pieces:
    yield beginning
    while True:
        yield b"x"
        yield TIMEOUT_S / 10


def provisional() -> Pieces:
    while True:
        yield b"HTTP/1.1 102 Processing\r\n\r\n"
        yield TIMEOUT_S / 10


@pytest.mark.parametrize(
    "pieces",
    [
        attack(
            "head",
            "answer one byte at a time in the head, so that no silence is long enough to give up",
            "a whole answer has a deadline, not its pieces",
            lambda: drip(b"HTTP/1.1 200 OK\r\nX-A: "),
        ),
        attack(
            "body",
            "answer one byte at a time in the body, so that no silence is long enough to give up",
            "a whole answer has a deadline, not its pieces",
            lambda: drip(OK + b"Content-Length: 100000\r\n\r\n"),
        ),
        attack(
            "provisional",
            "send provisional answers (`102 Processing`) without an end",
            "a whole answer has a deadline, not its pieces",
            provisional,
        ),
    ],
)
async def test_an_answer_that_never_ends_is_given_up(pieces: Callable[[], Pieces]) -> None:
    for kind in ("slurmrestd", "API server"):
        async with between(lambda _: pieces()) as peer, asking(kind, peer.port) as ask:
            with pytest.raises((SlurmError, KubeError)):
                async with asyncio.timeout(5 * TIMEOUT_S):
                    await ask()
