"""The base that the Dockerfile builds on without a registry: Debian's Python, a shell, the usual CAs.

The packages' scripts never run, so this module creates the files that they would have created.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from sandbox.image import bom
from sandbox.realnodes.images import Entry, Image

NAME = "localhost/slurm-bridge-base:1"
IMAGE = Image(name=NAME, command=("python3",))
FOR_BUILDING = ("python3-pip-whl", "python3.13-venv")
"""Packages whose files the Dockerfile removes at the end."""
_FOLDERS = (
    "dev",
    "home",
    "proc",
    "root",
    "run",
    "sys",
    "var",
    "var/cache",
    "var/lib",
    "var/lib/dpkg",
)
_PASSWD = (
    b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
)
_GROUP = b"root:x:0:\nnogroup:x:65534:\n"
_TRUSTED = "etc/ssl/certs/ca-certificates.crt"


def entries(root: Path, python: str, packages: Mapping[str, str]) -> Iterator[Entry]:
    """Return the files of the base.

    Args:
        root: where the packages were unpacked.
        python: the name of their Python's program.
        packages: their names and versions, for dpkg's status file.
    """
    yield from _unpacked(root)
    yield Entry(path=bom.DPKG_STATUS, data=bom.dpkg_status(_lasting(packages)), mode=0o644)
    for folder in _FOLDERS:
        yield Entry(path=folder, is_folder=True)
    for folder in ("tmp", "var/tmp"):
        yield Entry(path=folder, is_folder=True, mode=0o1777)
    yield Entry(path="usr/bin/python3", link=python)
    yield Entry(path="usr/bin/python", link="python3")
    yield Entry(path="etc/passwd", data=_PASSWD, mode=0o644)
    yield Entry(path="etc/group", data=_GROUP, mode=0o644)
    certificates = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    trusted = b"".join(file.read_bytes() for file in certificates)
    yield Entry(path=_TRUSTED, data=trusted, mode=0o644)
    yield Entry(path="usr/lib/ssl/cert.pem", link=f"../../../{_TRUSTED}")


def _lasting(packages: Mapping[str, str]) -> dict[str, str]:
    return {name: packages[name] for name in packages if name not in FOR_BUILDING}


def _unpacked(root: Path) -> Iterator[Entry]:
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            yield Entry(path=name, link=str(path.readlink()))
        elif path.is_dir():
            yield Entry(path=name, is_folder=True)
        else:
            mode = path.stat().st_mode & 0o777
            yield Entry(path=name, data=path.read_bytes(), mode=mode)
