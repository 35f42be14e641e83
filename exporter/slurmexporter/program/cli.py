"""Runs the exporter: serves, prints one page, or checks."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from importlib.metadata import PackageNotFoundError, version

from aiohttp import web

from slurmclient import Client, SlurmError, Tls, TokenFile, UnusableTls
from slurmclient.transport import tokens
from slurmclient.transport.jwt import expires_at
from slurmclient.transport.tokens import TokenSource
from slurmexporter.collecting.collector import Collector
from slurmexporter.collecting.journal import Journal
from slurmexporter.collecting.latest import Latest
from slurmexporter.door import reception
from slurmexporter.door.admission import protect
from slurmexporter.door.reception import Reception, Room
from slurmexporter.door.web_config import UnusableWebConfig
from slurmexporter.door.web_file import POLL_S, WebFile
from slurmexporter.program import check
from slurmexporter.program.arguments import Command, parse
from slurmexporter.serving.app import Server
from slurmexporter.serving.pages import Pages
from slurmexporter.settings import Settings

_LOG = logging.getLogger(__name__)
_CONNECTIONS = 6
_SWITCH_S = 0.0005
"""Switch interval of the interpreter: a thread renders pages, and a scrape must not wait Python's default of 5 ms for it."""


def main() -> None:
    """Run the command."""
    command = parse(sys.argv[1:], os.environ)
    logging.basicConfig(
        level=command.settings.log_level.upper(),
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    sys.setswitchinterval(_SWITCH_S)
    try:
        code = asyncio.run(run(command))
    except (OSError, ValueError, UnusableTls, UnusableWebConfig) as error:
        sys.exit(f"slurm-exporter: {error}")
    sys.exit(code)


async def run(command: Command) -> int:
    """Do what the command says; return the exit code."""
    settings = command.settings
    token = token_source(settings)
    journal = Journal()
    web_file = WebFile(settings.web_config_file)
    async with client(settings, token, journal) as slurm:
        if command.is_check:
            return await _check(slurm)
        latest = Latest(settings, time.monotonic)
        pages = Pages(latest, settings)
        collector = Collector(
            slurm, settings, journal=journal, latest=latest, on_news=pages.refresh
        )
        server = Server(
            settings,
            pages=pages,
            collector=collector,
            latest=latest,
            journal=journal,
            version=release(),
            started_s=time.time(),  # noqa: TID251  # when the counters begin
        )
        if command.is_once:
            await collector.read_once()
            sys.stdout.buffer.write(await server.text(settings.names))
            return 0 if journal.is_slurmctld_up else 1
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(collector.run()),
                group.create_task(_watch_token(token, journal, settings.interval_s)),
                group.create_task(_watch_web_file(web_file, journal)),
            ]
            await _serve(settings, server.app(), web_file)
            for task in tasks:
                task.cancel()
    return 0


def client(settings: Settings, token: TokenSource | None, journal: Journal) -> Client:
    """Return the client for these settings. It does not retry: the schedules repeat failed readings."""
    tls = None
    if settings.ca_file or settings.cert_file:
        tls = Tls(
            ca_file=settings.ca_file, cert_file=settings.cert_file, key_file=settings.key_file
        )
    return Client(
        settings.urls,
        token=token,
        api=settings.api,
        tls=tls,
        timeout_s=settings.timeout_s,
        connections=_CONNECTIONS,
        attempts=1,
        on_call=journal.on_call,
    )


def token_source(settings: Settings) -> TokenSource | None:
    """Return the source of the token: the file in the settings, or the environment."""
    if settings.token_file:
        return TokenFile(settings.token_file)
    return tokens.from_environment()


def release() -> str:
    """Return the exporter's version."""
    try:
        return version("slurm-exporter")
    except PackageNotFoundError:
        return "0+tree"


async def _serve(settings: Settings, app: web.Application, web_file: WebFile) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    sockets = reception.bind(settings.host, settings.port)
    room = Room()
    protect(app, web_file, room)
    runner = web.AppRunner(
        app, access_log=None, keepalive_timeout=reception.IDLE_S, shutdown_timeout=2
    )
    await runner.setup()
    assert runner.server  # noqa: S101  # set up
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(Reception(sock, room, web_file, runner.server).run())
                for sock in sockets
            ]
            _LOG.info("serving on port %d", settings.port)
            await stop.wait()
            for task in tasks:
                task.cancel()
    finally:
        for sock in sockets:
            sock.close()
        await runner.cleanup()


async def _watch_web_file(web_file: WebFile, journal: Journal) -> None:
    while True:
        journal.degrade("web_config", holds=bool(web_file.fault))
        await asyncio.sleep(POLL_S)
        web_file.look()


async def _watch_token(token: TokenSource | None, journal: Journal, every_s: float) -> None:
    while True:
        if token is not None:
            with contextlib.suppress(SlurmError):
                expiry = expires_at(await token.token())
                journal.token_expires_s = expiry.timestamp() if expiry else None
        await asyncio.sleep(every_s)


async def _check(slurm: Client) -> int:
    all_pass = True
    async for passes, text in check.findings(slurm):
        print(f"{'ok  ' if passes else 'FAIL'}  {text}")  # noqa: T201  # the command's output
        all_pass = all_pass and passes
    return 0 if all_pass else 1
