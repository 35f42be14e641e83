"""slurm-exporter beside a sandbox, as a process of its own."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from sandbox import ports
from sandbox.client import Sandbox
from tests.servers import wait_until
from tests.soak.hostile.samples import Program, exporter_program

_STARTS_WITHIN_S = 60.0


@contextmanager
def exporter(sandbox: Sandbox) -> Iterator[Program]:
    """Run one; it answers when the block begins."""
    port = ports.choose(["exporter"], dice=random.Random())["exporter"]  # noqa: S311  # no secret
    url = f"http://127.0.0.1:{port}"
    command = (sys.executable, "-m", "slurmexporter", f"--listen=127.0.0.1:{port}")
    slurm = (f"--server={sandbox.slurmrestd_url}", f"--token-file={sandbox.token_file}")
    log = sandbox.instance.log("exporter")
    with log.open("wb") as output:
        process = subprocess.Popen(
            (*command, *slurm, "--no-accounting"),
            env={"PATH": os.environ["PATH"]},
            stdout=output,
            stderr=output,
        )
        try:
            wait_until(lambda: _answers(url), _STARTS_WITHIN_S, sandbox=sandbox)
            yield exporter_program(url, process.pid)
        finally:
            process.terminate()
            process.wait(30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/metrics", trust_env=False).is_success
    except httpx.TransportError:
        return False
