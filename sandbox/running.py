"""A sandbox's life: one supervisor per folder, proven by a lock that dies with it."""

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from bridge.runtime.clock import SystemClock
from sandbox import control, instance
from sandbox.assembly import assemble
from sandbox.assets import Asset, AssetName
from sandbox.control import Request
from sandbox.errors import SandboxError
from sandbox.instance import Instance
from sandbox.options import Options
from sandbox.supervisor import Supervisor

_STOP_TIMEOUT_S = 60.0
_POLL_S = 0.05


def supervise(
    root: Path,
    options: Options,
    programs: dict[AssetName, Asset],
    report: Callable[[str], None],
    ready: Callable[[Instance], None],
) -> None:
    """Bring a sandbox up, keep it until it is told to go down (or SIGTERM, SIGINT), and clean up.

    Raises:
        SandboxError: a part did not come up; everything is down again, the logs are kept.
    """
    root = root.absolute()
    instance.check_ours(root)
    root.mkdir(parents=True, exist_ok=True, mode=0o755)
    signal.signal(signal.SIGTERM, _interrupt)
    with _locked(root):
        new = Instance.create(root, options)
        supervisor = Supervisor(new, assemble(new, programs, SystemClock().now()), report)
        try:
            supervisor.start()
            ready(new)
            supervisor.serve()
        except KeyboardInterrupt:
            report("going down")
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            supervisor.stop()
            instance.clear(root)


def is_running(root: Path) -> bool:
    """Whether a supervisor, ready or not, has the folder."""
    return _holder(root) is not None


def take_down(root: Path) -> None:
    """End the sandbox of this folder, however far it has come, and remove the folder.

    Raises:
        SandboxError: there is none, or it cannot be ended.
    """
    if not root.exists():
        raise SandboxError(f"no sandbox in {root}")
    pid = _holder(root)
    if pid is not None:
        try:
            control.call(root / "control", Request(verb="down"))
        except SandboxError:  # still starting, or stuck
            os.kill(pid, signal.SIGTERM)
        if not _gone(root, _STOP_TIMEOUT_S):
            os.kill(pid, signal.SIGKILL)  # takes its children with it
            if not _gone(root, _STOP_TIMEOUT_S):
                raise SandboxError(f"the supervisor of {root} (pid {pid}) does not go away")
    instance.remove(root)


def _gone(root: Path, timeout_s: float) -> bool:
    deadline_s = time.monotonic() + timeout_s
    while _holder(root) is not None:
        if time.monotonic() > deadline_s:
            return False
        time.sleep(_POLL_S)
    return True


def _holder(root: Path) -> int | None:
    """The pid of the supervisor, None if there is none."""
    try:
        file = (root / "lock").open()
    except FileNotFoundError:
        return None
    with file:
        pid = file.read().strip()
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(pid)
    return None


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    with (root / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SandboxError(
                f"a sandbox runs in {root} already: end it with 'slurm-bridge sandbox down --state {root}'"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
