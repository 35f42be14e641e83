"""Images are made without a registry or a builder, the same from the same files."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from sandbox.errors import SandboxError
from sandbox.realnodes import images
from sandbox.realnodes.images import Image


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("team/tool", "docker.io/team/tool:latest"),
        ("localhost/pause:1", "localhost/pause:1"),
        ("registry.test:5000/a/b", "registry.test:5000/a/b:latest"),
    ],
)
def test_names_are_written_out_as_kubelets_do(name: str, whole: str) -> None:
    assert images.full_name(name) == whole


@pytest.mark.parametrize("name", ["", "UPPER", "a b", "x:", "x:y:z/", "../x"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(SandboxError, match="is not an image's name"):
        images.full_name(name)


def folder_in(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "tool").write_text("#!/bin/sh\n")
    (folder / "bin" / "tool").chmod(0o755)
    (folder / "bin" / "alias").symlink_to("tool")
    return folder


def test_an_archive_holds_one_layer_whose_digest_its_configuration_names(tmp_path: Path) -> None:
    layer = images.layer_of_folder(folder_in(tmp_path))
    out = tmp_path / "tool.tar"

    images.archive(out, Image(name="local/tool:1", entrypoint=("/bin/tool",), user="7"), layer)

    with tarfile.open(out) as tar:
        content = {m.name: tar.extractfile(m) for m in tar}
        (manifest,) = json.load(content["manifest.json"])  # type: ignore[arg-type]
        config = json.load(content[manifest["Config"]])  # type: ignore[arg-type]
    assert manifest["RepoTags"] == ["local/tool:1"]
    assert config["config"]["Entrypoint"] == ["/bin/tool"]
    assert config["config"]["User"] == "7"
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        members = {m.name: m for m in tar}
    assert members["bin/alias"].linkname == "tool"
    assert members["bin/tool"].mode == 0o755
    assert {m.uid for m in members.values()} == {0}


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    first = images.layer_of_folder(folder_in(tmp_path / "a"))
    second = images.layer_of_folder(folder_in(tmp_path / "b"))

    assert first == second


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"no folder .*/none to build an image from"):
        images.layer_of_folder(tmp_path / "none")


def test_the_shells_image_has_its_commands_and_a_tmp_for_all(tmp_path: Path) -> None:
    program = tmp_path / "busybox"
    program.write_bytes(b"x")

    image, layer = images.busybox(program, ["sh", "ls", "busybox"])

    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        members = {m.name: m for m in tar}
    assert image.name == images.full_name("busybox")
    assert members["bin/sh"].linkname == "busybox"
    assert members["bin/busybox"].isreg()
    assert members["tmp"].mode == 0o1777
