"""Real processes and real signals."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from slurmruntime.process import lifetime
from slurmruntime.process.lifetime import EndedEarly, Service

pytestmark = pytest.mark.slow

PROGRAM = """
import asyncio, sys
from slurmruntime.values.errors import CallError
from slurmruntime.process import lifetime, logging
from bridge.settings.schema import Log

logging.configure(Log(), "test")

async def until_told(stop):
    print("ready", flush=True)
    await stop.wait()

async def for_ever(stop):
    print("ready", flush=True)
    await asyncio.Event().wait()

async def at_once(stop):
    print("ready", flush=True)

async def starting_afresh(stop):
    print("ready", flush=True)
    raise lifetime.StartAfresh("as foreseen")

async def left_alone(stop):
    print("ready", flush=True)
    raise CallError("as foreseen")

async def failing(stop):
    print("ready", flush=True)
    raise ZeroDivisionError

async def deaf(stop):
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

async def deaf_parts(stop):
    lifetime._UNWINDING_S = 0.1
    await lifetime.run_parts(Part("leader", deaf), Part("server", {part}), stop=stop)

async def parts(stop):
    async def cache(stop):
        await stop.wait()
    await lifetime.run_parts(Part("cache", cache), Part("server", {part}), stop=stop)

class Part(lifetime.Service):
    def __init__(self, name, run):
        super().__init__(name=name, run=run)

sys.exit(lifetime.run({main}, deadline_s={deadline_s}))
"""


LARGE = """
import os
from slurmruntime.process import lifetime

def resident_mib():
    status = open("/proc/self/status").read()
    return int(status.split("VmRSS:")[1].split()[0]) // 1024

async def main(stop):
    largest = b"x" * (30 * 2**20)  # once it is freed, glibc would keep all that is smaller
    del largest
    before = resident_mib()
    bodies, beside = [], []
    for _ in range(100):
        bodies.append(b"x" * 2**20)
        beside.append(bytearray(600))  # so that the heap cannot shrink from its end
    bodies.clear()
    print(resident_mib() - before, flush=True)
    os._exit(0)

lifetime.run(main)
"""


class Child:
    """A process that has said that it is ready."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def log_line(self) -> dict[str, Any]:
        assert self._process.stderr is not None
        line: dict[str, Any] = json.loads(self._process.stderr.readline())
        return line

    def end(self) -> tuple[int, list[dict[str, Any]]]:
        """Its exit code and the rest of its log."""
        _, err = self._process.communicate(timeout=20)
        return self._process.returncode, [json.loads(line) for line in err.splitlines()]


@contextmanager
def child(main: str, *, part: str = "until_told", deadline_s: float = 10) -> Iterator[Child]:
    program = PROGRAM.format(main=main, part=part, deadline_s=deadline_s)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Child(process)
        finally:
            process.kill()


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_ends_it_in_good_order(self, number: signal.Signals) -> None:
        with child("until_told") as process:
            process.send(number)
            code, log = process.end()

        assert 0 == code
        assert ["process.stopping", "process.stopped"] == [line["event"] for line in log]
        assert number.name == log[0]["signal"]

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_the_second_signal_ends_it_at_once(self, number: signal.Signals) -> None:
        with child("for_ever") as process:
            process.send(signal.SIGTERM)
            assert "process.stopping" == process.log_line()["event"]
            process.send(number)
            code, _ = process.end()

        assert -number == code

    def test_who_does_not_end_in_time_is_cancelled(self) -> None:
        with child("for_ever", deadline_s=0.1) as process:
            process.send(signal.SIGTERM)
            code, log = process.end()

        assert 1 == code
        assert ["process.stopping", "process.stop_timed_out"] == [line["event"] for line in log]


class TestEndings:
    def test_an_exception_is_the_last_line_of_the_log(self) -> None:
        with child("failing") as process:
            code, (line,) = process.end()

        assert (1, "process.failed", "critical") == (code, line["event"], line["level"])
        assert "ZeroDivisionError" in line["exception"]

    @pytest.mark.parametrize("part", ["starting_afresh", "left_alone"])
    def test_an_end_that_was_foreseen_is_told_in_words(self, part: str) -> None:
        with child("parts", part=part) as process:
            code, (line,) = process.end()

        assert (1, "process.failed", "as foreseen") == (code, line["event"], line["error"])
        assert line.get("exception") is None

    def test_to_end_unasked_is_a_failure(self) -> None:
        with child("at_once") as process:
            code, (line,) = process.end()

        assert (1, "process.ended_unasked") == (code, line["event"])

    @pytest.mark.parametrize("part", ["at_once", "failing"])
    def test_a_part_that_ends_takes_the_process_down_and_is_named(self, part: str) -> None:
        with child("parts", part=part) as process:
            code, (line,) = process.end()

        assert (1, "process.failed") == (code, line["event"])
        assert "the service 'server'" in line["exception"]

    @pytest.mark.parametrize("part", ["at_once", "failing"])
    def test_a_part_that_ignores_its_cancel_does_not_keep_the_process(self, part: str) -> None:
        """Its lease would go on being renewed by a process without a server."""
        with child("deaf_parts", part=part) as process:
            code, (line,) = process.end()

        assert (1, "process.failed", "critical") == (code, line["event"], line["level"])
        assert "server failed: " in line["error"]
        assert "these services did not end within 0.1 s: leader" in line["error"]

    def test_who_ignores_the_deadline_does_not_keep_the_process_either(self) -> None:
        with child("deaf_parts", part="until_told", deadline_s=0.1) as process:
            process.send(signal.SIGTERM)
            code, log = process.end()

        assert 1 == code
        assert ["process.stopping", "process.failed"] == [line["event"] for line in log]


class TestParts:
    async def test_they_end_one_after_another_the_last_one_first(self) -> None:
        ended: list[str] = []

        def part(name: str) -> Service:
            async def run(stop: asyncio.Event) -> None:
                await stop.wait()
                await asyncio.sleep(0)
                ended.append(name)

            return Service(name=name, run=run)

        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(
                lifetime.run_parts(part("cache"), part("workers"), part("server"), stop=stop)
            )
            await asyncio.sleep(0)
            stop.set()

        assert ["server", "workers", "cache"] == ended

    async def test_the_failure_of_one_cancels_the_others(self) -> None:
        cancelled = asyncio.Event()

        async def cache(_stop: asyncio.Event) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        async def server(_stop: asyncio.Event) -> None:
            await asyncio.sleep(0)

        with pytest.raises(ExceptionGroup) as caught:
            await lifetime.run_parts(
                Service(name="cache", run=cache),
                Service(name="server", run=server),
                stop=asyncio.Event(),
            )

        assert cancelled.is_set()
        assert caught.group_contains(EndedEarly, match="'server' ended without being asked")


def test_what_large_bodies_took_goes_back_to_the_system() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LARGE], capture_output=True, check=True, timeout=60, text=True
    )

    assert int(done.stdout) < 10  # MiB of 100
