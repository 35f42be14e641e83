"""Real nodes leave nothing on the host, however they end."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import running
from sandbox.client import Sandbox
from sandbox.options import Options
from sandbox.realnodes import cgroups, network
from tests.servers import state_folder, wait_until

NODES_ONLY = Options(slurm=False, bridge=False, nodes=0, plain_nodes=0, real_nodes=1)
GONE_S = 20


@pytest.fixture
def folder(able: None) -> Iterator[Path]:
    with state_folder() as path:
        yield path


def left_of(folder: Path) -> list[str]:
    """Whatever the host still has of the sandbox: processes, mounts, interfaces, cgroups."""
    name = network.identify(folder)
    found = [
        f"mount {line}"
        for line in Path("/proc/mounts").read_text().splitlines()
        if str(folder) in line
    ]
    found += [entry.name for entry in network.INTERFACES.iterdir() if name in entry.name]
    found += sorted(cgroups.names(cgroups.layout(), name))
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            facts = (entry / "cmdline").read_bytes() + (entry / "cgroup").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(folder).encode() in facts or f"{cgroups.PREFIX}{name}".encode() in facts:
            found.append(f"process {entry.name}")
    return found


@pytest.mark.real_all
def test_after_down_nothing_is_left(folder: Path) -> None:
    with Sandbox.up(folder, NODES_ONLY):
        assert len(left_of(folder)) > 10

    assert left_of(folder) == []
    assert not folder.exists()


def test_after_a_kill_of_everything_the_next_down_leaves_nothing(folder: Path) -> None:
    sandbox = Sandbox.up(folder, NODES_ONLY, outlives_us=True)
    sandbox.pause("real-0")  # the frozen are the hardest to end

    os.kill(sandbox.supervisor_pid, signal.SIGKILL)

    wait_until(lambda: not (folder / "lock").exists() or not _is_running(folder), GONE_S)
    assert left_of(folder)
    sandbox.down()
    wait_until(lambda: left_of(folder) == [], GONE_S)


@pytest.mark.real_all
def test_the_next_sandbox_finds_and_removes_what_a_killed_one_left(folder: Path) -> None:
    killed = Sandbox.up(folder, NODES_ONLY, outlives_us=True)
    os.kill(killed.supervisor_pid, signal.SIGKILL)
    wait_until(lambda: not _is_running(folder), GONE_S)

    with state_folder() as other, Sandbox.up(other, NODES_ONLY):
        assert left_of(folder) == []
        assert left_of(other)
    killed.down()


def _is_running(folder: Path) -> bool:
    return running.is_running(folder)
