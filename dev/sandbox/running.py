"""A sandbox's life: one supervisor per folder, proven by a lock that dies with it."""

import contextlib
import fcntl
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from sandbox import control, instance
from sandbox.assembly import assemble
from sandbox.assets import Asset, AssetName
from sandbox.control import Request
from sandbox.errors import SandboxError
from sandbox.instance import Instance
from sandbox.options import Options
from sandbox.realnodes import network, remains
from sandbox.realnodes.network import Network
from sandbox.supervisor import Supervisor
from slurmruntime.process.clock import SystemClock

_STOP_TIMEOUT_S = 60.0
_POLL_S = 0.05
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def supervise(
    root: Path,
    options: Options,
    programs: dict[AssetName, Asset],
    report: Callable[[str], None],
    ready: Callable[[Instance], None],
) -> None:
    """Bring a sandbox up, keep it until a request to go down (or SIGTERM, SIGINT, SIGHUP), stop it.

    Its folder keeps the logs; `take_down` removes them too.

    Raises:
        SandboxError: a part did not come up; everything is down again.
    """
    root = root.absolute()
    instance.check_ours(root)
    os.umask(0o022)  # our servers run as other users
    root.mkdir(parents=True, exist_ok=True)
    for number in _STOP_SIGNALS:
        signal.signal(number, _interrupt)
    with _locked(root), contextlib.ExitStack() as cleaning:
        cleaning.callback(instance.clear, root)
        remains.release(root)  # an earlier one, if everything was killed
        new = Instance.create(root, options)
        cable = _claim(new, programs, cleaning)
        supervisor = Supervisor(new, assemble(new, programs, SystemClock().now(), cable), report)
        cleaning.callback(_stop, supervisor)
        try:
            supervisor.start()
            ready(new)
            supervisor.serve()
        except KeyboardInterrupt:
            report("going down")


def _claim(
    new: Instance, programs: dict[AssetName, Asset], cleaning: contextlib.ExitStack
) -> Network | None:
    """Create the network of the real nodes, if there are any."""
    options = new.options
    if not options.real_nodes:
        return None
    ip = programs[AssetName.NODE].bin / "ip"
    remains.sweep(is_running, ip)
    cleaning.callback(remains.release, new.root, ip)
    return network.claim(new.root, ip, nodes=options.real_nodes, wanted=options.real_network)


def _stop(supervisor: Supervisor) -> None:
    for number in _STOP_SIGNALS:  # it is going down already
        signal.signal(number, signal.SIG_IGN)
    supervisor.stop()


def is_running(root: Path) -> bool:
    """Check whether a supervisor keeps the sandbox of this folder."""
    return _holder(root) is not None


def check_free(root: Path) -> None:
    """Check that no sandbox runs in this folder.

    Raises:
        SandboxError: one does.
    """
    pid = _holder(root)
    if pid is not None:
        raise SandboxError(
            f"a sandbox (pid {pid}) is already running in {root}: end it with 'slurm-bridge sandbox down --state {root}'"
        )


def is_up(root: Path, supervisor_pid: int) -> bool:
    """Check whether this supervisor has brought everything up."""
    if not (root / "control").exists():
        return False
    try:
        return control.call(root / "control", Request(verb="status")).pid == supervisor_pid
    except SandboxError:  # remains of an earlier sandbox
        return False


def take_down(root: Path) -> None:
    """End the sandbox of this folder, in whatever state, and remove the folder.

    Raises:
        SandboxError: there is none, or it cannot be ended.
    """
    if not root.exists():
        raise SandboxError(f"no sandbox in {root}")
    pid = _holder(root)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            _end(pid, root)
    instance.check_ours(root)
    remains.release(root)
    instance.remove(root)


def _end(pid: int, root: Path) -> None:
    handle = os.pidfd_open(pid)
    try:
        try:
            control.call(root / "control", Request(verb="down"))
        except SandboxError:  # still starting, or stuck
            signal.pidfd_send_signal(handle, signal.SIGTERM)
        if not _has_ended(handle):
            signal.pidfd_send_signal(handle, signal.SIGKILL)  # its children die with it
            if not _has_ended(handle):
                raise SandboxError(f"the supervisor of {root} (pid {pid}) does not exit")
    finally:
        os.close(handle)


def _has_ended(handle: int) -> bool:
    """Wait for the end of the process behind a pidfd."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(_STOP_TIMEOUT_S * 1000))


def _holder(root: Path) -> int | None:
    """Return the pid of the folder's supervisor, None if there is none."""
    try:
        file = (root / "lock").open()
    except FileNotFoundError:
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            while not (pid := file.read().strip()):  # locked just now, not yet written
                time.sleep(_POLL_S)
            return int(pid)
    return None


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    descriptor = os.open(root / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            check_free(root)
            raise
        os.pwrite(descriptor, f"{os.getpid():<10}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
