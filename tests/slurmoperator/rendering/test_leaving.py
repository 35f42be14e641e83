"""What a worker does before it ends, as a shell runs it; Slurm's commands are played, because only their answers matter."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmoperator.rendering.node_sets import leaving
from slurmoperator.workers.situation import REASON_PREFIX
from tests.servers import wait_until

pytestmark = pytest.mark.slow

DEADLINE_S = 60
"""For the whole of a script that waits a second or not at all."""
SCONTROL = """\
echo "$@" >> "$CALLS/scontrol.log"
[ "$JOBS" != away ] || exit 1
"""
SQUEUE = """\
echo "$@" >> "$CALLS/squeue.log"
case "$JOBS" in
  away) exit 1 ;;
  forever) echo 7 ;;
  later) [ "$(wc -l < "$CALLS/squeue.log")" -gt 1 ] || exit 1 ;;
  *) [ "$(wc -l < "$CALLS/squeue.log")" -gt "$JOBS" ] || echo 7 ;;
esac
"""


def run(tmp_path: Path, *, jobs: str, grace_s: int) -> list[str]:
    """Run the script and return what it did to the node.

    Args:
        tmp_path: of the test.
        jobs: how many times there is one, `forever`, `away` if slurmctld does not answer, or `later`: not the first time.
        grace_s: of the pod.
    """
    for name, script in (("scontrol", SCONTROL), ("squeue", SQUEUE)):
        command = tmp_path / name
        command.write_text(f"#!/bin/sh\n{script}")
        command.chmod(0o755)
    subprocess.run(
        ["sh", "-c", leaving.script(grace_s).replace("/proc/", f"{tmp_path}/proc/")],  # noqa: S607  # whichever the machine has
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(tmp_path), "JOBS": jobs},
        timeout=DEADLINE_S,
        check=jobs != "away",
    )
    return [
        line.partition("state=")[2] for line in (tmp_path / "scontrol.log").read_text().splitlines()
    ]


DRAINED = f"drain reason={REASON_PREFIX}its pod is being deleted"
DOWN = f"down reason={REASON_PREFIX}its pod was deleted before its jobs had ended"


@pytest.mark.parametrize("times", [0, 2])
def test_it_takes_no_more_jobs_and_goes_when_it_has_none(tmp_path: Path, times: int) -> None:
    assert [DRAINED] == run(tmp_path, jobs=str(times), grace_s=leaving.GRACE_S)
    assert times + 1 == len((tmp_path / "squeue.log").read_text().splitlines())


def test_slurm_learns_at_the_end_of_the_grace_that_its_jobs_are_lost(tmp_path: Path) -> None:
    assert [DRAINED, DOWN] == run(tmp_path, jobs="forever", grace_s=11)


def test_a_grace_that_is_too_short_for_a_wait_has_none(tmp_path: Path) -> None:
    assert [DRAINED, DOWN] == run(tmp_path, jobs="forever", grace_s=0)
    assert not (tmp_path / "squeue.log").exists()


@contextlib.contextmanager
def step(tmp_path: Path, title: str, script: str) -> Iterator[None]:
    """A process that is called as a slurmstepd is, with a child of its own until that ends."""
    ready = tmp_path / "ready"
    process = subprocess.Popen(
        [
            title,
            "-c",
            f"{script} touch {ready}; while :; do read -r -t 600 x < {fifo(tmp_path)}; done",
        ],
        executable="/bin/bash",
        start_new_session=True,
    )
    try:
        wait_until(ready.exists, DEADLINE_S)
        # As in a pod, nothing else of the machine is seen.
        seen = [path for path in Path("/proc").glob("[0-9]*") if group(path) == process.pid]
        (tmp_path / "proc").mkdir()
        for path in seen:
            (tmp_path / "proc" / path.name).symlink_to(path)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def group(process: Path) -> int:
    """The process group of a process, in Linux' /proc."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[2])
    except OSError:
        return 0


def fifo(tmp_path: Path) -> Path:
    """Something to wait for without a child."""
    path = tmp_path / "fifo"
    if not path.exists():
        os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    ("title", "script", "waits"),
    [
        pytest.param("slurmstepd: [7.batch]", "/bin/sleep 600 &", True, id="a-task-runs"),
        pytest.param("slurmstepd: [7.batch]", "", False, id="all-tasks-have-ended"),
        pytest.param("slurmstepd: [7.extern]", "/bin/sleep 600 &", False, id="it-only-sleeps"),
        pytest.param("bash", "/bin/sleep 600 &", False, id="no-step"),
    ],
)
def test_it_waits_for_processes_of_jobs_if_slurm_cannot_be_asked(
    tmp_path: Path, title: str, script: str, *, waits: bool
) -> None:
    with step(tmp_path, title, script):
        done = run(tmp_path, jobs="away", grace_s=14)

    assert {DRAINED} == {*done} - {DOWN}
    assert (DOWN in done) is waits


def test_a_drain_is_repeated_until_slurmctld_has_heard_it(tmp_path: Path) -> None:
    """A slurmctld that answers to squeue again may not have heard of it, or have forgotten it."""
    with step(tmp_path, "slurmstepd: [7.0]", "/bin/sleep 600 &"):
        done = run(tmp_path, jobs="later", grace_s=60)

    assert [DRAINED, DRAINED] == done
