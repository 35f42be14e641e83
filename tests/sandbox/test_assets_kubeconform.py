"""kubeconform: the modules it and the CRDs come from are locked, and a wrong checksum stops the fetch."""

from pathlib import Path

import pytest

from sandbox.assets import cache, kubeconform
from sandbox.assets.errors import FetchError
from sandbox.assets.kubeconform import CRD_MODULE, CRDS, FOLDER, MODULE, PROGRAM
from sandbox.assets.progress import Stage, Teller
from sandbox.assets.settings import Settings

GO = r"""#!/bin/sh
case "$1" in
version) echo go version go1.26.8 linux/amd64; exit ;;
env) echo {}; exit ;;
mod) exec DOWNLOAD ;;
esac
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\necho v0.8.0\n' >"$2/kubeconform"
chmod +x "$2/kubeconform"
"""


@pytest.fixture
def site(tmp_path: Path) -> cache.Site:
    for name in ("tree/bin", "scratch", "path"):
        (tmp_path / name).mkdir(parents=True)
    said: list[Stage] = []
    return cache.Site(
        tree=tmp_path / "tree",
        final=tmp_path / "final",
        scratch=tmp_path / "scratch",
        lasting=tmp_path / "lasting",
        tell=Teller("kubeconform", said.append),
    )


def settings(tmp_path: Path, *, download: str) -> Settings:
    """With a Go that downloads so."""
    go = tmp_path / "path" / "go"
    go.write_text(GO.replace("DOWNLOAD", download))
    go.chmod(0o755)
    path = f"{tmp_path / 'path'}:/bin:/usr/bin"
    return Settings(explicit={}, cache=tmp_path, path=path, gopath=tmp_path / "go")


def test_the_crds_are_those_of_the_locked_versions(site: cache.Site, tmp_path: Path) -> None:
    versions = kubeconform.versions()
    for module, paths in CRDS.items():
        for path in paths:
            source = tmp_path / "go" / "pkg" / "mod" / f"{module}@{versions[module]}" / path
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text(f"{module} {versions[module]}")

    made = kubeconform.recipe(settings(tmp_path, download="true")).make(site)

    assert ("0.8.0", versions) == (made.version, made.contents)
    for module, paths in CRDS.items():
        kept = {(site.tree / FOLDER / Path(path).name).read_text() for path in paths}
        assert {f"{module} {versions[module]}"} == kept


def test_a_download_that_fails_says_why(site: cache.Site, tmp_path: Path) -> None:
    download = "sh -c 'echo verifying module: checksum mismatch >&2; exit 1'"

    with pytest.raises(FetchError, match=r"go mod: exit code 1: .* checksum mismatch"):
        kubeconform.recipe(settings(tmp_path, download=download)).make(site)


@pytest.mark.parametrize(
    ("folder", "modules"),
    [pytest.param(MODULE, [PROGRAM], id="program"), pytest.param(CRD_MODULE, [*CRDS], id="crds")],
)
def test_the_modules_are_locked_and_name_no_registry(folder: Path, modules: list[str]) -> None:
    texts = {name: (folder / name).read_text() for name in ("go.mod", "go.sum")}

    assert not [name for name, text in texts.items() if "://" in text]
    for module in modules:
        version = kubeconform.versions()[module]
        assert f"{module} {version}" in texts["go.mod"]
        assert f"{module} {version} h1:" in texts["go.sum"]
