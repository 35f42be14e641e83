"""A sandbox comes up whole, obeys, and leaves nothing, however it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.assets import USUAL, AssetName
from sandbox.client import Sandbox, flags
from sandbox.errors import SandboxError
from sandbox.options import Options
from tests.servers import running_sandbox, state_folder, wait_until

SLURM_ONLY = Options(kubernetes=False, bridge=False, nodes=1)
BOTH = Options(accounting=True, bridge=False, nodes=2)
GONE_S = 10


@pytest.fixture
def folder() -> Iterator[Path]:
    with state_folder() as path:
        yield path


@pytest.fixture(scope="module")
def mine() -> Iterator[Sandbox]:
    """Both clusters without the bridge; its parts may be hurt."""
    with running_sandbox(BOTH) as sandbox:
        yield sandbox


def processes_of(root: Path) -> dict[int, str]:
    """Whatever runs with the folder in its arguments, environment or working directory."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            facts = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            where = str((entry / "cwd").readlink())
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if state != "Z" and (str(root).encode() in facts or where.startswith(str(root))):
            found[int(entry.name)] = facts.decode(errors="replace")[:100]
    return found


def command(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """`slurm-bridge sandbox …`, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "sandbox", *arguments], capture_output=True, text=True, check=check
    )


def test_the_command_line_starts_shows_and_ends_a_sandbox(folder: Path) -> None:
    started = command("up", "--state", str(folder), "--detach", *flags(SLURM_ONLY))
    assert f". {folder}/env" in started.stdout
    shown = command("status", "--state", str(folder)).stdout
    assert {"slurmctld", "slurmrestd", "up"} <= set(shown.split())
    squeue = subprocess.run(
        ["/bin/sh", "-c", f". {folder}/env && squeue --noheader && sinfo --noheader --format=%T"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert squeue.stdout == "idle\n"

    command("down", "--state", str(folder))

    assert processes_of(folder) == {}
    assert not folder.exists()
    assert command("status", "--state", str(folder), check=False).returncode == 1


def test_where_tells_the_source_of_each_kind_of_program() -> None:
    lines = command("where", check=False).stdout.splitlines()

    assert [line.split(":")[0] for line in lines] == list(AssetName)
    missing = {line.split(":")[0] for line in lines if "missing" in line}
    assert not missing & set(USUAL)


def test_two_sandboxes_live_side_by_side(mine: Sandbox, folder: Path) -> None:
    before = mine.status()
    with Sandbox.up(folder, BOTH) as other:
        ports = {part.port for part in before.values()} | {
            part.port for part in other.status().values()
        }
        assert len(ports) == len(before) * 2
        other.kubectl("create", "namespace", "only-here")
    assert "only-here" not in mine.kubectl("get", "namespaces", "--output=name")
    assert {part.pid for part in before.values()} == {part.pid for part in mine.status().values()}


def test_a_killed_supervisor_leaves_no_process(folder: Path) -> None:
    sandbox = Sandbox.up(folder, BOTH, outlives_us=True)
    sandbox.pause("kwok")  # a stopped process dies too
    running = processes_of(folder)
    assert len(running) > len(sandbox.status())

    os.kill(sandbox.supervisor_pid, signal.SIGKILL)

    wait_until(lambda: not processes_of(folder), GONE_S)
    sandbox.down()
    assert not folder.exists()


def test_a_killed_starter_leaves_no_process(folder: Path) -> None:
    script = f"""
import pathlib, sys
from sandbox.client import Sandbox
from sandbox.options import Options
sandbox = Sandbox.up(pathlib.Path({str(folder)!r}), {SLURM_ONLY!r})
print("up", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "up\n"
        assert processes_of(folder)

        starter.kill()

    wait_until(lambda: not processes_of(folder), GONE_S)


def test_an_interrupted_start_leaves_no_process(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "sandbox", "up", "--state", str(folder), *flags(BOTH)],
        stdout=subprocess.DEVNULL,
    ) as supervisor:
        wait_until((folder / "log" / "etcd.log").exists, 20)

        command("down", "--state", str(folder))

        assert supervisor.wait(1) == 0
    assert processes_of(folder) == {}


def saved_nodes(sandbox: Sandbox) -> bytes:
    """What slurmctld has saved; it takes the old file away before it puts the new one in its place."""
    try:
        return (sandbox.slurm_conf.parent / "state" / "node_state").read_bytes()
    except FileNotFoundError:
        return b""


def test_a_killed_slurmctld_comes_back_with_its_state_and_a_wiped_one_without(
    mine: Sandbox,
) -> None:
    mine.run("scontrol", "update", "NodeName=node-0", "State=DRAIN", "Reason=why-not")
    wait_until(lambda: b"why-not" in saved_nodes(mine), 20, sandbox=mine)

    mine.restart("slurmctld", signal="KILL")
    assert mine.run("sinfo", "-h", "-n", "node-0", "-o", "%T").split() == ["drained"]

    mine.restart("slurmctld", signal="KILL", wipe=True)
    assert mine.run("sinfo", "-h", "-N").split() == []

    mine.restart("slurmctld", signal="KILL")
    mine.create_slurm_nodes()
    assert mine.run("sinfo", "-h", "-o", "%D %T").split() == ["2", "idle"]


def test_a_part_is_stopped_started_paused_and_resumed(mine: Sandbox) -> None:
    before = mine.status()["scheduler"].pid

    mine.stop("scheduler")
    assert ("down", None) == (mine.status()["scheduler"].state, mine.status()["scheduler"].pid)
    mine.start("scheduler")
    mine.pause("scheduler")
    assert mine.status()["scheduler"].state == "paused"
    tasks = Path(f"/proc/{mine.status()['scheduler'].pid}/task").glob("*/stat")
    assert {"T"} == {task.read_text().rpartition(")")[2].split()[0] for task in tasks}
    mine.resume("scheduler")

    assert mine.status()["scheduler"].state == "up"
    assert mine.status()["scheduler"].pid != before


def test_a_part_whose_needs_are_down_can_be_started_without_waiting(mine: Sandbox) -> None:
    mine.stop("slurmctld")

    mine.restart("slurmrestd", wait=False)

    assert mine.status()["slurmrestd"].state == "starting"
    mine.start("slurmctld")
    wait_until(lambda: mine.status()["slurmrestd"].state == "up", 20, sandbox=mine)


def test_a_paused_part_can_be_restarted(mine: Sandbox) -> None:
    mine.pause("kwok")

    mine.restart("kwok")

    assert mine.status()["kwok"].state == "up"


def test_a_part_that_dies_is_shown_as_failed_and_can_be_started_again(mine: Sandbox) -> None:
    pid = mine.status()["kwok"].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

    wait_until(lambda: mine.status()["kwok"].state == "failed", GONE_S, sandbox=mine)
    assert "kwok exited by itself: signal SIGKILL" in mine.log_tails()

    mine.start("kwok")
    assert mine.status()["kwok"].state == "up"


def test_wrong_words_are_answered_with_the_right_ones(mine: Sandbox) -> None:
    with pytest.raises(SandboxError, match=r"no part 'slurm'.* expected .*slurmctld"):
        mine.restart("slurm")
    with pytest.raises(SandboxError, match="unknown signal 'KIL'"):
        mine.restart("slurmctld", signal="KIL")
    with pytest.raises(SandboxError, match=r"scheduler has no data; these parts do: .*slurmctld"):
        mine.restart("scheduler", wipe=True)


def test_a_folder_has_one_sandbox_at_most_and_no_strangers_files(
    mine: Sandbox, folder: Path
) -> None:
    with pytest.raises(SandboxError, match=r"already running in"):
        Sandbox.up(mine.instance.root, SLURM_ONLY)
    (folder / "thesis.tex").touch()
    with pytest.raises(SandboxError, match="contains other files than a sandbox's"):
        Sandbox.up(folder, SLURM_ONLY)
    assert "contains other files" in command("down", "--state", str(folder), check=False).stderr
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


def test_a_sandbox_that_cannot_start_says_which_part_why_and_where_to_look(folder: Path) -> None:
    with pytest.raises(SandboxError) as failure:
        Sandbox.up(folder, Options(kubernetes=False, bridge=False, nodes=1, node_memory_mib=-1))

    assert "slurmrestd: POST /slurm/" in str(failure.value)
    assert processes_of(folder) == {}
    assert (folder / "log" / "slurmctld.log").exists()
