"""Who is let in, what is answered, and that nothing is without a bound."""

import asyncio
import contextlib
from pathlib import Path

import httpx
import pytest

from bridge.escrow import endpoint
from bridge.escrow.tokens import Tokens
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.ids import JobId
from tests.make.peers import Answer, Connection, connection, serving, talk
from tests.servers import until

TOKEN = "a" * 64
SHOWN = {"authorization": f"Bearer {TOKEN}"}


class Hall:
    """Behind the door: records what arrives."""

    def __init__(self, folder: Path) -> None:
        self.reason = ""
        self.said: list[tuple[str, int]] = []
        self.token_file = folder / "token"
        self.token_file.write_text(f"{TOKEN}\n")
        self.metrics = Metrics("controllers")
        self.serve_anew()

    def serve_anew(self) -> None:
        self.app = endpoint.create(
            tokens=Tokens(str(self.token_file)),
            until_free=self.until_free,
            note=self.note,
            hints=self,  # type: ignore[arg-type]  # all that is called
            metrics=self.metrics,
        )

    async def note(self) -> None:
        self.said.append(("noted", 0))

    def started(self, job_id: JobId) -> None:
        self.said.append(("started", job_id))

    def ended(self, job_id: JobId) -> None:
        self.said.append(("ended", job_id))

    async def until_free(self, job_id: JobId) -> str:
        self.said.append(("asked", job_id))
        return self.reason

    async def post(
        self, path: str, body: str = '{"job": 7}', shown: dict[str, str] | None = None
    ) -> tuple[int, str]:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="https://door"
        ) as client:
            answer = await client.post(
                path, content=body, headers=SHOWN if shown is None else shown
            )
        return answer.status_code, answer.text


@pytest.fixture
def hall(tmp_path: Path) -> Hall:
    return Hall(tmp_path)


async def test_a_start_is_told_and_asked_about(hall: Hall) -> None:
    assert (200, "go\n") == await hall.post("/v1/start")
    hall.reason = "team-a/old"
    assert (200, "wait: team-a/old\n") == await hall.post("/v1/start")
    assert [("started", 7), ("noted", 0), ("asked", 7)] * 2 == hall.said


async def test_an_end_is_only_told(hall: Hall) -> None:
    assert (200, "go\n") == await hall.post("/v1/end")
    assert [("ended", 7)] == hall.said


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param({}, id="none"),
        pytest.param({"authorization": f"Bearer {TOKEN[:-1]}"}, id="one character less"),
        pytest.param({"authorization": f"Bearer {TOKEN}b"}, id="one more"),
        pytest.param({"authorization": "Bearer "}, id="empty"),
        pytest.param({"authorization": f"Basic {TOKEN}"}, id="another scheme"),
        pytest.param({"authorization": TOKEN}, id="no scheme"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/start", "/v1/end"])
async def test_nobody_without_the_token_is_heard(
    hall: Hall, path: str, shown: dict[str, str]
) -> None:
    assert 401 == (await hall.post(path, shown=shown))[0]
    assert [] == hall.said


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("", "no token", id="empty file"),
        pytest.param("short\n", "no token", id="a token that can be guessed"),
        pytest.param("x" * 5000, "longer", id="no token file"),
        pytest.param(None, "No such file", id="no file"),
    ],
)
async def test_without_a_usable_token_file_nobody_is_heard(
    hall: Hall, text: str | None, fault: str
) -> None:
    hall.token_file.unlink()
    if text is not None:
        hall.token_file.write_text(text)
    assert 401 == (await hall.post("/v1/start"))[0]
    assert (
        401 == (await hall.post("/v1/start", shown={"authorization": f"Bearer {text}"[:4000]}))[0]
    )
    assert fault in (Tokens(str(hall.token_file)).fault() or "")


