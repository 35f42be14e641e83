"""Print a growing file until the job that writes it has ended, then exit as the job did.

The program of a log companion: `python -m slurmjobs.companions.follower FILE END`. It runs as the job's user, so the kernel
decides what it may read. It needs no network and no token: END is a file that is empty until the job has ended, and then
holds its exit code.
"""

import os
import signal
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

LINGER_S = 1.0
"""How long the file must be quiet after the end: a shared file system may show the last lines late."""
PAUSE_S = 0.2
_CHUNK = 1 << 20


class Follower:
    """Follows a file that may be missing at first, be truncated, or be replaced by another of its name."""

    def __init__(self, path: Path, write: Callable[[bytes], None]) -> None:
        """Pass the file's present and future content to `write`."""
        self._path = path
        self._write = write
        self._file: int | None = None
        self._passed = 0
        self.fault = ""
        """Why it could not be read the last time."""

    def poll(self) -> bool:
        """Pass on new content; return whether there was any."""
        try:
            self._open_current()
            return self._file is not None and self._copy(self._file)
        except OSError as error:
            self.fault = f"{self._path}: {error.strerror}"
            return False

    def _open_current(self) -> None:
        current = self._path.stat()
        if not stat.S_ISREG(current.st_mode):
            raise OSError(0, "not a regular file")
        if self._file is not None:
            opened = os.fstat(self._file)
            if (opened.st_dev, opened.st_ino) == (current.st_dev, current.st_ino):
                if current.st_size < self._passed:  # truncated by a requeued job
                    self._passed = os.lseek(self._file, 0, os.SEEK_SET)
                return
            self._copy(self._file)
            os.close(self._file)
        self._file, self._passed = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK), 0
        self.fault = ""

    def _copy(self, file: int) -> bool:
        before = self._passed
        while data := os.read(file, _CHUNK):
            self._write(data)
            self._passed += len(data)
        return self._passed > before


def follow(follower: Follower, end: Path) -> int:
    """Follow until the job has ended and the file is quiet; return the job's exit code."""
    silent_since: float | None = None
    while True:
        code = _read_exit_code(
            end
        )  # before the look: what was written before the end is then passed on
        is_new = follower.poll()
        if code is None or is_new:
            silent_since = None
        elif silent_since is None:
            silent_since = time.monotonic()
        elif time.monotonic() - silent_since >= LINGER_S:
            return code
        if not is_new:
            time.sleep(PAUSE_S)


def _read_exit_code(end: Path) -> int | None:
    try:
        return int(end.read_text())
    except (OSError, ValueError):
        return None


def _write(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def _visible(text: str) -> str:
    """Return a text that does nothing to a terminal, whatever a user called a file."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def main() -> int:
    """Follow the file named on the command line."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # process 1 has no default for it
    follower = Follower(Path(sys.argv[1]), _write)
    code = follow(follower, Path(sys.argv[2]))
    if follower.fault:
        sys.stderr.write(f"slurm-bridge: {_visible(follower.fault)}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
