"""Copy a job's results: `python -m slurmjobs.companions.collector PART ORDER`, where ORDER is JSON, `[[SOURCE, FOLDER], …]`.

The program of a collector pod. It runs as the job's user, so the kernel decides what it may read and write. Each file is written
under the name PART, which is unique to the SlurmJob, and renamed when it is complete; the next try overwrites a leftover PART.
No symbolic link is followed, neither when reading nor when writing: links inside a folder are copied as links. Devices, sockets
and pipes are left out.

Exit codes: 0 if everything was copied, 1 if another try would not help, 75 if it may. The termination message says what failed.
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
"""How long to wait for a missing source: a shared file system may show it a minute late."""
TRY_AGAIN = 75
MESSAGE = Path("/dev/termination-log")
_CHUNK = 1 << 20
_MOST_NAMED = 5
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SEARCH = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""For folders along a path, which need to be searchable, not readable."""
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


class Copier:
    """Copies files of one order, counts them and bounds their number; the volume bounds their size."""

    def __init__(self, part: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._part = part
        self._sleep = sleep
        self.files = 0
        self.bytes = 0
        self.left_out: list[str] = []
        """Paths of the first few entries that are neither files, folders nor links."""
        self._entries = 0

    def copy(self, source: str, folder: str) -> None:
        """Copy a file or folder into a folder, which is created if it is missing.

        Both are absolute paths, and none of their parts may be a symbolic link.

        Raises:
            OSError: the kernel refused.
            Hopeless: it cannot be copied.
        """
        parent, name = os.path.split(os.path.normpath(source))
        self._wait_for(parent, name)
        with _open_path(parent) as above, _open_path(folder, make=True) as into:
            self._copy(above, into, name, source, depth=0)

    def _wait_for(self, parent: str, name: str) -> None:
        waited_s = 0.0
        while True:
            try:
                with _open_path(parent) as above:
                    os.stat(name, dir_fd=above, follow_symlinks=False)
                    return
            except FileNotFoundError as error:
                if waited_s >= PATIENCE_S:
                    raise Hopeless(f"{parent}/{name}: no such file or folder") from error
            self._sleep(1.0)
            waited_s += 1.0

    def _copy(self, above: int, into: int, name: str, path: str, *, depth: int) -> None:
        self._entries += 1
        if self._entries > MOST_ENTRIES:
            raise Hopeless(f"{path}: more than {MOST_ENTRIES} files")
        if name == self._part:
            raise Hopeless(f"{path}: this name is reserved for files being copied")
        info = os.stat(name, dir_fd=above, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            self._copy_folder(above, into, name, path, info, depth=depth)
        elif stat.S_ISREG(info.st_mode):
            self._copy_file(above, into, name, info)
        elif stat.S_ISLNK(info.st_mode) and depth:
            self._copy_link(above, into, name)
        elif depth:
            if len(self.left_out) < _MOST_NAMED:
                self.left_out.append(path)
        else:
            raise Hopeless(f"{path}: expected a file or a folder")

    def _copy_folder(
        self, above: int, into: int, name: str, path: str, info: os.stat_result, *, depth: int
    ) -> None:
        if depth >= DEEPEST:
            raise Hopeless(f"{path}: folders are nested more than {DEEPEST} deep")
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=into)
        with _enter(name, above) as inside, _enter(name, into) as target:
            with os.scandir(inside) as entries:
                left = MOST_ENTRIES - self._entries + 1
                names = [entry.name for entry in islice(entries, left)]
            for entry_name in sorted(names):
                self._copy(inside, target, entry_name, f"{path}/{entry_name}", depth=depth + 1)
            os.fchmod(target, stat.S_IMODE(info.st_mode) & 0o777 | 0o700)

    def _copy_file(self, above: int, into: int, name: str, info: os.stat_result) -> None:
        part = self._part
        _remove(part, into)
        source = os.open(name, _FILE, dir_fd=above)
        try:
            if not stat.S_ISREG(os.fstat(source).st_mode):
                raise Hopeless(f"{name}: it was replaced while being copied")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            target = os.open(part, flags, 0o600, dir_fd=into)
            try:
                while data := os.read(source, _CHUNK):
                    rest = memoryview(data)
                    while rest:
                        rest = rest[os.write(target, rest) :]
                    self.bytes += len(data)
                os.fchmod(target, stat.S_IMODE(info.st_mode) & 0o777)
                os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
                os.fsync(target)
            finally:
                os.close(target)
        finally:
            os.close(source)
        os.rename(part, name, src_dir_fd=into, dst_dir_fd=into)
        self.files += 1

    def _copy_link(self, above: int, into: int, name: str) -> None:
        _remove(self._part, into)
        os.symlink(os.readlink(name, dir_fd=above), self._part, dir_fd=into)
        os.rename(self._part, name, src_dir_fd=into, dst_dir_fd=into)
        self.files += 1


def _remove(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


@contextmanager
def _enter(name: str, folder: int) -> Iterator[int]:
    opened = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield opened
    finally:
        os.close(opened)


@contextmanager
def _open_path(path: str, *, make: bool = False) -> Iterator[int]:
    """Open a folder part by part, so that no symbolic link is followed."""
    current = os.open("/", _SEARCH)
    try:
        for part in (component for component in path.split("/") if component not in ("", ".")):
            if part == "..":
                raise Hopeless(f"{path}: a path may not contain `..`")
            if make:
                with suppress(FileExistsError, PermissionError):  # the open below reports the error
                    os.mkdir(part, 0o755, dir_fd=current)
            below = os.open(part, _SEARCH, dir_fd=current)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def run(order: list[list[str]], copier: Copier) -> tuple[int, str]:
    """Copy everything; return the exit code and the termination message."""
    faults: list[str] = []
    code = 0
    for source, folder in order:
        try:
            copier.copy(source, folder)
        except Hopeless as error:
            faults.append(str(error))
            code = 1
        except OSError as error:
            place = error.filename if isinstance(error.filename, str) else source
            faults.append(f"{source} -> {folder}: {place}: {error.strerror}")
            code = 1 if error.errno in _HOPELESS else code or TRY_AGAIN
    if faults:
        return code, "; ".join(faults)
    message = f"{copier.files} files, {copier.bytes} bytes"
    if copier.left_out:
        message = f"{message}; skipped, as not regular files: {', '.join(copier.left_out)}"
    return 0, message


def main() -> int:
    """Carry out the order on the command line."""
    code, message = run(json.loads(sys.argv[2]), Copier(sys.argv[1]))
    shown = "".join(
        c if c.isprintable() else ascii(c)[1:-1] for c in message
    )  # names of users' files
    text = shown.encode(errors="backslashreplace")[:4000]
    sys.stderr.buffer.write(text + b"\n")
    with suppress(OSError):  # it is also in the log
        MESSAGE.write_bytes(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