async def test_a_token_can_be_replaced_without_a_gap(hall: Hall) -> None:
    new = "b" * 64
    shown = {"authorization": f"Bearer {new}"}
    assert 401 == (await hall.post("/v1/start", shown=shown))[0]
    hall.token_file.write_text(f"{TOKEN}\n{new}\n")
    assert [200, 200] == [
        (await hall.post("/v1/start"))[0],
        (await hall.post("/v1/start", shown=shown))[0],
    ]
    hall.token_file.write_text(new)
    assert [401, 200] == [
        (await hall.post("/v1/start"))[0],
        (await hall.post("/v1/start", shown=shown))[0],
    ]
    assert Tokens(str(hall.token_file)).fault() is None


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{}",
        "7",
        '{"job": "7"}',
        '{"job": 0}',
        '{"job": -1}',
        '{"job": 4294967296}',
        '{"job": 1e400}',
    ],
)
async def test_what_is_no_message_is_refused(hall: Hall, body: str) -> None:
    assert 400 == (await hall.post("/v1/start", body))[0]
    assert [] == hall.said


async def test_a_long_body_is_refused(hall: Hall) -> None:
    assert 413 == (await hall.post("/v1/start", '{"job": 7}' + " " * 2000))[0]


async def test_answers_are_counted(hall: Hall) -> None:
    await hall.post("/v1/start")
    hall.reason = "no"
    await hall.post("/v1/start")
    await hall.post("/v1/end")
    await hall.post("/v1/end", shown={})
    await hall.post("/v1/end", "")
    text = hall.metrics.registry.exposition().decode()
    for outcome in ("go", "wait", "told", "unauthorized", "malformed"):
        assert f'escrow_messages_total{{outcome="{outcome}"' in text.replace(
            'program="controllers",', ""
        )


@pytest.mark.attack(
    "hold the escrow's connections without its token, so that prologs which wait are cut off and their jobs delayed",
    "the token is checked before the body is read, and who has not shown one closes no connection of who has",
)
async def test_who_has_no_token_closes_no_connection_of_a_script_that_waits(hall: Hall) -> None:
    may_go, most, message = asyncio.Event(), 4, b'{"job": 7}'

    async def until_free(job_id: JobId) -> str:
        hall.said.append(("asked", job_id))
        await may_go.wait()
        return ""

    hall.until_free = until_free  # type: ignore[method-assign]  # a job that has to wait
    hall.serve_anew()

    def starts(peer: Connection, shown: str, body: bytes) -> None:
        length = len(message)
        peer.sock.sendall(
            f"POST /v1/start HTTP/1.1\r\nHost: test\r\nAuthorization: {shown}\r\n"
            f"Content-Length: {length}\r\n\r\n".encode()
            + body
        )

    with contextlib.ExitStack() as opened:
        async with serving(hall.app, most_connections=most, limits_bodies=False) as address:
            waiting = [opened.enter_context(connection(address)) for _ in range(most)]
            for peer in waiting:
                starts(peer, f"Bearer {TOKEN}", message)
            await until(lambda: len(hall.said) == 3 * most, 10)
            for number in range(40):
                intruder = opened.enter_context(connection(address))
                match number % 3:
                    case 0:
                        starts(intruder, "Bearer wrong", b"")
                    case 1:
                        intruder.sock.sendall(b"POST /v1/start HTTP/1.1\r\nA: ")
                    case _:
                        pass
            may_go.set()
            answers = [await asyncio.to_thread(peer.answer) for peer in waiting]

    assert [b"go\n"] * most == [answer.body for answer in answers]


async def test_without_the_token_no_body_is_waited_for(hall: Hall) -> None:
    async with serving(hall.app, limits_bodies=False) as address:

        def half(peer: Connection) -> Answer:
            peer.sock.sendall(
                b"POST /v1/start HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n{"
            )
            return peer.answer()

        answer = await talk(address, half)
    assert (401, "close") == (answer.status, answer.headers["connection"])


@pytest.mark.attack(
    "have the escrow invite a body by `Expect: 100-continue`, without its token",
    "the token is checked first: 401 is all that is said, and the connection is closed",
)
async def test_nobody_without_the_token_is_invited_to_send_a_body(hall: Hall) -> None:
    def expect(peer: Connection) -> bytes:
        peer.sock.sendall(
            b"POST /v1/start HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\n"
            b"Authorization: Bearer wrong\r\nContent-Length: 1000\r\n\r\n"
        )
        said = b""
        while piece := peer.sock.recv(65536):
            said += piece
        return said

    async with serving(hall.app, limits_bodies=False) as address:
        said = await talk(address, expect)
    assert said.startswith(b"HTTP/1.1 401 ")
    assert b" 100 " not in said
