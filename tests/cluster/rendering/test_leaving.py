"""What a worker does before it ends, as a shell runs it; Slurm's commands are played, because only their answers matter."""

import os
import subprocess
from pathlib import Path

import pytest

from cluster.rendering.node_sets import leaving
from cluster.workers.situation import REASON_PREFIX

DEADLINE_S = 60
"""For the whole of a script that waits a second or not at all."""
SCONTROL = 'echo "$@" >> "$CALLS/scontrol.log"\n'
SQUEUE = """\
echo "$@" >> "$CALLS/squeue.log"
case "$JOBS" in
  away) exit 1 ;;
  forever) echo 7 ;;
  *) [ "$(wc -l < "$CALLS/squeue.log")" -gt "$JOBS" ] || echo 7 ;;
esac
"""


def run(tmp_path: Path, *, jobs: str, grace_s: int) -> list[str]:
    """Run the script and return what it did to the node.

    Args:
        tmp_path: of the test.
        jobs: how many times there is one, `forever`, or `away` if slurmctld does not answer.
        grace_s: of the pod.
    """
    for name, script in (("scontrol", SCONTROL), ("squeue", SQUEUE)):
        command = tmp_path / name
        command.write_text(f"#!/bin/sh\n{script}")
        command.chmod(0o755)
    subprocess.run(
        ["sh", "-c", leaving.script(grace_s)],  # noqa: S607  # whichever the machine has
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(tmp_path), "JOBS": jobs},
        timeout=DEADLINE_S,
        check=True,
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


def test_it_waits_for_its_steps_if_slurm_cannot_be_asked(tmp_path: Path) -> None:
    step = subprocess.Popen(["slurmstepd: [7.0]", "600"], executable="/bin/sleep")  # noqa: S607  # a step's name
    try:
        assert [DRAINED, DOWN] == run(tmp_path, jobs="away", grace_s=11)
    finally:
        step.kill()
        step.wait()
