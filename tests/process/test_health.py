import asyncio
import contextlib

import pytest

from slurmruntime.process import health, serve
from slurmruntime.process.health import Health
from slurmruntime.process.metrics import Metrics
from tests.make.peers import TIMEOUT_S, connection, serving, talk


async def test_ready_as_long_as_every_check_is_content() -> None:
    """The answer lists each check, so that an operator sees at once what is missing."""
    trouble: str | None = None
    checks = Health()
    checks.register("kubernetes", lambda: None)
    checks.register("slurm", lambda: trouble)
    async with serving(health.app(checks, Metrics("test"))) as address:
        good = await talk(address, lambda peer: peer.ask("GET", "/readyz"))
        trouble = "no news of Slurm for 31 s: connection refused"
        bad = await talk(address, lambda peer: peer.ask("GET", "/readyz"))
        live = await talk(address, lambda peer: peer.ask("GET", "/livez"))

    assert (200, b"[+] kubernetes: ok\n[+] slurm: ok\n") == (good.status, good.body)
    assert 503 == bad.status
    assert f"[+] kubernetes: ok\n[-] slurm: {trouble}\n" == bad.body.decode()
    assert 200 == live.status


async def test_what_is_not_needed_is_shown_and_does_not_make_us_unready() -> None:
    checks = Health()
    checks.register("old kind", lambda: "not found", is_needed=False)
    checks.register("slurm", lambda: None)
    async with serving(health.app(checks, Metrics("test"))) as address:
        answer = await talk(address, lambda peer: peer.ask("GET", "/readyz"))

    assert (200, b"[+] slurm: ok\n[-] old kind: not found\n") == (answer.status, answer.body)


async def test_metrics_are_served_as_prometheus_wants_them() -> None:
    metrics = Metrics("test")
    metrics.pods.decided("Submit")
    async with serving(health.app(Health(), metrics)) as address:
        answer = await talk(address, lambda peer: peer.ask("GET", "/metrics"))

    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert b'slurm_bridge_decisions_total{action="Submit"} 1.0\n' in answer.body


def test_the_metrics_are_written_out_once_a_second_however_often_they_are_scraped() -> None:
    now_s, written = 0.0, 0

    def write() -> bytes:
        nonlocal written
        written += 1
        return str(written).encode()

    text = health.MetricsText(write, lambda: now_s)
    scraped = {text.now() for _ in range(250)}
    now_s = health.EXPOSITION_S
    later = text.now()

    assert {b"1"} == scraped
    assert b"2" == later
    assert 2 == written


async def test_a_scrape_does_not_write_the_metrics_out_again() -> None:
    metrics = Metrics("test")
    async with serving(health.app(Health(), metrics, monotonic=lambda: 0.0)) as address:
        before = await talk(address, lambda peer: peer.ask("GET", "/metrics"))
        metrics.pods.decided("Submit")
        after = await talk(address, lambda peer: peer.ask("GET", "/metrics"))

    assert before.body == after.body


async def test_a_probe_is_answered_while_somebody_holds_many_connections() -> None:
    stop, sock = asyncio.Event(), serve.bind("127.0.0.1:0")
    address = sock.getsockname()
    sock.listen(2 * health.MOST_CONNECTIONS)
    with contextlib.ExitStack() as held:
        async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
            group.create_task(health.run(Health(), Metrics("test"), sock, stop=stop))
            peers = [
                held.enter_context(connection(address)) for _ in range(health.MOST_CONNECTIONS + 8)
            ]
            live = await talk(address, lambda peer: peer.ask("GET", "/livez"))
            oldest_is_closed = await asyncio.to_thread(peers[0].is_closed)
            newest = await asyncio.to_thread(peers[-1].ask, "GET", "/livez")
            stop.set()

    assert (200, 200) == (live.status, newest.status)
    assert oldest_is_closed


async def test_anything_else_is_not_found() -> None:
    async with serving(health.app(Health(), Metrics("test"))) as address:
        answer = await talk(address, lambda peer: peer.ask("GET", "/"))

    assert 404 == answer.status


def test_two_checks_cannot_have_one_name() -> None:
    checks = Health()
    checks.register("slurm", lambda: None)
    with pytest.raises(ValueError, match="'slurm' is registered already"):
        checks.register("slurm", lambda: None)
