"""Run one part: start, stop, pause, and report its state."""

import contextlib
import enum
import math
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from sandbox import launch
from sandbox.errors import PartFailedError
from sandbox.part import Part

_TAIL_LINES = 15


class State(enum.StrEnum):
    """The state of a part."""

    DOWN = "down"
    """Not started, or stopped on request."""
    STARTING = "starting"
    UP = "up"
    PAUSED = "paused"
    FAILED = "failed"
    """It exited by itself."""


class Process:
    """The process of a part, which may come and go; its log stays."""

    def __init__(self, part: Part, log: Path) -> None:
        self.part = part
        self.log = log
        self.state = State.DOWN
        self.seen_up = False
        self._popen: subprocess.Popen[bytes] | None = None
        self._deadline_s = 0.0

    @property
    def pid(self) -> int | None:
        """None unless it runs."""
        return (
            None if self._popen is None or self._popen.returncode is not None else self._popen.pid
        )

    def start(self) -> None:
        """Start it; `check` notices when it is up.

        Call it in the main thread: children die with the thread that started them.
        """
        if self.pid is not None:
            return
        part = self.part
        part.prepare()
        with self.log.open("ab") as log:
            self._popen = subprocess.Popen(
                launch.command(
                    part.argv,
                    uid=part.identity.uid,
                    gid=part.identity.gid,
                    env={"PATH": "/usr/bin:/bin", "HOME": str(part.folder), **part.env},
                ),
                cwd=part.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.state = State.STARTING
        self._deadline_s = time.monotonic() + part.start_timeout_s

    def check(self) -> None:
        """Bring `state` up to date.

        Raises:
            PartFailedError: it exited by itself, or has not answered in time.
        """
        if self._popen is None or self.state in (State.DOWN, State.FAILED):
            return
        if self._popen.poll() is not None:
            self._bury()
            self.state = State.FAILED
            raise self._failure(f"exited by itself: {_ending(self._popen.returncode)}")
        if self.state is not State.STARTING:
            return
        if self.part.answers():
            self.state = State.UP
        elif time.monotonic() > self._deadline_s:
            self._deadline_s = math.inf
            raise self._failure(
                f"is running but has not answered for {self.part.start_timeout_s} s"
            )

    def stop(self, signal_number: int = signal.SIGTERM) -> None:
        """End it with this signal, or SIGKILL if that takes too long.

        Return when it and its children are gone.
        """
        if self._popen is None:
            return
        if self._popen.poll() is None:
            # Half-started servers ignore signals: an API server keeps asking for its etcd.
            starting = self.state is State.STARTING
            self._signal(signal.SIGKILL if starting else signal_number)
            # A paused process would not see the other signal.
            self._go_on()
            try:
                self._popen.wait(self.part.stop_timeout_s)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()
        self._bury()
        self.state = State.DOWN

    def pause(self) -> None:
        """Suspend it: the kernel accepts connections, which are never answered.

        Return when all its threads have stopped: until then the others go on answering.
        """
        if self._popen is None or self.pid is None:
            return
        if not self.part.freeze():
            self._popen.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self._popen.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.state = State.PAUSED

    def resume(self) -> None:
        """Undo `pause`."""
        if self._popen is not None and self.state is State.PAUSED:
            self._go_on()
            self.state = State.UP

    def wipe(self) -> None:
        """Empty its data folders; only while it is down."""
        for folder in self.part.data:
            for path in folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    def _signal(self, number: int) -> None:
        if self._popen is None:
            return
        main = self.part.main_pid(self._popen.pid)
        if main == self._popen.pid:
            self._popen.send_signal(number)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(main, number)

    def _go_on(self) -> None:
        if self.state is State.PAUSED:
            self.part.thaw()
        if self._popen is not None:
            self._popen.send_signal(signal.SIGCONT)

    def _bury(self) -> None:
        # End the rest of its session: slurmctld's slurmscriptd outlives a SIGKILL by a moment.
        if self._popen is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)

    def _failure(self, what: str) -> PartFailedError:
        return PartFailedError(
            part=self.part.name,
            what=what,
            log=str(self.log),
            tail=tail(self.log),
            advice=self.part.advice,
        )


def tail(log: Path, lines: int = _TAIL_LINES) -> Sequence[str]:
    """Return the last lines of a log, [] if there is none."""
    try:
        return log.read_text(errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []


def resident_mib(pid: int) -> float:
    """Return the memory of a process and its children; 0 once it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    own = next((line for line in status.splitlines() if line.startswith("VmRSS:")), "VmRSS: 0 kB")
    return int(own.split()[1]) / 1024 + sum(resident_mib(int(child)) for child in children)


def _ending(returncode: int) -> str:
    if returncode < 0:
        return f"signal {signal.Signals(-returncode).name}"
    return f"exit code {returncode}"
