"""The sources of one asset; `resolve` tries them in order."""

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.assets import (
    cache,
    coredns,
    e2e,
    e2e_sets,
    helm,
    image,
    kits,
    kube,
    kubeconform,
    node,
    oldest,
    packages,
    path,
    prometheus,
    roots,
    settings,
    slurm,
    workloads,
)
from sandbox.assets.errors import AssetError, FetchError, Unusable
from sandbox.assets.kits import KITS, AssetName, Kit
from sandbox.assets.progress import Report, Teller
from sandbox.assets.settings import Settings
from slurmruntime.process.clock import SystemClock

FAILURES = (FetchError, OSError, subprocess.SubprocessError)
"""Raised by a recipe if the network, the disk or a program it runs fails."""
OLD_DAYS = 30
"""From this age on a cached Slurm is reported as old: the suite has moved on."""


_COMPILED: Mapping[AssetName, Callable[[Settings], cache.Recipe]] = {
    AssetName.KUBE: kube.recipe,
    AssetName.WORKLOADS: workloads.recipe,
    AssetName.KUBECONFORM: kubeconform.recipe,
    AssetName.COREDNS: coredns.recipe,
    AssetName.E2E: e2e.recipe,
    AssetName.E2E_SETS: e2e_sets.recipe,
    AssetName.OLDEST: oldest.recipe,
}
"""The assets that Go compiles from locked modules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """Programs that run, and where they come from."""

    name: AssetName
    bin: Path
    """The folder with the programs."""
    root: Path | None
    """The file tree the programs were unpacked with (plugins in `usr/lib/<triplet>/slurm-wlm`,
    mariadb's basedir in `usr`). None: they find their own files, like an ordinary installation.
    """
    version: str
    origin: str
    """One line: which source, and why that one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finder:
    """The sources of one asset."""

    kit: Kit
    settings: Settings
    recipe: cache.Recipe
    tell: Teller
    clock: SystemClock

    @property
    def place(self) -> Path:
        """Return the asset's folder in the cache, whether it exists or not."""
        return cache.location(self.settings.cache, self.recipe)

    def present(self) -> Asset | None:
        """Return the asset from a source that needs no network."""
        asset = self.explicit()
        if asset is None and self.settings.use_path:
            try:
                asset = self.on_path("because SANDBOX_USE_PATH is set")
            except (Unusable, OSError) as error:
                self.tell(f"SANDBOX_USE_PATH is set, but PATH has {error}")
        return asset or self.cached()

    def explicit(self) -> Asset | None:
        """Return the folder the variable names.

        Programs, or a tree with programs in bin/ and their files in root/.
        """
        value = self.settings.explicit.get(self.kit.name, "")
        if not value:
            return None
        variable, folder = self.kit.variable, Path(value).expanduser().absolute()
        programs = folder / "bin" if (folder / "bin").is_dir() else folder
        try:
            version = kits.check(self.kit, programs)
        except Unusable as error:
            faults = "\n  ".join(error.faults)
            raise AssetError(f"{variable}={value} is set but unusable:\n  {faults}") from error
        return self._asset(programs, version, f"from {programs}, because {variable} is set")

    def cached(self) -> Asset | None:
        """Return the cached asset, if it is complete."""
        closed = cache.closed_ancestor(self.settings.cache) if os.getuid() == 0 else None
        if closed is not None:
            raise AssetError(
                f"the cache {self.settings.cache} is below {closed}, which other users may not enter, but as root"
                " the sandbox runs Slurm as an unprivileged user: set SANDBOX_CACHE to another folder"
            )
        manifest = cache.find(self.place)
        if manifest is None:
            return None
        days = (self.clock.now() - manifest.made_at).days
        if days > OLD_DAYS and self.kit.name is AssetName.SLURM:
            advice = "'slurm-bridge sandbox clean slurm' makes room for the current one"
            self.tell(f"Slurm {manifest.version} in the cache is {days} days old; {advice}")
        note = f"from the cache {self.place} ({manifest.source})"
        return self._asset(self.place / "bin", manifest.version, note)

    def fetch(self) -> Asset:
        """Fetch or build the asset into the cache."""
        try:
            return self._fetch()
        except FAILURES as error:
            raise AssetError(self._failure(f"fetch: {error}")) from error

    def fetch_or_use_path(self) -> Asset:
        """Fetch or build the asset; if that fails, use PATH."""
        try:
            return self._fetch()
        except FAILURES as cause:
            try:
                return self.on_path(f"because fetching failed: {cause}")
            except (Unusable, OSError) as error:
                raise AssetError(self._failure(f"fetch: {cause}", f"PATH: {error}")) from cause

    def on_path(self, why: str) -> Asset:
        """Link to the programs on PATH."""
        folder, version = path.gather(self.kit, self.settings.path, self.settings.cache)
        return self._asset(folder, version, f"from PATH, {why}")

    def _fetch(self) -> Asset:
        if self.settings.offline:
            raise FetchError("not tried, because SANDBOX_OFFLINE is set")
        manifest = cache.fill(self.settings.cache, self.recipe, now=self.clock.now, tell=self.tell)
        note = f"now in the cache {self.place} ({manifest.source})"
        return self._asset(self.place / "bin", manifest.version, note)

    def _asset(self, programs: Path, version: str, note: str) -> Asset:
        root = programs.parent / "root"
        return Asset(
            name=self.kit.name,
            bin=programs,
            root=root if (root / "usr").is_dir() else None,
            version=version,
            origin=f"{version} {note}",
        )

    def _failure(self, *tried: str) -> str:
        variable, cached = self.kit.variable, self.settings.cache
        ways = [
            f"'slurm-bridge sandbox fetch {self.kit.name}' with network",
            f"{variable}=<folder with {', '.join(self.kit.programs)}>",
            *(
                f"{variable}={path} (an earlier one)"
                for path in cache.others(cached, self.recipe)[:1]
            ),
        ]
        return "\n  ".join(
            (
                f"{self.kit.name} is not available. Tried:",
                f"{variable}: not set",
                f"cache: {self.place} is missing or incomplete",
                *tried,
                f"To provide it: {'; or '.join(ways)}",
            )
        )


def finder(name: AssetName, report: Report, environ: Mapping[str, str]) -> Finder:
    """Return the sources for this environment and user.

    Raises:
        AssetError: the environment contradicts itself.
    """
    desired = settings.read(environ, uid=os.getuid())
    clock = SystemClock()
    return Finder(
        kit=KITS[name],
        settings=desired,
        recipe=_recipe(name, desired, clock),
        tell=Teller(name, report),
        clock=clock,
    )


def _recipe(name: AssetName, desired: Settings, clock: SystemClock) -> cache.Recipe:
    compiled = _COMPILED.get(name)
    if compiled is not None:
        return compiled(desired)
    match name:
        case AssetName.SLURM:
            return slurm.recipe(desired.debian, clock.now)
        case AssetName.HELM:
            return helm.recipe()
        case AssetName.PROMETHEUS:
            return prometheus.recipe(desired.debian, clock.now)
        case AssetName.NODE:
            return roots.recipe(node.SELECTION, desired.debian, clock.now)
        case AssetName.BUILDAH:
            return packages.recipe(image.BUILDAH, desired.debian, clock.now)
        case AssetName.PYTHON:
            return roots.recipe(image.PYTHON, desired.debian, clock.now)
        case _:
            raise ValueError(f"no recipe makes {name}")
