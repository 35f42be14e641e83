"""Copy a job's results: `python -m slurmjobs.companions.collector PART ORDER`, where ORDER is JSON, `[[SOURCE, FOLDER], …]`.

The program of a collector. It runs as the job's user, so the kernel decides what it may read and write. Each file comes under the
name PART first, which is the SlurmJob's own, and is renamed when it is whole; the next try overwrites what this one left under it.
No symbolic link is followed,
neither in what is read nor in what is written: links inside a folder are copied as links. Devices, sockets and pipes are left out.

Exit codes: 0 if all is there, 1 if another try would not help, 75 if it may. What was wrong stands in the termination message.
"""

import errno
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

MOST_ENTRIES = 1_000_000
DEEPEST = 64
PATIENCE_S = 65.0
"""How long a missing source is waited for: a shared file system may show it a minute late."""
TRY_AGAIN = 75
MESSAGE = Path("/dev/termination-log")
_CHUNK = 1 << 20
_MOST_NAMED = 5
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""A folder on the way needs to be searchable, not readable."""
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HOPELESS = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.ELOOP,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENAMETOOLONG,
        errno.EROFS,
    }
)


class Hopeless(Exception):
    """Another try would not help."""


class Copying:
    """One order: counts what it copies, and bounds how many files; how much, the volume does."""

    def __init__(self, part: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._part = part
        self._sleep = sleep
        self.files = 0
        self.bytes = 0
        self.left_out: list[str] = []
        """Neither files, folders nor links; the first few."""
        self._entries = 0

    def copy(self, source: str, folder: str) -> None:
        """Copy a file or folder into a folder, which is made if it is missing.

        Args:
            source: an absolute path; none of its parts may be a symbolic link.
            folder: likewise.

        Raises:
            OSError: the kernel refused.
            Hopeless: it is something that cannot be copied.
        """
        parent, name = os.path.split(os.path.normpath(source))
        self._wait_for(parent, name)
        with _opened(parent) as above, _opened(folder, make=True) as into:
            self._copy(above, into, name, source, depth=0)

    def _wait_for(self, parent: str, name: str) -> None:
        waited_s = 0.0
        while True:
            try:
                with _opened(parent) as above:
                    os.stat(name, dir_fd=above, follow_symlinks=False)
                    return
            except FileNotFoundError as error:
                if waited_s >= PATIENCE_S:
                    raise Hopeless(f"{parent}/{name}: there is no such file or folder") from error
            self._sleep(1.0)
            waited_s += 1.0

    def _copy(self, above: int, into: int, name: str, path: str, *, depth: int) -> None:
        self._entries += 1
        if self._entries > MOST_ENTRIES:
            raise Hopeless(f"{path}: there are more than {MOST_ENTRIES} files")
        if name == self._part:
            raise Hopeless(f"{path}: files get this name while they are copied")
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            self._copy_folder(above, into, name, path, found, depth=depth)
        elif stat.S_ISREG(found.st_mode):
            self._copy_file(above, into, name, found)
        elif stat.S_ISLNK(found.st_mode) and depth:
            self._copy_link(above, into, name)
        elif depth:
            if len(self.left_out) < _MOST_NAMED:
                self.left_out.append(path)
        else:
            raise Hopeless(f"{path}: expected a file or a folder")

    def _copy_folder(
        self, above: int, into: int, name: str, path: str, found: os.stat_result, *, depth: int
    ) -> None:
        if depth >= DEEPEST:
            raise Hopeless(f"{path}: folders are nested more than {DEEPEST} deep")
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=into)
        with _entered(name, above) as inside, _entered(name, into) as target:
            with os.scandir(inside) as entries:
                left = MOST_ENTRIES - self._entries + 1
                names = [entry.name for entry in islice(entries, left)]
            for each in sorted(names):
                self._copy(inside, target, each, f"{path}/{each}", depth=depth + 1)
            os.fchmod(target, stat.S_IMODE(found.st_mode) & 0o777 | 0o700)

    def _copy_file(self, above: int, into: int, name: str, found: os.stat_result) -> None:
        part = self._part
        _removed(part, into)
        source = os.open(name, _FILE, dir_fd=above)
        try:
            if not stat.S_ISREG(os.fstat(source).st_mode):
                raise Hopeless(f"{name}: it was replaced while it was copied")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            target = os.open(part, flags, 0o600, dir_fd=into)
            try:
                while data := os.read(source, _CHUNK):
                    rest = memoryview(data)
                    while rest:
                        rest = rest[os.write(target, rest) :]
                    self.bytes += len(data)
                os.fchmod(target, stat.S_IMODE(found.st_mode) & 0o777)
                os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
                os.fsync(target)
            finally:
                os.close(target)
        finally:
            os.close(source)
        os.rename(part, name, src_dir_fd=into, dst_dir_fd=into)
        self.files += 1

    def _copy_link(self, above: int, into: int, name: str) -> None:
        _removed(self._part, into)
        os.symlink(os.readlink(name, dir_fd=above), self._part, dir_fd=into)
        os.rename(self._part, name, src_dir_fd=into, dst_dir_fd=into)
        self.files += 1


def _removed(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


@contextmanager
def _entered(name: str, folder: int) -> Iterator[int]:
    opened = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield opened
    finally:
        os.close(opened)


@contextmanager
def _opened(path: str, *, make: bool = False) -> Iterator[int]:
    """Open a folder part by part, so that no part is a symbolic link."""
    here = os.open("/", _WAY)
    try:
        for part in (each for each in path.split("/") if each not in ("", ".")):
            if part == "..":
                raise Hopeless(f"{path}: it has a part `..`, which may lead anywhere")
            if make:
                with suppress(FileExistsError, PermissionError):  # the open says what is wrong
                    os.mkdir(part, 0o755, dir_fd=here)
            below = os.open(part, _WAY, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def run(order: list[list[str]], copying: Copying) -> tuple[int, str]:
    """Copy everything; return the exit code and what to say."""
    faults: list[str] = []
    code = 0
    for source, folder in order:
        try:
            copying.copy(source, folder)
        except Hopeless as error:
            faults.append(str(error))
            code = 1
        except OSError as error:
            place = error.filename if isinstance(error.filename, str) else source
            faults.append(f"{source} -> {folder}: {place}: {error.strerror}")
            code = 1 if error.errno in _HOPELESS else code or TRY_AGAIN
    if faults:
        return code, "; ".join(faults)
    said = f"{copying.files} files, {copying.bytes} bytes"
    if copying.left_out:
        said = f"{said}; left out, as they are no files: {', '.join(copying.left_out)}"
    return 0, said


def main() -> int:
    """Carry out the order that the command line gives."""
    code, said = run(json.loads(sys.argv[2]), Copying(sys.argv[1]))
    text = said.encode(errors="backslashreplace")[:4000]
    sys.stderr.buffer.write(text + b"\n")
    with suppress(OSError):  # it is in the log, too
        MESSAGE.write_bytes(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
