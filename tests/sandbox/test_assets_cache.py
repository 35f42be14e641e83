"""The cache holds complete assets only, whoever fetches and however they end."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox.assets import cache
from sandbox.assets.cache import Recipe, RecipeResult, Site
from sandbox.assets.errors import FetchError
from sandbox.assets.kits import AssetName
from sandbox.assets.progress import Stage, Teller

MADE_AT = datetime(2026, 11, 21, tzinfo=UTC)

FETCHER = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from sandbox.assets import cache
from sandbox.assets.kits import AssetName
from sandbox.assets.progress import Teller

folder, gate = Path(sys.argv[1]), Path(sys.argv[2])

def make(site):
    (site.tree / "bin").mkdir()
    (site.tree / "bin" / "helm").write_text("half")
    print("making", flush=True)
    while not gate.exists():
        time.sleep(0.01)
    (site.tree / "bin" / "helm").write_text("whole")
    return cache.RecipeResult(version="4.2.3", source="a test", contents={})

recipe = cache.Recipe(name=AssetName.HELM, key="0123456789ab", make=make)
tell = Teller("helm", lambda stage: print(stage.text, flush=True))
cache.fill(folder, recipe, now=lambda: datetime(2026, 11, 21, tzinfo=UTC), tell=tell)
print("done", flush=True)
"""
"""Fetches an asset that is whole only once the file named by the second argument exists."""


def silent() -> Teller:
    return Teller("helm", lambda _: None)


def recipe(make: Callable[[Site], None], key: str = "0123456789ab") -> Recipe:
    def made(site: Site) -> RecipeResult:
        make(site)
        return RecipeResult(version="4.2.3", source="a test", contents={"b": "2", "a": "1"})

    return Recipe(name=AssetName.HELM, key=key, make=made)


def whole(site: Site) -> None:
    (site.tree / "bin").mkdir(mode=0o700)
    helm = site.tree / "bin" / "helm"
    helm.write_text("whole")
    helm.chmod(0o700)


def fill(folder: Path, wanted: Recipe, tell: Teller | None = None) -> cache.Manifest:
    return cache.fill(folder, wanted, now=lambda: MADE_AT, tell=tell or silent())


def fetcher(folder: Path, gate: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FETCHER, str(folder), str(gate)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path.cwd())


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_a_made_asset_is_found_again(tmp_path: Path) -> None:
    made = fill(tmp_path, recipe(whole))

    assert made == cache.find(tmp_path / "helm-0123456789ab")
    assert made.programs == {"helm": len("whole")}
    assert made.made_at == MADE_AT


def test_a_cached_asset_is_not_made_again(tmp_path: Path) -> None:
    fill(tmp_path, recipe(whole))

    def never(site: Site) -> None:
        pytest.fail("made twice")

    fill(tmp_path, recipe(never))


