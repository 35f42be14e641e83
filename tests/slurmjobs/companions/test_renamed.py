"""The programs of companions start under the names of the release before, and print nothing of their own."""

import os
import subprocess
import sys
from pathlib import Path

from slurmjobs import companions

ROOT = Path(companions.__file__).parents[2]
RENAMED = ROOT / "deploy" / "renamed"
"""What the wheel has beside our packages."""


def run_old(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program by its old name, with the packages of the wheel."""
    command = (sys.executable, "-m", f"jobs.companions.{program}", *arguments)
    environment = {"PYTHONPATH": os.pathsep.join([str(RENAMED), str(ROOT)])}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_follower_prints_the_output_alone_and_ends_as_the_job(tmp_path: Path) -> None:
    output, end = tmp_path / "out", tmp_path / "end"
    output.write_text("over\n")
    end.write_text("3")

    done = run_old("follower", str(output), str(end))

    assert (3, "over\n", "") == (done.returncode, done.stdout, done.stderr)


def test_a_collector_carries_out_its_order() -> None:
    done = run_old("collector", "part", "[]")

    assert (0, "0 files, 0 bytes\n") == (done.returncode, done.stderr)
