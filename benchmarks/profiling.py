"""Where the CPU time of our services goes: pyinstrument in each of them, by way of `hook/sitecustomize.py`.

A profiled service is about three times slower, and most so where it makes many small calls: read shares, not seconds.
`pyinstrument --load FILE.pyisession` shows what was saved as a tree.
"""

import asyncio
import os
import shutil
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from pyinstrument.frame import Frame
from pyinstrument.session import Session
from rich.table import Table

from benchmarks.meter import SERVICES
from sandbox.client import Sandbox

_HOOK = Path(__file__).parent / "hook"
_WRITTEN_AFTER_S = 60.0
_POLL_S = 0.1
_SHOWN = 40
_TICK_S = 1e-9


@contextmanager
def hooked() -> Iterator[None]:
    """Make the services that are started inside the block ready to be profiled."""
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
    _toggle(sandbox)
    async with asyncio.timeout(_WRITTEN_AFTER_S):
        for service in SERVICES:
            saved = sandbox.instance.bridge / service / "profile.pyisession"
            while not _moved(saved, folder / f"{stretch}-{service}.pyisession"):  # noqa: ASYNC110  # by another process
                await asyncio.sleep(_POLL_S)


def table(saved: Path) -> Table:
    """The functions of a profile that used most: with all they called, and by themselves; in percent of all CPU time."""
    own: dict[str, float] = defaultdict(float)
    whole: dict[str, float] = defaultdict(float)
    root = Session.load(saved).root_frame()
    if root is not None:
        _add_up(root, own, whole, frozenset())
    total = max(sum(own.values()), _TICK_S)
    shown = Table(box=None, header_style="bold")
    shown.add_column(f"{saved.stem}, {total:.2f} s", style="cyan", no_wrap=True)
    shown.add_column("with calls %", justify="right")
    shown.add_column("alone %", justify="right")
    names = sorted(whole, key=whole.__getitem__, reverse=True)[:_SHOWN]
    alone = sorted(own, key=own.__getitem__, reverse=True)[:_SHOWN]
    for name in dict.fromkeys((*names, *alone)):
        shown.add_row(name, f"{100 * whole[name] / total:.1f}", f"{100 * own[name] / total:.1f}")
    return shown


def _add_up(
    frame: Frame, own: dict[str, float], whole: dict[str, float], above: frozenset[str]
) -> None:
    """Seconds by function; one that calls itself counts once with its calls."""
    if frame.is_synthetic and frame.parent:  # its time is its parent's own
        return
    name = f"{frame.function}  {frame.file_path_short or ''}"
    own[name] += frame.total_self_time
    if name not in above:
        whole[name] += frame.time
    for child in frame.children:
        _add_up(child, own, whole, above | {name})


def _toggle(sandbox: Sandbox) -> None:
    parts = sandbox.status()
    for pid in filter(None, (parts[service].pid for service in SERVICES)):
        os.kill(pid, signal.SIGUSR2)


def _moved(source: Path, target: Path) -> bool:
    """Move the file if it is there."""
    if not source.exists():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)
    return True
