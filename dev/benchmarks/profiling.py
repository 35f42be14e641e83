"""Where the CPU time of our services goes.

Pyinstrument in each of them, through `hook/sitecustomize.py`.

A profiled service is about three times slower, mostly where it makes many small calls: read shares,
not seconds. `pyinstrument --load FILE.pyisession` shows a saved profile as a tree.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from benchmarks.meter import SERVICES
from sandbox.client import Sandbox

_HOOK = Path(__file__).parent / "hook"
_WRITTEN_AFTER_S = 60.0
_POLL_S = 0.1


@contextmanager
def hooked() -> Iterator[None]:
    """Prepare the services started inside the block for profiling."""
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_HOOK), before)))
    try:
        yield
    finally:
        os.environ["PYTHONPATH"] = before


@asynccontextmanager
async def profiled(sandbox: Sandbox, folder: Path, stretch: str) -> AsyncIterator[None]:
    """Save what each service did inside the block as `STRETCH-SERVICE.pyisession`."""
    _toggle(sandbox)
    yield
    running = _toggle(sandbox)
    async with asyncio.timeout(_WRITTEN_AFTER_S):
        for service in running:
            saved = sandbox.instance.bridge / service / "profile.pyisession"
            while not _moved(saved, folder / f"{stretch}-{service}.pyisession"):  # noqa: ASYNC110  # by another process
                await asyncio.sleep(_POLL_S)


def _toggle(sandbox: Sandbox) -> list[str]:
    """Begin or end the profile of each service that runs: two of them may be one process."""
    parts = sandbox.status()
    pids = {service: pid for service in SERVICES if (pid := parts[service].pid) is not None}
    for pid in pids.values():
        os.kill(pid, signal.SIGUSR2)
    return list(pids)


def _moved(source: Path, target: Path) -> bool:
    """Move the file if it is there."""
    if not source.exists():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)
    return True
