"""The follower passes on all that a file gets, whatever becomes of the file, and ends as the job did."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurmjobs.companions import follower
from tests.servers import wait_until

PATIENCE_S = 20.0


class Running:
    """A follower, and what it has printed so far."""

    def __init__(self, folder: Path) -> None:
        self.file, self.end = folder / "out", folder / "end"
        self._printed = folder / "printed"
        with self._printed.open("wb") as printed:
            self.process = subprocess.Popen(
                (sys.executable, "-I", follower.__file__, str(self.file), str(self.end)),
                stdout=printed,
                stderr=subprocess.PIPE,
            )

    def await_printed(self, wanted: bytes) -> None:
        wait_until(lambda: self._printed.read_bytes() == wanted, PATIENCE_S)

    def ends(self, code: str) -> tuple[int, bytes, str]:
        self.end.write_text(code)
        self.process.wait(PATIENCE_S)
        said = self.process.stderr.read() if self.process.stderr else b""
        return self.process.returncode, self._printed.read_bytes(), said.decode()


@contextmanager
def following(folder: Path) -> Iterator[Running]:
    running = Running(folder)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with following(tmp_path) as running:
        yield running


def test_all_of_a_growing_file_is_printed_and_the_end_is_the_jobs(running: Running) -> None:
    running.end.touch()
    with running.file.open("ab", buffering=0) as file:
        file.write(b"one\n")
        running.await_printed(b"one\n")
        file.write(b"two")
        running.await_printed(b"one\ntwo")
        file.write(b"!" * 3_000_000)

    assert (3, b"one\ntwo" + b"!" * 3_000_000, "") == running.ends("3")


def test_a_file_that_is_begun_anew_or_replaced_is_printed_again(running: Running) -> None:
    running.file.write_bytes(b"first run\n")
    running.await_printed(b"first run\n")
    running.file.write_bytes(b"second\n")
    running.await_printed(b"first run\nsecond\n")
    other = running.file.with_name("other")
    other.write_bytes(b"the third run\n")
    other.rename(running.file)

    assert (0, b"first run\nsecond\nthe third run\n", "") == running.ends("0")


def test_a_file_that_never_comes_is_told(running: Running) -> None:
    code, printed, said = running.ends("127")

    assert (127, b"") == (code, printed)
    assert f"slurm-bridge: {running.file}: No such file or directory\n" == said


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with following(tmp_path) as running:
        code, printed, said = running.ends("1")

    assert (1, b"") == (code, printed)
    assert "not a regular file" in said


def test_it_stops_when_it_is_told_to(running: Running) -> None:
    running.file.write_bytes(b"x")
    running.await_printed(b"x")

    running.process.terminate()

    assert 143 == running.process.wait(PATIENCE_S)


def test_a_path_does_nothing_to_a_terminal() -> None:
    assert follower._visible("größe \x1b]0;owned\x07\u202e") == r"größe \x1b]0;owned\x07\u202e"
