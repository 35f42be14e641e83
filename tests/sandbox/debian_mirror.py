"""A Debian mirror on a loopback port: one suite, a few packages, signed with keys of the test's own."""

import contextlib
import functools
import hashlib
import http.server
import io
import lzma
import tarfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from typing_extensions import override

from tests.sandbox.openpgp import Key

SUITE = "forky"
ARCHITECTURE = "amd64"


@dataclass(frozen=True, kw_only=True)
class Built:
    """A package to be: its files (path -> content) and its fields."""

    name: str
    files: Mapping[str, bytes]
    depends: str = ""
    provides: str = ""
    version: str = "26.05.5-1"


def write(
    folder: Path, packages: list[Built], key: Key, *, made: datetime, suite: str = SUITE
) -> None:
    """The mirror's files; its index is valid for 7 days from `made`, as Debian's are."""
    stanzas = [_add(folder, package) for package in packages]
    index = lzma.compress("\n\n".join(stanzas).encode())
    digest = hashlib.sha256(index).hexdigest()
    place = f"main/binary-{ARCHITECTURE}"
    _write(folder / f"dists/{suite}/{place}/by-hash/SHA256/{digest}", index)
    form = "%a, %d %b %Y %H:%M:%S UTC"
    until = made + timedelta(days=7)
    release = (
        f"Origin: Debian\nSuite: testing\nCodename: {suite}\nDate: {made:{form}}\nValid-Until: {until:{form}}\n"
        f"SHA256:\n {digest} {len(index):8} {place}/Packages.xz\n"
    )
    _write(folder / f"dists/{suite}/InRelease", key.clear_sign(release, made=made))


def deb(files: Mapping[str, bytes]) -> bytes:
    """A package with these files."""
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": _tar({"./control": b"nobody reads it\n"}),
        "data.tar.xz": _tar({f"./{path}": content for path, content in files.items()}),
    }
    archive = b"!<arch>\n"
    for name, content in parts.items():
        archive += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        archive += content + b"\n" * (len(content) % 2)
    return archive


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server for the folder's files."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    @override
    def log_message(self, *arguments: object) -> None:
        pass


def _add(folder: Path, package: Built) -> str:
    content = deb(package.files)
    path = f"pool/main/{package.name}_{package.version}_{ARCHITECTURE}.deb"
    _write(folder / path, content)
    return (
        f"Package: {package.name}\nVersion: {package.version}\nDepends: {package.depends}\n"
        f"Provides: {package.provides}\nFilename: {path}\nSize: {len(content)}\n"
        f"SHA256: {hashlib.sha256(content).hexdigest()}\n"
    )


def _tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
