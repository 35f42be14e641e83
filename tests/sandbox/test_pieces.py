"""The sandbox's building blocks, alone."""

import base64
import dataclasses
import random
import socket
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer

from sandbox import cli, identity, nss, ports, slurm_token
from sandbox.client import flags
from sandbox.errors import PartFailedError
from sandbox.options import Options
from sandbox.part import Part
from sandbox.process import Process, State
from tests.servers import wait_until


def part(folder: Path, script: str, *, answers: bool = True, start_timeout_s: float = 30) -> Part:
    return Part(
        name="script",
        argv=(sys.executable, "-c", script),
        env={"GREETING": "hello there"},
        identity=identity.caller(),
        folder=folder,
        port=1,
        answers=lambda: answers,
        start_timeout_s=start_timeout_s,
        stop_timeout_s=0.5,
        advice="buy a new one",
    )


def await_failure(process: Process) -> PartFailedError:
    failures: list[PartFailedError] = []

    def failed() -> list[PartFailedError]:
        try:
            process.check()
        except PartFailedError as error:
            failures.append(error)
        return failures

    return wait_until(failed, 30)[0]


def test_a_part_that_exits_is_told_with_code_log_and_advice(tmp_path: Path) -> None:
    script = "import os, sys; print(os.environ['GREETING']); sys.exit(3)"
    process = Process(part(tmp_path, script, answers=False), tmp_path / "log")

    process.start()
    error = await_failure(process)

    assert process.state is State.FAILED
    assert str(error) == (
        "script exited by itself: exit code 3\n"
        f"  end of {tmp_path}/log:\n    hello there\n  buy a new one"
    )


def test_a_part_that_never_answers_is_told_once(tmp_path: Path) -> None:
    script = "import time; time.sleep(60)"
    silent = part(tmp_path, script, answers=False, start_timeout_s=0.5)
    process = Process(silent, tmp_path / "log")

    process.start()
    error = await_failure(process)

    assert "is running but has not answered for 0.5 s" in str(error)
    process.check()
    process.stop()
    assert process.pid is None


def test_a_part_that_ignores_its_signal_is_killed(tmp_path: Path) -> None:
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('deaf', flush=True); time.sleep(60)"
    )
    process = Process(part(tmp_path, script), tmp_path / "log")
    process.start()
    wait_until(lambda: "deaf" in (tmp_path / "log").read_text(), 10)
    process.check()

    process.stop()

    assert (process.state, process.pid) == (State.DOWN, None)


def test_ports_are_free_different_and_below_the_ephemeral_range() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert not ports.is_free(taken.getsockname()[1])

    chosen = ports.choose((f"port-{number}" for number in range(50)), dice=random.SystemRandom())

    assert len(set(chosen.values())) == 50
    assert all(ports.LOWEST <= port < 32768 for port in chosen.values())


def test_two_sandboxes_that_start_choose_different_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens on the first one's yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def choose() -> set[int]:
        names = (f"port-{number}" for number in range(20))
        dice = random.Random(1)  # noqa: S311  # the same numbers each time
        return set(ports.choose(names, dice=dice).values())

    first = choose()
    assert not first & choose()

    monkeypatch.setattr(ports, "_STARTS_WITHIN_S", 0.0)
    assert first == choose(), "after a while, those that nobody uses are free again"


def test_half_a_line_of_a_sandbox_that_was_killed_keeps_nobody_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ports.choose(["one"], dice=random.SystemRandom())
    (noted,) = tmp_path.iterdir()
    noted.write_text("2150\n21502 \nmany 17\n")

    assert {"other"} == ports.choose(["other"], dice=random.SystemRandom()).keys()


def test_a_token_says_who_and_until_when() -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)

    token = slurm_token.mint(b"k" * 32, user="alice", now=now, lifetime=timedelta(hours=1))

    header, claims, signature = token.split(".")
    assert header == "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"  # {"alg":"HS256","typ":"JWT"}
    assert (
        base64.urlsafe_b64decode(f"{claims}==")
        == b'{"exp":1767315600,"iat":1767312000,"sun":"alice"}'
    )
    assert len(signature) == 43


def test_the_machines_accounts_win_over_ours_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "libnss_wrapper.so").touch()
    nss.prepare(tmp_path)

    lines = (tmp_path / "passwd").read_text().splitlines()

    assert len({line.split(":")[0] for line in lines}) == len(lines)
    assert "alice:x:64101:64101::/:/bin/sh" in lines
    assert nss.environment(tmp_path, tmp_path)["NSS_WRAPPER_PASSWD"] == str(tmp_path / "passwd")
    assert nss.environment(tmp_path, None) == {}


@pytest.mark.parametrize("field", dataclasses.fields(Options), ids=lambda field: field.name)
def test_every_option_reaches_the_supervisor(field: dataclasses.Field[object]) -> None:
    usual = field.default
    other: object = "x", "y"
    if isinstance(usual, bool):
        other = not usual
    elif isinstance(usual, int):
        other = usual + 1
    elif isinstance(usual, str):
        other = "x"
    wanted = dataclasses.replace(Options(), **{field.name: other})  # type: ignore[arg-type]  # by its name

    up = typer.main.get_command(cli.app).commands["up"]  # type: ignore[attr-defined]  # it is a group
    with up.make_context("up", ["--state", "somewhere", *flags(wanted)]) as context:
        told = context.params[field.name]

    if isinstance(usual, tuple):
        told = tuple(told.split(",") if isinstance(told, str) else told)
    assert told == other
