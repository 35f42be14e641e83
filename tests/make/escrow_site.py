"""A site whose slurmctld runs our script: its folder, its settings, and those who stand for us."""

import asyncio
import json
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.make import peers
from tests.make.certificates import Authority

SCRIPT = Path(__file__).parents[2] / "deploy" / "escrow" / "slurm-bridge-escrow"
TOKEN = "c" * 64
ENDS_S = 30.0
START, END = "prolog_slurmctld", "epilog_slurmctld"


@dataclass
class Bridge:
    """Stands for extender and controllers: records what it is told, and answers as a test wants."""

    answer: Callable[[int], Awaitable[Response]]
    """By the number of the question, from 1."""
    said: list[tuple[str, str, object]] = field(default_factory=list)
    """Path, Authorization, body."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.said.append((request.url.path, request.headers.get("authorization", ""), body))
        self.asked.set()
        return await self.answer(len(self.said))


class Site:
    """A folder with the script and its settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / SCRIPT.name
        shutil.copy(SCRIPT, self.script)
        self.token_file = folder / "token"
        self.token_file.write_text(f"{TOKEN}\n{'d' * 64}\n")
        self.authority = Authority()
        (folder / "ca.crt").write_bytes(self.authority.certificate)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(*self.authority.issue("bridge").write(folder, "bridge"))

    def configure(self, *urls: str, **changed: object) -> None:
        settings = {
            "URLS": " ".join(urls),
            "TOKEN_FILE": self.token_file,
            "CA_FILE": self.folder / "ca.crt",
            "DEADLINE_S": 4,
            "AWAY_S": 2,
            "LONGEST_S": 2,
            **changed,
        }
        text = "".join(f"{name}='{value}'\n" for name, value in settings.items())
        (self.folder / f"{SCRIPT.name}.conf").write_text(text)

    def own(self, *marks: str, code: int = 0) -> str:
        """A site's own scripts, as a setting; each leaves its mark."""
        for mark in marks:
            script = self.folder / mark
            script.write_text(
                f'#!/bin/sh\necho "$SLURM_SCRIPT_CONTEXT {mark}" >> {self.folder}/ran\nexit {code}\n'
            )
            script.chmod(0o755)
        return " ".join(str(self.folder / mark) for mark in marks)

    def ran(self) -> list[str]:
        return (self.folder / "ran").read_text().splitlines()

    @asynccontextmanager
    async def serving(
        self, answer: Callable[[int], Awaitable[Response]]
    ) -> AsyncIterator[tuple[Bridge, str]]:
        bridge = Bridge(answer)
        routes = [Route(path, bridge.take, methods=["POST"]) for path in ("/v1/start", "/v1/end")]
        async with peers.serving(
            Starlette(routes=routes), tls=self.tls, grace_s=1, within_s=ENDS_S
        ) as (host, port):
            yield bridge, f"https://{host}:{port}"

    async def start(self, context: str = START, **environment: str) -> asyncio.subprocess.Process:
        known = {
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_PARTITION": "batch",
            "SLURM_SCRIPT_CONTEXT": context,
        }
        return await asyncio.create_subprocess_exec(
            self.script,
            env={**known, **environment},
            cwd="/",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def run(self, context: str = START, **environment: str) -> tuple[int, str]:
        """Exit code and output."""
        process = await self.start(context, **environment)
        async with asyncio.timeout(ENDS_S):
            output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()
