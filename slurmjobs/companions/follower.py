"""Print a growing file until the job that writes it has ended, then exit as the job did.

The program of a companion: `python -m slurmjobs.companions.follower FILE END`. It runs as the job's user, so the kernel decides
what it may read. It needs no network and no token: END is a file that stays empty until the job has ended, and then
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
"""How long the file has to be silent after the end: a shared file system may show the last lines late."""
PAUSE_S = 0.2
_CHUNK = 1 << 20


class Following:
    """A file that may not be there yet, be truncated, or be replaced by another of its name."""

    def __init__(self, path: Path, write: Callable[[bytes], None]) -> None:
        """Pass on what the file holds and gets, with `write`."""
        self._path = path
        self._write = write
        self._file: int | None = None
        self._passed = 0
        self.fault = ""
        """Why it could not be read at the last look."""

    def look(self) -> bool:
        """Pass on what is new; return whether there was anything."""
        try:
            self._open_what_is_there()
            return self._file is not None and self._copy(self._file)
        except OSError as error:
            self.fault = f"{self._path}: {error.strerror}"
            return False

    def _open_what_is_there(self) -> None:
        found = self._path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is no ordinary file")
        if self._file is not None:
            own = os.fstat(self._file)
            if (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino):
                if found.st_size < self._passed:  # begun anew: a requeued job's
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


def follow(following: Following, end: Path) -> int:
    """Follow until the end is told and the file is silent; return the job's exit code."""
    silent_since: float | None = None
    while True:
        code = _told(end)  # before the look: what was written before the end is then passed on
        is_new = following.look()
        if code is None or is_new:
            silent_since = None
        elif silent_since is None:
            silent_since = time.monotonic()
        elif time.monotonic() - silent_since >= LINGER_S:
            return code
        if not is_new:
            time.sleep(PAUSE_S)


def _told(end: Path) -> int | None:
    try:
        return int(end.read_text())
    except (OSError, ValueError):
        return None


def _write(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def main() -> int:
    """Follow the file that the command line names."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # process 1 has no default for it
    following = Following(Path(sys.argv[1]), _write)
    code = follow(following, Path(sys.argv[2]))
    if following.fault:
        sys.stderr.write(f"slurm-bridge: {following.fault}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
