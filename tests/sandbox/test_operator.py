"""slurm-operator's part of a sandbox, without starting one: its images, its settings, and what is applied of its chart."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox import assets
from sandbox.assets import AssetName
from sandbox.errors import SandboxError
from sandbox.image import bake, slurm
from sandbox.image.slurm import SlurmImage
from sandbox.instance import Instance
from sandbox.operator import demo, images, names, serving
from sandbox.realnodes import box


def archives(folder: Path) -> list[Path]:
    return [slurm.described(each, folder).archive for each in bake.read(slurm.BAKE, images.GROUP)]


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with images that somebody has built."""
    folder = tmp_path / "images"
    folder.mkdir()
    for archive in archives(folder):
        archive.write_text(archive.name)
    monkeypatch.setenv("SLURM_IMAGES", str(folder))
    return folder


def test_images_of_a_folder_are_taken_as_they_are_and_one_that_is_missing_is_named(
    given: Path,
) -> None:
    found = images.ready()

    assert archives(given) == [image.archive for image in found]
    assert "docker.io/slurm-bridge/{daemon}:26.05-forky" == images.pattern(found)
    archives(given)[0].unlink()
    with pytest.raises(SandboxError, match=archives(given)[0].name):
        images.ready()


def test_images_are_built_once_and_again_when_a_build_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Path] = []

    def build(out: Path, *, group: str) -> tuple[SlurmImage, ...]:
        built.append(out)
        archives(out)[0].write_text("half")
        if len(built) == 1:
            raise SandboxError(f"a step of {group} failed")
        for archive in archives(out):
            archive.write_text("whole")
        return ()

    monkeypatch.setattr(slurm, "build", build)
    monkeypatch.delenv("SLURM_IMAGES", raising=False)
    monkeypatch.setenv("SANDBOX_CACHE", str(tmp_path / "cache"))

    with pytest.raises(SandboxError, match="failed"):
        images.ready()
    first, second = images.ready(), images.ready()

    assert len(built) == 2
    assert first == second
    assert {"whole"} == {image.archive.read_text() for image in first}


def test_the_process_has_the_charts_rights_and_settings_and_tokens_of_its_own(
    given: Path, tmp_path: Path
) -> None:
    with assets.shown(sys.stderr) as report:
        helm = assets.resolve(AssetName.HELM, report=report).bin / "helm"
    instance = Instance(
        root=tmp_path, options=demo.SHAPE, ports={"operator-health": 1, "apiserver": 2}
    )
    for folder in (instance.bin, instance.bridge, box.image_folder(instance)):
        folder.mkdir(parents=True, exist_ok=True)

    serving.prepare(instance, helm)

    own = instance.bridge / "operator"
    settings = yaml.safe_load((own / "config.yaml").read_text())
    kinds = [each["kind"] for each in yaml.safe_load_all((own / "manifests.yaml").read_text())]
    assert "slurm-bridge-system" == settings["kubernetes"]["namespace"]
    assert {"ClusterRole", "CustomResourceDefinition", "ServiceAccount"} <= {*kinds}
    assert "Deployment" not in kinds
    assert {path.name for path in archives(given)} == {
        path.name for path in box.image_folder(instance).iterdir()
    }
    program, keeper = serving.parts(instance)
    assert keeper.argv[-1] in program.argv, "both mean the same file"
    assert "localhost" in Path(keeper.argv[-1]).read_text()


def test_a_service_has_the_address_of_a_pod_that_is_ready() -> None:
    labels = {"kubernetes.io/service-name": "site-restapi"}
    endpoints = [
        {"addresses": ["10.0.0.1"], "conditions": {"ready": False}},
        {"addresses": ["10.0.0.2"], "conditions": {"ready": True}},
    ]
    slices: list[dict[str, Any]] = [
        {"metadata": {"namespace": "a", "labels": labels}, "endpoints": endpoints},
        {"metadata": {"namespace": "b", "labels": labels}, "endpoints": endpoints[:1]},
        {"metadata": {"namespace": "c"}, "endpoints": None},
    ]
    assert "127.0.0.1 localhost\n10.0.0.2 site-restapi.a.svc\n" == names.hosts(slices)
