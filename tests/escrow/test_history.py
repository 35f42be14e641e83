"""Extender and controllers are killed while slurmctld's script asks them: the job is held until one of them lets it go.

The script, its shell, curl and TLS are real. The doors are sockets that die as a killed process does: their connections
are cut, and nobody listens until they are back.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.make.escrow_site import ENDS_S, Site

pytestmark = pytest.mark.slow

AWAY_S = 1
"""Shorter than anybody needs to come back here."""
STILL_S = 3.5
"""So long nobody is there: longer than AWAY_S, the script's pause and the steps of its clock."""
HELD_S = 2.5
"""So long a question is open: long enough not to be taken for one that nobody took."""


class Door:
    """Extender or controllers, as the script sees them."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._port = 0
        self._server: asyncio.Server | None = None
        self._questions: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._word = ""
        self._spoken = asyncio.Event()
        self.asked = asyncio.Event()
        """Set once a question is open, or was answered, since the last start."""

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Listen, at the same port again; questions stay open until there is a word."""
        self.asked.clear()
        self._server = await asyncio.start_server(
            self._answer, "127.0.0.1", self._port, ssl=self._tls
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def kill(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self._server = None
        questions = dict(self._questions)
        for writer in questions.values():
            writer.transport.abort()
        for question in questions:
            question.cancel()
        await asyncio.gather(*questions, return_exceptions=True)

    def say(self, word: str) -> None:
        """Answer the question that is open, and all later ones."""
        self._word = word
        self._spoken.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._questions[task] = writer
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await reader.readuntil(b"}")
                self.asked.set()
                await self._spoken.wait()
                body = f"{self._word}\n"
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
                writer.write(f"{head}\r\n{body}".encode())
                await writer.drain()
        finally:
            del self._questions[task]
            writer.close()


class Scene:
    """The script of one job, and the two that it asks."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.extender, self.controllers = Door(site.tls), Door(site.tls)
        self._script: asyncio.subprocess.Process | None = None

    async def begin(self) -> None:
        self._script = await self._site.start()

    async def hears(self, door: Door) -> None:
        async with asyncio.timeout(ENDS_S):
            await door.asked.wait()

    async def is_held(self, seconds: float) -> bool:
        """Whether the script is still there after a while: the job is not launched."""
        assert self._script is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._script.wait()
        return self._script.returncode is None

    async def ends(self) -> None:
        """Wait until the job may be launched."""
        assert self._script is not None
        async with asyncio.timeout(ENDS_S):
            assert 0 == await self._script.wait()

    async def tear_down(self) -> None:
        for door in (self.extender, self.controllers):
            await door.kill()
        if self._script is not None and self._script.returncode is None:
            self._script.terminate()
            await self._script.wait()


@asynccontextmanager
async def scene(site: Site, **settings: object) -> AsyncIterator[Scene]:
    found = Scene(site)
    try:
        for door in (found.extender, found.controllers):
            await door.start()
        urls = (found.extender.url, found.controllers.url)
        site.configure(*urls, **{"DEADLINE_S": 60, "AWAY_S": AWAY_S, "LONGEST_S": 13, **settings})
        yield found
    finally:
        await found.tear_down()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


async def while_the_first_holds_it(there: Scene) -> None:
    """The history of the soak: the extender dies while it holds the question, and the controllers are away already."""
    await there.begin()
    await there.hears(there.extender)
    await there.controllers.kill()
    assert await there.is_held(HELD_S), "while the extender holds it"
    await there.extender.kill()


async def while_the_second_holds_it(there: Scene) -> None:
    """The one that is back dies again, too."""
    await there.begin()
    await there.hears(there.extender)
    assert await there.is_held(HELD_S), "while the extender holds it"
    await there.extender.kill()
    await there.hears(there.controllers)
    await there.extender.start()
    assert await there.is_held(HELD_S), "while the controllers hold it"
    await there.extender.kill()
    await there.controllers.kill()


async def after_it_was_told_to_wait(there: Scene) -> None:
    there.extender.say("wait: team-a/old")
    await there.begin()
    await there.hears(there.extender)
    assert await there.is_held(0.5), "which has been told to wait"
    await there.controllers.kill()
    await there.extender.kill()


@pytest.mark.parametrize(
    "history",
    [
        while_the_first_holds_it,
        while_the_second_holds_it,
        after_it_was_told_to_wait,
    ],
)
async def test_a_job_that_was_held_is_held_until_somebody_is_back_and_lets_it_go(
    site: Site, history: Callable[[Scene], Awaitable[None]]
) -> None:
    async with scene(site) as there:
        await history(there)
        assert await there.is_held(STILL_S), "while nobody is there"
        await there.controllers.start()
        await there.hears(there.controllers)
        there.controllers.say("go")
        await there.ends()


async def test_the_deadline_counts_all_the_same(site: Site) -> None:
    async with scene(site, DEADLINE_S=7) as there:
        await while_the_first_holds_it(there)
        await there.ends()


async def test_whoever_closes_at_once_does_not_hold_a_job(site: Site) -> None:
    """A proxy with nobody behind it, or a port that wants another protocol."""
    closed = 0

    async def close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal closed
        closed += 1
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", 0, ssl=site.tls) as server:
        port = server.sockets[0].getsockname()[1]
        site.configure(f"https://127.0.0.1:{port}", DEADLINE_S=60, AWAY_S=3)
        assert (0, "") == await site.run()
        assert closed > 1
