"""Where the time of our services goes: pyinstrument in each of them, by way of `hook/sitecustomize.py`.

A profiled service is slower: read shares, not seconds.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.meter import SERVICES
from sandbox.client import Sandbox

_HOOK = Path(__file__).parent / "hook"


@contextmanager
def hooked() -> Iterator[None]:
    """Profile the services that are started inside the block."""
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_HOOK), before)))
    try:
        yield
    finally:
        os.environ["PYTHONPATH"] = before


def collect(sandbox: Sandbox, folder: Path) -> list[Path]:
    """End the services; write for each what it did: `SERVICE.txt`, the tree of calls, then functions by their own time."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{service}.txt" for service in SERVICES]
    for service, path in zip(SERVICES, written, strict=True):
        sandbox.stop(service)
        profile = sandbox.instance.bridge / service / f"{service}.profile"
        path.write_text(profile.read_text())
    return written
