"""Resolve an asset's name to a folder of working programs: from the first source that has it."""

import concurrent.futures
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.assets import cache, settings
from sandbox.assets.errors import AssetError
from sandbox.assets.finder import Asset, finder
from sandbox.assets.kits import AssetName
from sandbox.assets.progress import Report, Teller


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """An asset that is not on this machine."""

    name: AssetName
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The removal of a folder from the cache."""

    path: Path
    bytes: int


def resolve(name: AssetName, *, report: Report, environ: Mapping[str, str] = os.environ) -> Asset:
    """Return the asset from the first source that has it; fetch or build it if necessary.

    Raises:
        AssetError: an explicit setting is unusable, or no source has it.
    """
    sources = finder(name, report, environ)
    asset = sources.present() or sources.fetch_or_use_path()
    sources.tell(asset.origin, done=True)
    return asset


def resolve_all(
    names: Iterable[AssetName], *, report: Report, environ: Mapping[str, str] = os.environ
) -> dict[AssetName, Asset]:
    """Resolve several assets at once.

    Compiling Kubernetes uses the processors while the others use the network.

    Raises:
        AssetError: with everything that is wrong with any of them. Assets that succeeded stay in the
            cache.
    """
    return _at_once(names, lambda name: resolve(name, report=report, environ=environ))


def fetch(
    names: Iterable[AssetName], *, report: Report, environ: Mapping[str, str] = os.environ
) -> dict[AssetName, Asset]:
    """Make sure the cache has the assets, whatever other sources exist. Later runs then need no network.

    Raises:
        AssetError: with everything that is wrong with any of them.
    """

    def fetch_one(name: AssetName) -> Asset:
        sources = finder(name, report, environ)
        asset = sources.cached() or sources.fetch()
        sources.tell(asset.origin, done=True)
        return asset

    return _at_once(names, fetch_one)


def where(
    names: Iterable[AssetName], *, environ: Mapping[str, str] = os.environ
) -> dict[AssetName, Asset | Absent]:
    """Return what `resolve` would find without fetching anything."""
    assets: dict[AssetName, Asset | Absent] = {}
    for name in names:
        try:
            sources = finder(name, lambda _: None, environ)
            reason = f"{sources.place} is missing or incomplete"
            assets[name] = sources.present() or Absent(name=name, reason=reason)
        except AssetError as error:
            assets[name] = Absent(name=name, reason=str(error))
    return assets


def clean(
    names: Iterable[AssetName], *, report: Report, environ: Mapping[str, str] = os.environ
) -> list[Removal]:
    """Remove the assets from the cache, earlier versions included; wait for a running fetch.

    Raises:
        AssetError: the cache cannot be written.
    """
    folder = settings.read(environ, uid=os.getuid()).cache
    cleaned = []
    for name in names:
        stems = {file.name.partition(".")[0] for file in folder.glob(f"{name}-*")}
        for stem in sorted(stems):
            try:
                freed = cache.remove(folder / stem, Teller(name, report))
            except OSError as error:
                raise AssetError(f"cannot clean the cache: {error}") from error
            if freed:
                cleaned.append(Removal(path=folder / stem, bytes=freed))
    return cleaned


def _at_once(
    names: Iterable[AssetName], resolve_one: Callable[[AssetName], Asset]
) -> dict[AssetName, Asset]:
    wanted = list(names)
    assets, failures = {}, []
    with concurrent.futures.ThreadPoolExecutor(max(1, len(wanted))) as pool:
        jobs = {name: pool.submit(resolve_one, name) for name in wanted}
        for name, job in jobs.items():
            try:
                assets[name] = job.result()
            except AssetError as error:
                failures.append(str(error))
    if failures:
        raise AssetError("\n".join(failures))
    return assets
