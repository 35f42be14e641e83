"""The workload controllers: which modules they are built from, and that their manifests are of the same versions."""

from pathlib import Path

import pytest

from sandbox.assets import cache, workloads
from sandbox.assets.errors import FetchError
from sandbox.assets.progress import Stage, Teller
from sandbox.assets.settings import Settings
from sandbox.assets.workloads import CONTROLLERS, MANIFESTS, MODULES, SOURCES

GO = r"""#!/bin/sh
case "$1" in
version) echo go version go1.26.8 linux/amd64; exit ;;
env) echo {}; exit ;;
esac
while [ "$1" != -o ]; do shift; done
out=$2; shift 2
for package; do
  printf '#!/bin/sh\necho Version: v0.8.0\n' >"$out/${package##*/}"
  chmod +x "$out/${package##*/}"
done
"""


@pytest.fixture
def site(tmp_path: Path) -> cache.Site:
    for name in ("tree/bin", "scratch", "path"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "path" / "go").write_text(GO)
    (tmp_path / "path" / "go").chmod(0o755)
    said: list[Stage] = []
    return cache.Site(
        tree=tmp_path / "tree",
        final=tmp_path / "final",
        scratch=tmp_path / "scratch",
        lasting=tmp_path / "lasting",
        tell=Teller("workloads", said.append),
    )


def settings(tmp_path: Path) -> Settings:
    path = f"{tmp_path / 'path'}:/bin:/usr/bin"
    return Settings(explicit={}, cache=tmp_path, path=path, gopath=tmp_path / "go")


def sources(tmp_path: Path) -> list[Path]:
    """What the module cache would hold of each controller."""
    modules = tmp_path / "go" / "pkg" / "mod"
    return [
        modules
        / f"{controller.module}@{workloads.versions(controller.folder)[controller.module]}"
        / path
        for controller in CONTROLLERS
        for path in controller.manifests
    ]


def test_programs_and_manifests_come_from_the_locked_modules(
    site: cache.Site, tmp_path: Path
) -> None:
    for source in sources(tmp_path):
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(str(source))

    made = workloads.recipe(settings(tmp_path)).make(site)

    assert "0.8.0" == made.version
    for controller in CONTROLLERS:
        assert (site.tree / "bin" / controller.program).is_file()
        assert (
            workloads.versions(controller.folder)[controller.module]
            == made.contents[controller.module]
        )
        for path in controller.manifests:
            kept = site.tree / MANIFESTS / controller.program / Path(path).name
            assert (
                f"{controller.module}@{made.contents[controller.module]}/{path}" in kept.read_text()
            )
    assert sorted(c.program for c in CONTROLLERS) == sorted(
        p.name for p in (site.tree / "bin").iterdir()
    )


def test_a_build_that_fails_says_why(site: cache.Site, tmp_path: Path) -> None:
    go = tmp_path / "path" / "go"
    go.write_text(
        GO.replace("while", "echo verifying module: checksum mismatch >&2; exit 1; while")
    )

    with pytest.raises(FetchError, match=r"go build: exit code 1: .* checksum mismatch"):
        workloads.recipe(settings(tmp_path)).make(site)


@pytest.mark.parametrize("folder", ["sets", "coscheduling"])
def test_the_modules_are_locked_and_name_no_registry(folder: str) -> None:
    texts = {name: (MODULES / folder / name).read_text() for name in SOURCES}

    assert not [name for name, text in texts.items() if "://" in text]
    for controller in CONTROLLERS:
        if controller.folder == folder:
            version = workloads.versions(folder)[controller.module]
            assert f"{controller.module} {version} h1:" in texts["go.sum"]
            assert controller.package in texts["go.mod"].partition("tool")[2]
