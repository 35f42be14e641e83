"""A part of the sandbox: a program, what it needs, and how to check that it answers."""

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.identity import Identity


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One process of the sandbox, as values; `sandbox.process` runs it."""

    name: str
    argv: tuple[str, ...]
    """The program's absolute path and its arguments."""
    identity: Identity
    env: Mapping[str, str] = field(default_factory=dict)
    """In addition to PATH and HOME; nothing is inherited."""
    folder: Path
    """Its working directory."""
    port: int
    answers: Callable[[], bool]
    """Returns whether it works; quick, and False rather than an exception."""
    needs: tuple[str, ...] = ()
    """Parts that must answer before this one starts."""
    prepare: Callable[[], None] = _nothing
    """Run before each start."""
    once_up: Callable[[], None] = _nothing
    """Run when it answers for the first time: set-up for the sandbox, such as nodes."""
    data: tuple[Path, ...] = ()
    """The folders that `--wipe` empties."""
    leaves_by: signal.Signals = signal.SIGKILL
    """The signal that ends it when the whole sandbox goes down: its data is not needed then."""
    restarts: bool = False
    """Started again if it exits by itself, like a Deployment's pods."""
    start_timeout_s: float = 60
    stop_timeout_s: float = 10
    advice: str = "see the log for the cause; 'slurm-bridge sandbox status' shows the other parts"

    def main_pid(self, pid: int) -> int:
        """Return the process that signals go to, given the one that was started."""
        return pid

    def freeze(self) -> bool:
        """Suspend all its processes; return False if SIGSTOP has to do that."""
        return False

    def thaw(self) -> None:
        """Undo `freeze`; SIGCONT follows."""
