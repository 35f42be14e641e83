import asyncio
import contextlib
import socket
import ssl
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from slurmruntime.process import serve
from tests.make.certificates import Authority
from tests.make.peers import Answer, Connection, connection, serving, talk


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the body it got."""
    message = await receive()
    assert not message["more_body"]
    await PlainTextResponse(message["body"])(scope, receive, send)


@pytest.fixture
def server_tls(tmp_path: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*Authority().issue("server").write(tmp_path, "server"))
    return context


@pytest.fixture
def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class TestBind:
    @pytest.mark.parametrize(
        ("address", "family", "host"),
        [
            ("127.0.0.1:0", socket.AF_INET, "127.0.0.1"),
            ("[::1]:0", socket.AF_INET6, "::1"),
            ("localhost:0", socket.AF_INET, "127.0.0.1"),
        ],
    )
    def test_an_address_becomes_a_socket(self, address: str, family: int, host: str) -> None:
        with serve.bind(address) as sock:
            assert (family, host) == (sock.family, sock.getsockname()[0])

    def test_a_socket_says_that_it_is_tcp(self) -> None:
        """Otherwise asyncio leaves Nagle's algorithm on."""
        with serve.bind("127.0.0.1:0") as sock:
            assert socket.IPPROTO_TCP == sock.proto

    def test_an_address_in_use_is_named(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            with pytest.raises(
                OSError, match=f"cannot listen on {address}: Address already in use"
            ):
                serve.bind(address)


class TestAnswers:
    async def test_a_body_comes_back_over_plain_http(self) -> None:
        async with serving(echo) as address:
            answer = await talk(address, lambda peer: peer.ask("POST", "/", b"hello"))

        assert (200, b"hello") == (answer.status, answer.body)

    async def test_nothing_is_said_about_the_server(self) -> None:
        async with serving(echo) as address:
            answer = await talk(address, Connection.ask)

        assert {"content-length", "content-type"} == answer.headers.keys()

    @pytest.mark.parametrize("size", [2, 5000])
    @pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
    async def test_head_and_body_leave_in_one_segment(
        self,
        size: int,
        *,
        encrypted: bool,
        server_tls: ssl.SSLContext,
        trusting: ssl.SSLContext,
    ) -> None:
        def segments(peer: Connection) -> int:
            peer.ask(
                "POST", "/", b"x" * size
            )  # what a handshake leaves behind comes with the first
            before = peer.segments_in()
            for _ in range(10):
                peer.ask("POST", "/", b"x" * size)
            return peer.segments_in() - before

        async with serving(echo, tls=server_tls if encrypted else None) as address:
            assert 10 == await talk(address, segments, tls=trusting if encrypted else None)

    async def test_requests_sent_at_once_are_answered_in_order(self) -> None:
        def pipeline(peer: Connection) -> list[bytes]:
            for body in (b"1", b"2"):
                peer.send("POST", "/", body)
            both = b""
            while both.count(b"\r\n\r\n") < 2 or not both.endswith(b"2"):
                both += peer.sock.recv(65536)
            return [part[:1] for part in both.split(b"\r\n\r\n")[1:]]

        async with serving(echo) as address:
            assert [b"1", b"2"] == await talk(address, pipeline)

    async def test_an_exception_is_a_500_and_is_logged_with_its_traceback(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def broken(scope: Scope, receive: Receive, send: Send) -> None:
            raise ZeroDivisionError

        async with serving(broken) as address:
            answer = await talk(address, Connection.ask)

        assert 500 == answer.status
        assert "ZeroDivisionError" in caplog.text


class TestBodyLimit:
    async def test_a_body_of_the_limit_is_taken_and_one_byte_more_is_not(self) -> None:
        async with serving(serve.BodyLimit(echo, 70_000)) as address:
            fits = await talk(address, lambda peer: peer.ask("POST", "/", b"x" * 70_000))
            too_long = await talk(address, lambda peer: peer.ask("POST", "/", b"x" * 70_001))

        assert (200, 70_000) == (fits.status, len(fits.body))
        assert (413, b"the body is longer than 70000 bytes\n") == (too_long.status, too_long.body)
        assert "close" == too_long.headers["connection"]

    async def test_the_default_limit_holds_for_every_application(self) -> None:
        async with serving(echo) as address:
            body = b"x" * (serve.BODY_LIMIT_BYTES + 1)
            answer = await talk(address, lambda peer: peer.ask("POST", "/", body))

        assert 413 == answer.status

    async def test_a_body_that_does_not_come_is_not_waited_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(serve, "REQUEST_S", 0.05)

        def promise_and_wait(peer: Connection) -> Answer:
            peer.sock.sendall(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\nhalf")
            return peer.answer()

        async with serving(echo) as address:
            answer = await talk(address, promise_and_wait)

        assert (408, b"the body did not arrive within 0.05 s\n") == (answer.status, answer.body)
        assert "close" == answer.headers["connection"]

    async def test_while_long_bodies_come_in_only_small_ones_are_taken(self) -> None:
        half = asyncio.Event()

        async def come_half(_messages: list[Message] = []) -> Message:  # noqa: B006  # counts the calls
            if not _messages:
                _messages.append({})
                return {"type": "http.request", "body": b"x" * 60, "more_body": True}
            await half.wait()
            return {"type": "http.disconnect"}

        async def come(size: int) -> int:
            statuses: list[int] = []

            async def receive() -> Message:
                return {"type": "http.request", "body": b"x" * size, "more_body": False}

            async def send(message: Message) -> None:
                statuses.append(message.get("status", 0))

            await limited({"type": "http"}, receive, send)
            return statuses[0]

        async def answer(_scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await send({"type": "http.response.start", "status": 200})

        async def ignore(_message: Message) -> None:
            """Nobody is there."""

        async def come_and_go() -> None:
            await limited({"type": "http"}, come_half, ignore)

        limited = serve.BodyLimit(answer, all_limit_bytes=100, small_bytes=30)
        async with asyncio.TaskGroup() as group:
            group.create_task(come_and_go())
            await asyncio.sleep(0)
            assert [200, 503, 200] == [await come(40), await come(41), await come(30)]
            half.set()

        assert 200 == await come(100)

    @pytest.mark.parametrize("line", [b"X-Header: value\r\n", b"x"])
    async def test_a_head_without_end_is_cut(self, line: bytes) -> None:
        def talk_on(peer: Connection) -> bool:
            try:
                peer.sock.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n")
                for _ in range(2000):
                    peer.sock.sendall(line * 100)
            except ConnectionError:
                return True
            return peer.is_closed()

        async with serving(echo) as address:
            assert await talk(address, talk_on)

    async def test_a_head_that_does_not_come_is_not_waited_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(serve, "REQUEST_S", 0.05)

        def say_half(peer: Connection) -> tuple[bytes, bool]:
            first = peer.ask("POST", "/", b"whole")  # a connection that has served is no different
            peer.sock.sendall(b"GET / HT")
            return first.body, peer.is_closed()

        async with serving(echo) as address:
            assert (b"whole", True) == await talk(address, say_half)

    async def test_who_goes_away_in_the_middle_of_a_body_reaches_no_application(self) -> None:
        async def unreachable(scope: Scope, receive: Receive, send: Send) -> None:
            raise AssertionError

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(_message: Message) -> None:
            raise AssertionError

        await serve.BodyLimit(unreachable)({"type": "http"}, receive, send)


class TestConnections:
    """Who opens many connections closes own ones, and no other."""

    async def test_a_burst_is_answered_to_the_last(self) -> None:
        """They wait in the socket's queue while the loop is busy, and are accepted one after another."""
        sock, stop = serve.bind("127.0.0.1:0"), asyncio.Event()
        sock.listen(1000)
        with contextlib.ExitStack() as opened:
            peers = [opened.enter_context(connection(sock.getsockname())) for _ in range(400)]
            for peer in peers:
                peer.send("POST", "/", b"x")
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                group.create_task(serve.serve(echo, sock, stop=stop))
                bodies = [(await asyncio.to_thread(peer.answer)).body for peer in peers]
                stop.set()
        assert [b"x"] * 400 == bodies

    async def test_bodies_that_do_not_come_keep_nobody_out(self) -> None:
        async with serving(echo, most_connections=4) as address:
            with contextlib.ExitStack() as opened:
                for number in range(20):
                    peer = opened.enter_context(connection(address))
                    if number % 2:
                        await asyncio.to_thread(peer.ask)
                    peer.sock.sendall(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n")
                answers = [
                    await talk(address, lambda peer: peer.ask("POST", "/", b"honest"))
                    for _ in range(5)
                ]
        assert [b"honest"] * 5 == [answer.body for answer in answers]

    async def test_those_that_ask_nothing_close_none_that_waits_for_its_response(self) -> None:
        may_answer = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            await may_answer.wait()
            await echo(scope, receive, send)

        async with serving(slow, most_connections=4) as address:
            with contextlib.ExitStack() as opened:
                waiting = [opened.enter_context(connection(address)) for _ in range(4)]
                for peer in waiting:
                    peer.send("POST", "/", b"held")
                await asyncio.sleep(0.1)
                for _ in range(20):
                    opened.enter_context(connection(address))
                one_more = opened.enter_context(connection(address))
                one_more.send("POST", "/", b"too many")
                is_closed = await asyncio.to_thread(one_more.is_closed)
                may_answer.set()
                bodies = [(await asyncio.to_thread(peer.answer)).body for peer in waiting]
        assert [b"held"] * 4 == bodies
        assert is_closed


class TestStop:
    async def test_a_request_under_way_is_answered_and_its_connection_closed(self) -> None:
        stop = asyncio.Event()
        arrived = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            arrived.set()
            await stop.wait()
            await PlainTextResponse("done")(scope, receive, send)

        sock = serve.bind("127.0.0.1:0")
        address = sock.getsockname()
        sock.listen()
        async with asyncio.TaskGroup() as group:
            group.create_task(serve.serve(slow, sock, stop=stop))
            with connection(address) as peer:
                asking = group.create_task(asyncio.to_thread(peer.ask))
                await arrived.wait()
                stop.set()
                answer = await asking

        assert (200, b"done", "close") == (
            answer.status,
            answer.body,
            answer.headers["connection"],
        )
        with pytest.raises(ConnectionRefusedError), connection(address):
            pass

    async def test_idle_connections_are_closed_at_once(self) -> None:
        with contextlib.ExitStack() as peers:
            async with serving(echo) as address:
                peer = peers.enter_context(connection(address))
                await asyncio.to_thread(peer.ask)

            assert await asyncio.to_thread(peer.is_closed)

    async def test_a_request_that_takes_longer_than_the_grace_is_cut(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        arrived = asyncio.Event()

        async def endless(scope: Scope, receive: Receive, send: Send) -> None:
            arrived.set()
            await asyncio.Event().wait()

        with contextlib.ExitStack() as peers:
            async with serving(endless, grace_s=0) as address:
                peer = peers.enter_context(connection(address))
                await asyncio.to_thread(peer.send, "GET", "/", b"")
                await arrived.wait()

            assert await asyncio.to_thread(peer.is_closed)
        assert "timeout graceful shutdown exceeded" in caplog.text

    async def test_a_cancelled_server_leaves_nothing_open(self) -> None:
        sock = serve.bind("127.0.0.1:0")
        address = sock.getsockname()
        sock.listen()
        async with asyncio.TaskGroup() as group:
            server = group.create_task(serve.serve(echo, sock, stop=asyncio.Event()))
            with connection(address) as peer:
                await asyncio.to_thread(peer.ask)
                server.cancel()
                await asyncio.wait([server])

                assert await asyncio.to_thread(peer.is_closed)
        with pytest.raises(ConnectionRefusedError), connection(address):
            pass
