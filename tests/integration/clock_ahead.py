"""Controllers whose wall clock is wrong."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox import chart
from sandbox.client import Sandbox

AN_HOUR_AHEAD = """
import sys
from datetime import timedelta
from slurmruntime.process.clock import SystemClock
from controllers.__main__ import main
true_now = SystemClock.now
SystemClock.now = lambda self: true_now(self) + timedelta(hours=1)
sys.argv[0] = "controllers"
sys.exit(main())
"""


@contextmanager
def controllers_an_hour_ahead(sandbox: Sandbox, log: Path) -> Iterator[None]:
    """In place of the sandbox's own."""
    config = sandbox.instance.bridge / "controllers" / "config.yaml"
    sandbox.stop("controllers")
    try:
        with log.open("wb") as lines:
            process = subprocess.Popen(
                (
                    sys.executable,
                    "-c",
                    AN_HOUR_AHEAD,
                    "--config",
                    str(config),
                    *chart.arguments("controllers"),
                ),
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                stdin=subprocess.DEVNULL,
                stdout=lines,
                stderr=lines,
            )
        try:
            yield
            assert process.poll() is None, log.read_text()[-4000:]
        finally:
            process.terminate()
            process.wait()
    finally:
        sandbox.start("controllers")
