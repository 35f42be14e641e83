"""Slurm's ordinary users at their command line."""

import os
import subprocess

from sandbox.client import Sandbox

_TIMEOUT_S = 60.0


def run_as(sandbox: Sandbox, user: str, *command: bytes | str) -> str:
    """Run one of Slurm's commands as this user; arguments may be any bytes.

    Raises:
        AssertionError: the exit code is not 0.
    """
    name, *arguments = map(os.fsencode, command)
    done = subprocess.run(
        (os.fsencode(sandbox.instance.bin) + b"/" + name, *arguments),
        env={**sandbox.env, "SLURM_JWT": sandbox.token(user)},
        capture_output=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode(errors="replace")
