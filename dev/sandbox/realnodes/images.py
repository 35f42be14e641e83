"""Container images without a registry or a builder: one layer, from a folder or from packages.

The result is a docker archive, which containerd imports. The same input gives the same bytes.
"""

import hashlib
import io
import json
import platform
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from sandbox.assets.packages import MACHINES
from sandbox.errors import SandboxError
from sandbox.realnodes.configuration import PAUSE

BUSYBOX = "docker.io/library/busybox:latest"
"""The full name of `image: busybox`, as a kubelet expands it."""
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_EPOCH = "1970-01-01T00:00:00Z"
_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*(?::\d+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image's name, command and user."""

    name: str
    """With a tag and, so that kubelets find it, a host: `docker.io/library/busybox:latest`."""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: str = ""

    def called(self, name: str) -> Self:
        """Return the same image under another name."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file, a link or a folder of an image."""

    path: str
    data: bytes = b""
    link: str = ""
    is_folder: bool = False
    mode: int = 0o755


def full_name(name: str) -> str:
    """Expand a name as kubelets do: with host, folder and tag.

    Raises:
        SandboxError: it is not an image's name.
    """
    base, tag = name, "latest"
    if ":" in name.rpartition("/")[2]:
        base, _, tag = name.rpartition(":")
    if not _NAME.fullmatch(base) or not _TAG.fullmatch(tag):
        raise SandboxError(f"{name!r} is not an image's name: expected one such as local/tool:1")
    host, slash, _ = base.partition("/")
    if not slash:
        return f"docker.io/library/{base}:{tag}"
    if "." not in host and ":" not in host and host != "localhost":
        return f"docker.io/{base}:{tag}"
    return f"{base}:{tag}"


def archive(path: Path, image: Image, layer: bytes) -> None:
    """Write the image to a file; `layer` is an uncompressed tar of its files."""
    machine = MACHINES.get(platform.machine())
    config = json.dumps(
        {
            "architecture": machine.architecture if machine else platform.machine(),
            "os": "linux",
            "created": _EPOCH,
            "config": {
                "Env": [PATH],
                "Entrypoint": list(image.entrypoint) or None,
                "Cmd": list(image.command) or None,
                "User": image.user,
                "WorkingDir": "/",
            },
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"],
            },
            "history": [{"created": _EPOCH, "created_by": "slurm-bridge sandbox image"}],
        }
    ).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": [image.name], "Layers": ["layer.tar"]}]
    draft = path.with_suffix(".draft")
    with tarfile.open(draft, "w") as tar:
        for member, data in (
            (name, config),
            ("layer.tar", layer),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            _add(tar, tarfile.TarInfo(member), data)
    draft.rename(path)


def layer_of(entries: Iterable[Entry]) -> bytes:
    """Return the tar of these entries, all of them root's."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry.path)
            info.mode = entry.mode
            if entry.link:
                info.type, info.linkname = tarfile.SYMTYPE, entry.link
            elif entry.is_folder:
                info.type = tarfile.DIRTYPE
            _add(tar, info, entry.data)
    return buffer.getvalue()


def layer_of_folder(folder: Path) -> bytes:
    """Return the tar of everything below a folder, all of it root's, without times.

    Raises:
        SandboxError: there is no such folder.
    """
    if not folder.is_dir():
        raise SandboxError(f"no folder {folder} to build an image from")

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            tar.add(path, arcname=name, recursive=False, filter=plain)
    return buffer.getvalue()


def pause(program: Path) -> tuple[Image, bytes]:
    """Return the image of a pod's first container, around the program `pause`."""
    entries = [Entry(path="pause", data=program.read_bytes())]
    return Image(name=PAUSE, entrypoint=("/pause",)), layer_of(entries)


def busybox(program: Path, applets: Iterable[str]) -> tuple[Image, bytes]:
    """Return an image with a shell and the usual commands, around a static busybox."""
    return Image(name=BUSYBOX, command=("sh",)), layer_of(busybox_entries(program, applets))


def busybox_entries(program: Path, applets: Iterable[str]) -> Iterator[Entry]:
    """Return the files of an image with a shell and the usual commands."""
    for folder in ("bin", "etc", "root", "home", "var", "proc", "sys", "dev"):
        yield Entry(path=folder, is_folder=True)
    yield Entry(path="tmp", is_folder=True, mode=0o1777)
    yield Entry(path="bin/busybox", data=program.read_bytes())
    for applet in sorted(set(applets) - {"busybox"}):
        yield Entry(path=f"bin/{applet}", link="busybox")
    passwd = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
    yield Entry(path="etc/passwd", data=passwd, mode=0o644)
    yield Entry(path="etc/group", data=b"root:x:0:\nnogroup:x:65534:\n", mode=0o644)


def _add(tar: tarfile.TarFile, info: tarfile.TarInfo, data: bytes) -> None:
    info.size = len(data) if info.isreg() else 0
    tar.addfile(info, io.BytesIO(data))
