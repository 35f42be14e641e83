"""The scripts of side-cars, as a shell runs them in folders of a test."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import wait_until
from tests.slurmoperator.rendering.given import given, named, pod, rendered

DEADLINE_S = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Has /etc/slurm, /run, /var/log/slurm."""
    for each in ("etc/slurm", "run", "var/log/slurm"):
        (tmp_path / each).mkdir(parents=True)
    (tmp_path / "etc/slurm/slurm.conf").write_text("one\n")
    return tmp_path


@contextlib.contextmanager
def running(name: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a side-car of slurmctld, without its long pauses."""
    container = named(pod(rendered(given("Controller")))["spec"]["initContainers"], name)
    shell, option, script = container["command"]
    for path in ("/etc/slurm", "/run/"):
        script = script.replace(path, f"{folder}{path}")
    for pause in ("sleep 55", "sleep 5", "sleep 2"):
        script = script.replace(pause, "sleep 0.05")
    environment = {each["name"]: f"{folder}{each['value']}" for each in container.get("env", ())}
    with (folder / "printed").open("w") as printed:
        process = subprocess.Popen(
            [shell, option, script],
            env={"PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(folder), **environment},
            stdout=printed,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_the_log_is_printed_whoever_writes_it(folder: Path) -> None:
    log = folder / "var/log/slurm/slurmctld.log"
    with running("logfile", folder):
        wait_until(log.is_fifo, DEADLINE_S)
        first = os.open(log, os.O_RDWR)  # without a reader it would block
        os.write(first, b"one\n")
        wait_until(lambda: ["one"] == lines(folder / "printed"), DEADLINE_S)
        os.close(first)
        printed = ["one"]
        for line in ("two", "three", "four"):  # daemons after it
            subprocess.run(["sh", "-c", 'echo "$1" 1<>"$0"', log, line], check=True)  # noqa: S607
            printed.append(line)
            wait_until(lambda: printed == lines(folder / "printed"), DEADLINE_S)


def is_written(daemon: int, line: bytes) -> bool:
    """Write a line as a daemon does: what nobody reads is lost, and it goes on."""
    try:
        os.write(daemon, line)
    except BrokenPipeError:
        return False
    return True


def test_a_reader_that_is_started_again_goes_on_with_what_the_daemon_has_open(folder: Path) -> None:
    log = folder / "var/log/slurm/slurmctld.log"
    with running("logfile", folder):
        wait_until(log.is_fifo, DEADLINE_S)
        daemon = os.open(log, os.O_WRONLY)
    with running("logfile", folder):
        wait_until(lambda: is_written(daemon, b"after it\n"), DEADLINE_S)
        wait_until(lambda: ["after it"] == lines(folder / "printed"), DEADLINE_S)
        os.close(daemon)


def test_a_file_in_the_place_of_the_log_gives_way(folder: Path) -> None:
    log = folder / "var/log/slurm/slurmctld.log"
    log.write_text("of an earlier version")
    with running("logfile", folder):
        wait_until(log.is_fifo, DEADLINE_S)


def test_a_first_start_waits_for_slurmdbd(folder: Path) -> None:
    (folder / "var/spool/slurmctld/site").mkdir(parents=True)
    with socket.socket() as slurmdbd:
        slurmdbd.bind(("127.0.0.1", 0))  # nobody listens yet
        conf = (
            f"AccountingStorageHost=127.0.0.1\nAccountingStoragePort={slurmdbd.getsockname()[1]}\n"
        )
        (folder / "etc/slurm/slurm.conf").write_text(conf)
        with running("slurmdbd", folder) as waiter:
            with pytest.raises(subprocess.TimeoutExpired):
                waiter.wait(1)
            slurmdbd.listen()
            assert 0 == waiter.wait(DEADLINE_S)


def test_with_a_state_it_waits_for_nothing(folder: Path) -> None:
    (folder / "etc/slurm/slurm.conf").write_text("AccountingStorageHost=127.0.0.1\n")
    state = folder / "var/spool/slurmctld/site"
    state.mkdir(parents=True)
    (state / "last_tres").touch()
    with running("slurmdbd", folder) as waiter:
        assert 0 == waiter.wait(DEADLINE_S)


def test_without_slurmdbd_nothing_waits() -> None:
    spec = pod(rendered(given("Controller", accountingRef=...)))["spec"]
    assert "slurmdbd" not in {init_container["name"] for init_container in spec["initContainers"]}