def test_others_may_read_an_asset_whatever_the_umask(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    before = os.umask(0o077)
    try:
        fill(folder, recipe(whole))
    finally:
        os.umask(before)

    tree = folder / "helm-0123456789ab"
    for path in (folder, tree, tree / "bin", tree / "bin" / "helm"):
        assert path.stat().st_mode & 0o777 == 0o755


def test_a_failed_fetch_leaves_nothing(tmp_path: Path) -> None:
    def fails(site: Site) -> None:
        whole(site)
        raise FetchError("broken off")

    with pytest.raises(FetchError, match="broken off"):
        fill(tmp_path, recipe(fails))

    assert entries(tmp_path) == []


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda tree: (tree / "bin/helm").unlink(), id="a program is gone"),
        pytest.param(lambda tree: (tree / "bin/helm").write_text("who"), id="a program is short"),
        pytest.param(lambda tree: (tree / "manifest.json").unlink(), id="the manifest is gone"),
        pytest.param(lambda tree: (tree / "manifest.json").write_text("{"), id="it is cut off"),
    ],
)
def test_a_damaged_asset_is_made_again(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    fill(tmp_path, recipe(whole))
    tree = tmp_path / "helm-0123456789ab"
    spoil(tree)

    assert cache.find(tree) is None
    fill(tmp_path, recipe(whole))
    assert cache.find(tree) is not None


def test_a_moved_asset_does_not_count(tmp_path: Path) -> None:
    """Its programs name their libraries by absolute path."""
    fill(tmp_path / "here", recipe(whole))
    (tmp_path / "here").rename(tmp_path / "there")

    assert cache.find(tmp_path / "there" / "helm-0123456789ab") is None


def test_of_two_processes_one_fetches_and_the_other_waits(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with fetcher(tmp_path / "cache", gate) as first:
        assert line(first) == "making"
        with fetcher(tmp_path / "cache", gate) as second:
            assert line(second) == f"waiting for another fetch (pid {first.pid})"
            gate.touch()
            assert line(first) == "done"
            assert line(second) == "done"

    assert entries(tmp_path / "cache") == ["helm-0123456789ab"]


def test_a_killed_fetch_is_neither_seen_nor_in_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    with fetcher(folder, tmp_path / "never") as killed:
        assert line(killed) == "making"
        killed.send_signal(signal.SIGKILL)
    (leftover,) = entries(folder)
    assert leftover.startswith("helm-0123456789ab.tmp.")
    assert cache.find(folder / "helm-0123456789ab") is None

    fill(folder, recipe(whole))

    assert entries(folder) == ["helm-0123456789ab"]


def test_a_free_lock_is_taken_without_a_word(tmp_path: Path) -> None:
    said: list[Stage] = []
    with cache.locked(tmp_path / "lock", Teller("helm", said.append)):
        assert (tmp_path / "lock").read_text() == str(os.getpid())

    assert said == []


def test_threads_exclude_each_other_as_processes_do(tmp_path: Path) -> None:
    said: list[Stage] = []
    waits = threading.Event()

    def report(stage: Stage) -> None:
        said.append(stage)
        waits.set()

    def second() -> None:
        with cache.locked(tmp_path / "lock", Teller("helm", report)):
            pass

    thread = threading.Thread(target=second)
    with cache.locked(tmp_path / "lock", silent()):
        thread.start()
        assert waits.wait(10)
    thread.join(10)

    assert [f"waiting for another fetch (pid {os.getpid()})"] == [stage.text for stage in said]


def test_earlier_versions_are_known_newest_first(tmp_path: Path) -> None:
    fill(tmp_path, recipe(whole, key="old"))
    cache.fill(
        tmp_path, recipe(whole, key="newer"), now=lambda: MADE_AT.replace(year=2027), tell=silent()
    )
    fill(tmp_path, recipe(whole, key="current"))

    expected = [tmp_path / "helm-newer", tmp_path / "helm-old"]
    assert expected == cache.others(tmp_path, recipe(whole, key="current"))


def test_removing_an_asset_takes_what_earlier_runs_left(tmp_path: Path) -> None:
    fill(tmp_path, recipe(whole))
    for leftover in ("helm-0123456789ab.tmp.x", "helm-0123456789ab.lasting"):
        (tmp_path / leftover).mkdir()
        (tmp_path / leftover / "file").write_text("12345")

    freed = cache.remove(tmp_path / "helm-0123456789ab", silent())

    assert entries(tmp_path) == []
    assert freed > 15


def test_a_key_tells_its_parts_apart() -> None:
    assert len(cache.key("a", b"b")) == 12
    assert cache.key("ab", "c") != cache.key("a", "bc")
    assert cache.key("a", "b") == cache.key("a", b"b")


def test_a_folder_closed_to_others_is_found(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)

    found = cache.closed_ancestor(closed / "below" / "further")

    assert found is not None
    assert not found.stat().st_mode & 0o001
    assert cache.closed_ancestor(Path("/usr/bin")) is None
