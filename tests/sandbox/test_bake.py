"""What is read of a bake file, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import SandboxError
from sandbox.image import bake
from sandbox.image.bake import BakeTarget

DOCUMENT: dict[str, Any] = {
    "variable": {"REGISTRY": {"default": "ours"}, "BASE": {"default": "debian"}},
    "group": {"default": {"targets": ["both", "c"]}, "both": {"targets": ["a", "b"]}},
    "target": {
        "common": {"context": "x", "args": {"BASE_IMAGE": "${BASE}:1", "MORE": "1"}},
        "a": {"inherits": ["common"], "target": "a", "tags": ["${REGISTRY}/a:1"]},
        "b": {"inherits": ["common"], "dockerfile": "D", "args": {"MORE": "2"}},
        "c": {"inherits": ["b"], "context": "y"},
        "unused": {},
    },
}


def written(folder: Path, document: object) -> Path:
    file = folder / "docker-bake.json"
    file.write_text(json.dumps(document))
    return file


def test_targets_inherit_and_variables_have_values(tmp_path: Path) -> None:
    a, b, c = bake.read(written(tmp_path, DOCUMENT), variables={"REGISTRY": "theirs"})

    assert a == BakeTarget(
        name="a",
        context="x",
        dockerfile="Dockerfile",
        stage="a",
        arguments={"BASE_IMAGE": "debian:1", "MORE": "1"},
        tags=("theirs/a:1",),
    )
    assert ("D", {"BASE_IMAGE": "debian:1", "MORE": "2"}) == (b.dockerfile, b.arguments)
    assert ("y", "D", {"BASE_IMAGE": "debian:1", "MORE": "2"}) == (
        c.context,
        c.dockerfile,
        c.arguments,
    )


def test_a_group_is_read_for_itself(tmp_path: Path) -> None:
    file = written(tmp_path, DOCUMENT)

    assert ["a", "b"] == [target.name for target in bake.read(file, "both")]
    assert ["a", "b", "c"] == [target.name for target in bake.read(file)]


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    wrong = {
        "variable": {},
        "group": {"other": {"targets": ["gone"]}},
        "target": {"a": {"inherits": ["lost"], "tags": ["${WHAT}"], "matrix": {}}},
    }

    with pytest.raises(SandboxError) as told:
        bake.read(written(tmp_path, wrong))

    assert [line.partition(": ")[2] for line in str(told.value).splitlines()] == [
        "target.a: matrix is not supported here",
        "target.a: there is no target lost to inherit",
        "target.a: there is no variable WHAT",
        "group.other: there is no target or group gone",
        "expected a group 'default', found other",
    ]


@pytest.mark.parametrize("text", ["{", "{}", '{"variable": [], "group": {}, "target": {}}'])
def test_what_is_no_bake_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "docker-bake.json"
    file.write_text(text)

    with pytest.raises(SandboxError, match=r"docker-bake\.json"):
        bake.read(file)
