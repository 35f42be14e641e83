"""Read an image's archive: its configuration, its files, and its size.

The format: https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

import contextlib
import gzip
import json
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from sandbox.errors import SandboxError
from slurmruntime.model.objects import JsonDict

_REMOVED = ".wh."
_ALL_REMOVED = ".wh..wh..opq"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of an archive."""

    digest: str
    """Of its manifest: the name of exactly this image in a registry."""
    configuration: JsonDict
    """User, Env, Entrypoint and the like."""
    compressed_bytes: int
    """Of all layers: the size of a node's download."""
    files: dict[str, int]
    """Path without leading slash -> bytes, of all that a container sees."""
    data: dict[str, bytes]
    """The contents of the files that the caller asked for."""

    @property
    def unpacked_bytes(self) -> int:
        """Return the bytes of all files that a container sees."""
        return sum(self.files.values())


def read(archive: Path, keep: Callable[[str], bool] = lambda _path: False) -> Contents:
    """Read the archive of one image, with the contents of the files to keep.

    Raises:
        SandboxError: it is not an image in OCI's layout.
    """
    with tarfile.open(archive) as tar:
        named = _document(tar, "index.json")["manifests"][0]
        manifest = _blob(tar, named)
        files: dict[str, int] = {}
        contents: dict[str, bytes] = {}
        for layer in manifest["layers"]:
            with _members(tar, layer["digest"]) as members:
                for member in members:
                    _apply(files, member)
                    if keep(member.name) and (data := members.extractfile(member)) is not None:
                        contents[member.name] = data.read()
        return Contents(
            digest=named["digest"],
            configuration=_blob(tar, manifest["config"])["config"],
            compressed_bytes=sum(layer["size"] for layer in manifest["layers"]),
            files=files,
            data={path: data for path, data in contents.items() if path in files},
        )


def _apply(files: dict[str, int], member: tarfile.TarInfo) -> None:
    path = PurePosixPath(member.name)
    if path.name == _ALL_REMOVED:
        _remove(files, path.parent)
    elif path.name.startswith(_REMOVED):
        _remove(files, path.with_name(path.name.removeprefix(_REMOVED)))
    elif not member.isdir():
        files[str(path)] = member.size


def _remove(files: dict[str, int], path: PurePosixPath) -> None:
    for file in [file for file in files if PurePosixPath(file).is_relative_to(path)]:
        del files[file]


@contextlib.contextmanager
def _members(tar: tarfile.TarFile, digest: str) -> Iterator[tarfile.TarFile]:
    with (
        gzip.open(_open(tar, _path(digest))) as plain,
        tarfile.open(fileobj=plain, mode="r|") as layer,
    ):
        yield layer


def _blob(tar: tarfile.TarFile, descriptor: JsonDict) -> JsonDict:
    return _document(tar, _path(descriptor["digest"]))


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _document(tar: tarfile.TarFile, name: str) -> JsonDict:
    document: JsonDict = json.load(_open(tar, name))
    return document


def _open(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    file = tar.extractfile(name)
    if file is None:
        raise SandboxError(f"{tar.name!s}: {name} is not a file; expected an image in OCI's layout")
    return file
