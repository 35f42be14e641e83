"""An asset comes from the first source that has it: the variable, the cache, a fetch; PATH on demand or at last."""

import dataclasses
import os
import tempfile
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from sandbox import assets
from sandbox.assets import AssetName, cache, settings
from sandbox.assets.errors import AssetError
from sandbox.assets.finder import finder
from sandbox.assets.kits import KITS, Kit
from sandbox.assets.progress import Stage
from sandbox.assets.settings import DebianSettings
from slurmruntime.process.clock import SystemClock

SAYS = {
    AssetName.KUBE: "Kubernetes v1.36.4",
    AssetName.SLURM: "slurm-wlm 26.05.5",
    AssetName.HELM: "v4.2.3+gabcdef0",
    AssetName.PROMETHEUS: "promtool, version 2.53.3",
    AssetName.WORKLOADS: "Version: v0.8.0",
    AssetName.KUBECONFORM: "v0.8.0",
    AssetName.BUILDAH: "buildah version 1.43.2 (image-spec 1.1.1, runtime-spec 1.2.1)",
    AssetName.PYTHON: "Python 3.13.15",
    AssetName.COREDNS: "CoreDNS-1.14.7",
    AssetName.E2E: "v1.36.4",
    AssetName.E2E_SETS: "jobset v0.11.1, lws v0.8.0",
    AssetName.OLDEST: "Kubernetes v1.30.14",
    AssetName.NODE: "containerd github.com/containerd/containerd 2.0.9 abcdef0",
}
HELM = KITS[AssetName.HELM]
SLURM = KITS[AssetName.SLURM]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def installed(folder: Path, kit: Kit, says: str = "") -> Path:
    """The kit's programs; the one that is asked for its version says so."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in kit.programs:
        (folder / name).write_text(f"#!/bin/sh\necho '{says or SAYS[kit.name]}'\n")
        (folder / name).chmod(0o755)
    return folder


def offline(place: Path, **variables: str) -> dict[str, str]:
    """An environment with a cache of its own and no network."""
    return {
        "SANDBOX_CACHE": str(place / "cache"),
        "SANDBOX_OFFLINE": "1",
        "PATH": str(place / "bin"),
        **variables,
    }


def in_cache(environ: Mapping[str, str], kit: Kit, says: str = "", age_days: int = 0) -> Path:
    """Puts programs into the cache as a fetch does."""

    def make(site: cache.Site) -> cache.RecipeResult:
        installed(site.tree / "bin", kit, says)
        return cache.RecipeResult(version="26.05.5", source="a test", contents={})

    sources = finder(kit.name, lambda _: None, environ)
    recipe = dataclasses.replace(sources.recipe, make=make)
    made_at = SystemClock().now() - timedelta(days=age_days)
    cache.fill(sources.settings.cache, recipe, now=lambda: made_at, tell=sources.tell)
    return sources.place


def resolve(name: AssetName, environ: Mapping[str, str]) -> tuple[assets.Asset, list[str]]:
    said: list[Stage] = []
    asset = assets.resolve(name, report=said.append, environ=environ)
    return asset, [stage.text for stage in said]


def refused(name: AssetName, environ: Mapping[str, str]) -> str:
    with pytest.raises(AssetError) as caught:
        resolve(name, environ)
    return str(caught.value)


@pytest.mark.parametrize("name", AssetName)
def test_a_variable_names_a_folder_of_programs(place: Path, name: AssetName) -> None:
    kit = KITS[name]
    folder = installed(place / "mine", kit)

    asset, said = resolve(name, offline(place, **{kit.variable: str(folder)}))

    assert (folder, None) == (asset.bin, asset.root)
    assert asset.version in SAYS[name]
    assert said == [f"{asset.version} from {folder}, because {kit.variable} is set"]


def test_a_variable_may_name_a_fetched_tree(place: Path) -> None:
    installed(place / "tree" / "bin", SLURM)
    (place / "tree" / "root" / "usr").mkdir(parents=True)

    asset, _ = resolve(AssetName.SLURM, offline(place, SANDBOX_SLURM=str(place / "tree")))

    assert (place / "tree" / "bin", place / "tree" / "root") == (asset.bin, asset.root)


def test_a_variable_wins_over_the_cache(place: Path) -> None:
    environ = offline(place, SANDBOX_HELM=str(installed(place / "mine", HELM)))
    in_cache(environ, HELM)

    asset, _ = resolve(AssetName.HELM, environ)

    assert place / "mine" == asset.bin


def test_an_unusable_variable_lists_every_missing_program(place: Path) -> None:
    folder = installed(place / "mine", SLURM)
    (folder / "slurmrestd").unlink()
    (folder / "sacct").chmod(0o644)
    environ = offline(place, SANDBOX_SLURM=str(folder))
    in_cache(environ, SLURM)

    assert refused(AssetName.SLURM, environ).splitlines() == [
        f"SANDBOX_SLURM={folder} is set but unusable:",
        f"  no program slurmrestd in {folder}",
        f"  no program sacct in {folder}",
    ]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("echo slurm 24.11.5", "version 24.11.5, expected 25.05 or newer", id="old"),
        pytest.param("echo hello", "prints no version: 'hello'", id="something else"),
        pytest.param("echo no libc >&2; exit 127", "exit code 127, 'no libc'", id="does not run"),
    ],
)
def test_an_unusable_program_is_told(place: Path, script: str, expected: str) -> None:
    folder = installed(place / "mine", SLURM)
    (folder / "slurmctld").write_text(f"#!/bin/sh\n{script}\n")

    assert expected in refused(AssetName.SLURM, offline(place, SANDBOX_SLURM=str(folder)))


def test_the_cache_needs_no_network(place: Path) -> None:
    environ = offline(place)
    tree = in_cache(environ, SLURM)

    asset, said = resolve(AssetName.SLURM, environ)

    assert tree / "bin" == asset.bin
    assert said == [f"26.05.5 from the cache {tree} (a test)"]


def test_an_old_slurm_in_the_cache_is_remarked_upon(place: Path) -> None:
    environ = offline(place)
    in_cache(environ, SLURM, age_days=31)

    _, said = resolve(AssetName.SLURM, environ)

    assert "is 31 days old" in said[0]


def test_path_counts_only_on_demand(place: Path) -> None:
    environ = offline(place)
    tree = in_cache(environ, HELM)
    installed(place / "bin", HELM)

    from_cache, _ = resolve(AssetName.HELM, environ)
    from_path, _ = resolve(AssetName.HELM, {**environ, "SANDBOX_USE_PATH": "1"})

    assert tree / "bin" == from_cache.bin
    assert (place / "bin" / "helm") == (from_path.bin / "helm").readlink()
    assert from_path.origin == "4.2.3 from PATH, because SANDBOX_USE_PATH is set"


def test_an_incomplete_path_on_demand_is_passed_over_in_words(place: Path) -> None:
    environ = offline(place, SANDBOX_USE_PATH="1")
    in_cache(environ, SLURM)
    (installed(place / "bin", SLURM) / "mariadbd").unlink()

    _, said = resolve(AssetName.SLURM, environ)

    assert said[0] == "SANDBOX_USE_PATH is set, but PATH has no mariadbd"


def test_path_is_the_last_resort(place: Path) -> None:
    installed(place / "bin", HELM)

    asset, _ = resolve(AssetName.HELM, offline(place))

    expected = "4.2.3 from PATH, because fetching failed: not tried, because SANDBOX_OFFLINE is set"
    assert expected == asset.origin


def test_programs_from_several_folders_of_path_come_together(place: Path) -> None:
    installed(place / "bin", SLURM)
    (place / "sbin").mkdir()
    (place / "bin" / "slurmctld").rename(place / "sbin" / "slurmctld")
    environ = offline(place, PATH=f"{place}/bin:{place}/sbin")

    first, _ = resolve(AssetName.SLURM, environ)
    second, _ = resolve(AssetName.SLURM, environ)

    assert set(SLURM.programs) == {link.name for link in first.bin.iterdir()}
    assert first.bin == second.bin


def test_without_network_the_error_says_what_was_tried_and_what_helps(place: Path) -> None:
    environ = offline(place)
    missing = finder(AssetName.HELM, lambda _: None, environ).place

    assert refused(AssetName.HELM, environ).splitlines() == [
        "helm is not available. Tried:",
        "  SANDBOX_HELM: not set",
        f"  cache: {missing} is missing or incomplete",
        "  fetch: not tried, because SANDBOX_OFFLINE is set",
        "  PATH: no helm",
        "  To provide it: 'slurm-bridge sandbox fetch helm' with network; or SANDBOX_HELM=<folder with helm>",
    ]


def test_the_error_offers_an_earlier_version(place: Path) -> None:
    environ = offline(place)
    earlier = in_cache({**environ, "SLURM_DEB_SUITE": "sid"}, SLURM)

    assert f"or SANDBOX_SLURM={earlier} (an earlier one)" in refused(AssetName.SLURM, environ)


def test_several_assets_fail_in_one_message(place: Path) -> None:
    with pytest.raises(AssetError) as caught:
        assets.resolve_all(AssetName, report=lambda _: None, environ=offline(place))

    for name in AssetName:
        assert f"{name} is not available" in str(caught.value)


def test_a_failing_mirror_is_named_and_leaves_nothing(place: Path) -> None:
    environ = offline(place, SANDBOX_OFFLINE="0", SLURM_DEB_MIRROR="http://127.0.0.1:9/debian")

    failure = refused(AssetName.SLURM, environ)

    assert "fetch: http://127.0.0.1:9/debian/dists/forky/InRelease: " in failure
    assert [path.suffix for path in (place / "cache").iterdir()] == [".lock"]


def test_fetching_looks_at_the_cache_only(place: Path) -> None:
    environ = offline(place, SANDBOX_HELM=str(installed(place / "mine", HELM)))
    installed(place / "bin", HELM)
    wanted = [AssetName.HELM]

    with pytest.raises(AssetError, match="fetch: not tried"):
        assets.fetch(wanted, report=lambda _: None, environ=environ)

    tree = in_cache(environ, HELM)
    fetched = assets.fetch(wanted, report=lambda _: None, environ=environ)
    assert tree / "bin" == fetched[AssetName.HELM].bin


def test_where_tells_what_is_there_and_what_is_not(place: Path) -> None:
    environ = offline(place, SANDBOX_KUBE="/nowhere")
    in_cache(environ, HELM)

    found = assets.where(AssetName, environ=environ)

    helm, slurm, kube = (found[n] for n in (AssetName.HELM, AssetName.SLURM, AssetName.KUBE))
    assert isinstance(helm, assets.Asset)
    assert isinstance(slurm, assets.Absent)
    assert slurm.reason.endswith("is missing or incomplete")
    assert isinstance(kube, assets.Absent)
    assert "SANDBOX_KUBE=/nowhere is set but unusable" in kube.reason


def test_cleaning_removes_the_named_assets_only(place: Path) -> None:
    environ = offline(place)
    trees = [in_cache(environ, SLURM), in_cache({**environ, "SLURM_DEB_PIN": "26"}, SLURM)]
    helm = in_cache(environ, HELM)

    cleaned = assets.clean([AssetName.SLURM], report=lambda _: None, environ=environ)

    assert {entry.path for entry in cleaned} == set(trees)
    assert not any(tree.exists() for tree in trees)
    assert helm.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root's sandbox changes to another user")
def test_roots_cache_must_be_open_to_others(place: Path) -> None:
    (place / "closed").mkdir(mode=0o700)
    environ = {**offline(place), "SANDBOX_CACHE": str(place / "closed" / "cache")}

    assert f"is below {place}/closed" in refused(AssetName.HELM, environ)


@pytest.mark.parametrize(
    ("environ", "uid", "expected"),
    [
        ({"SANDBOX_CACHE": "/x/y"}, 0, "/x/y"),
        ({"HOME": "/root"}, 0, "/var/cache/slurm-bridge"),
        ({"HOME": "/home/u"}, 1000, "/home/u/.cache/slurm-bridge"),
        ({"HOME": "/home/u", "XDG_CACHE_HOME": "/scratch"}, 1000, "/scratch/slurm-bridge"),
        ({"HOME": "/home/u", "XDG_CACHE_HOME": "odd"}, 1000, "/home/u/.cache/slurm-bridge"),
    ],
)
def test_the_cache_is_where_the_user_may_write(
    environ: dict[str, str], uid: int, expected: str
) -> None:
    assert Path(expected) == settings.read(environ, uid=uid).cache


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/h", "SANDBOX_OFFLINE": "maybe"}, "SANDBOX_OFFLINE=maybe: expected 1 or 0"),
        ({}, "HOME is not set, so there is no place for a cache: set SANDBOX_CACHE"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused(
    environ: dict[str, str], expected: str
) -> None:
    with pytest.raises(AssetError) as caught:
        settings.read(environ, uid=1000)

    assert expected == str(caught.value)


def test_debian_settings_come_from_the_environment() -> None:
    environ = {
        "HOME": "/h",
        "SLURM_DEB_MIRROR": "http://mirror.test/debian/",
        "SLURM_DEB_SUITE": "sid",
        "SLURM_DEB_PIN": "26.05",
        "SLURM_DEB_KEYRING": "/ring.gpg",
        "SLURM_DEB_IGNORE_EXPIRY": "1",
    }

    assert settings.read(environ, uid=1000).debian == DebianSettings(
        mirror="http://mirror.test/debian",
        suite="sid",
        pin="26.05",
        keyring=Path("/ring.gpg"),
        ignore_expiry=True,
    )
