"""Files that share a sandbox run in a row, and it is down before the next one that does without it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from tests import spending
from tests.architecture.sources import ROOT

_CONFTEST = """
import pytest
from collections.abc import Iterator
from pathlib import Path
from sandbox.client import Sandbox

LOG = Path(__file__).with_name("log")

def log(what):
    with LOG.open("a") as lines:
        lines.write(what + "\\n")

@pytest.fixture(scope="session")
def first() -> Iterator[Sandbox]:
    log("first up")
    yield None
    log("first down")

@pytest.fixture(scope="session")
def accounts(first):
    yield None
    log("accounts gone")

@pytest.fixture(scope="session")
def second() -> Iterator[Sandbox]:
    log("second up")
    yield None
    log("second down")

@pytest.fixture(autouse=True)
def told(request):
    log(request.node.name)
"""
_FILES = {
    "a": "def test_a(): pass",
    "b": "def test_b(second): pass",
    "c": "def test_c(first): pass\ndef test_c_without(): pass\ndef test_c_too(first, accounts): pass",
    "d": "def test_d(first, second): pass",
    "e": "running_sandbox = None\ndef test_e(): pass",
    "f": "def test_f(first): pass",
}


def test_a_sandbox_lives_as_long_as_files_use_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name, text in _FILES.items():
        (tmp_path / f"test_{name}.py").write_text(f"{text}\n")

    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-p", "tests.sharing", "-p", "no:cacheprovider", "."),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert (tmp_path / "log").read_text().split("\n") == [
        "test_e",
        *("first up", "test_c", "test_c_without", "test_c_too", "test_f"),
        *("second up", "test_d", "accounts gone", "first down"),
        *("test_b", "second down", "test_a", ""),
    ]


def test_whole_files_go_to_one_worker(request: pytest.FixtureRequest) -> None:
    """What needs no order of its own: each file is in one piece."""
    files = [item.path for item in request.session.items]
    pieces = [file for at, file in enumerate(files) if at == 0 or files[at - 1] != file]
    assert len(set(pieces)) == len(pieces)


def test_a_file_costs_all_that_its_tests_do() -> None:
    def report(
        test: str, when: Literal["setup", "call", "teardown"], s: float
    ) -> pytest.TestReport:
        return pytest.TestReport(
            test, ("", 0, ""), {}, "passed", None, when, duration=s, worker_id="gw0"
        )

    reports = [
        report("a.py::test_short", "call", 2),
        report("b.py::test_first", "setup", 20),
        report("b.py::test_first", "call", 1),
        report("b.py::test_last", "teardown", 3),
    ]

    assert spending.table(reports) == [
        "gw0: 26 s",
        " total   setup    call teardown",
        "   24 s    20 s     1 s      3 s  b.py",
        "    2 s     0 s     2 s      0 s  a.py",
    ]
