"""Slurm's commands of a sandbox leave nothing of ours in the environment of jobs."""

import os

import pytest

from sandbox.options import Options
from tests.servers import running_sandbox, wait_until


@pytest.mark.skipif(
    os.getuid() != 0, reason="NOT RUN: a real slurmd needs root; CI runs this as root"
)
def test_a_script_given_to_sbatch_runs_the_machines_own_programs() -> None:
    """Whatever its C library is: what is preloaded for ours fits no other."""
    with running_sandbox(Options(kubernetes=False, bridge=False, nodes=1, compute=1)) as sandbox:
        out = sandbox.slurm_conf.parent.parent / "shared" / "out"
        script = "#!/bin/sh\n/bin/ls / > /dev/null && env | grep -c LD_PRELOAD\n"
        sandbox.run("sbatch", "--chdir=/", f"--output={out}", stdin=script)

        wait_until(lambda: out.exists() and out.read_text() != "", 60)
        assert out.read_text() == "0\n"
