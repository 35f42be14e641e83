"""A Debian with apt, without a registry: the base that the images of Slurm are built on.

Its packages are verified by the archive's signature, as all of Debian's are here. They are unpacked first, which is enough to run
dpkg; then dpkg installs them, with their scripts, as debootstrap(8) does.
"""

import concurrent.futures
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from sandbox.assets import apt, debian, packages
from sandbox.assets.apt import Mirror
from sandbox.assets.progress import Teller
from sandbox.assets.settings import DebianSettings
from sandbox.image.building import Builder, Target
from sandbox.realnodes import images
from sandbox.realnodes.images import Image

RECIPE = Path(__file__).parent
NAME = "localhost/slurm-debian:{suite}"
ROOTS = (
    *("base-files", "base-passwd", "bash", "bsdutils", "coreutils", "dash", "debianutils"),
    *("diffutils", "dpkg", "findutils", "grep", "gzip", "hostname", "init-system-helpers"),
    *("libc-bin", "login.defs", "mawk", "mount", "ncurses-base", "ncurses-bin", "passwd"),
    *("perl-base", "sed", "sysvinit-utils", "tar", "util-linux"),
    *("apt", "ca-certificates", "debian-archive-keyring", "tzdata"),
)
"""Debian's essential packages, and those that apt needs."""
_FOLLOW = re.compile(r"(?!awk$)")
"""mawk is among the roots; of several that provide one, another might be chosen."""
_ALL = re.compile(r"")
_KEYS = "/usr/share/keyrings/debian-archive-keyring.pgp"


def build(
    builder: Builder, settings: DebianSettings, work: Path, *, now: datetime, tell: Teller
) -> str:
    """Build the base, and return its name for a Dockerfile.

    Args:
        builder: of images.
        settings: where the packages come from, and the suite.
        work: an empty folder, which must stay until the images are built.
        now: for the archive's expiry.
        tell: reports the stages.

    Raises:
        FetchError: no mirror has the packages.
        SandboxError: they cannot be installed.
    """
    files, root = work / "packages", work / "root"
    for folder in (files, root):
        folder.mkdir(parents=True)
    opened = packages.open_suite(settings, scratch=work, tell=tell, now=now)
    chosen = debian.closure(opened.packages, ROOTS, _FOLLOW)
    with concurrent.futures.ThreadPoolExecutor(packages.DOWNLOADS) as pool:
        for package, deb in zip(chosen, pool.map(opened.fetch, chosen), strict=True):
            (files / f"{package.name}.deb").write_bytes(deb)
            debian.unpack(deb, root, _ALL)
    unpacked = work / "unpacked.tar"
    layer = images.layer_of_folder(root)
    images.archive(unpacked, Image(name="localhost/slurm-debian:unpacked"), layer)
    name = NAME.format(suite=settings.suite)
    target = Target(name=name, stage="", archive=work / "debian.tar")
    builder.of(RECIPE).build(
        target, f"docker-archive:{unpacked}", {}, {files: "/packages"}, is_squashed=True
    )
    return f"oci-archive:{target.archive}"


def secrets(settings: DebianSettings, folder: Path) -> Mapping[str, Path]:
    """Write the configuration with which apt reaches its mirrors to `folder`; return the files by the Dockerfile's names for them."""
    host = apt.configuration()
    files = apt_files(settings.suite, packages.mirrors(settings, host), host.proxies)
    for name, text in files.items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_text(text)
    return {name: folder / name for name in files}


def apt_files(
    suite: str, mirrors: Sequence[Mirror], proxies: Mapping[str, str]
) -> Mapping[str, str]:
    """Return debian.sources and apt.conf.

    Args:
        suite: of the mirrors.
        mirrors: in the order in which apt tries them.
        proxies: scheme -> URL; "" means a direct connection.
    """
    stanzas = (
        f"Types: deb\nURIs: {mirror.address}\nSuites: {suite}\nComponents: main\nSigned-By: {_KEYS}\n"
        for mirror in mirrors
    )
    lines = [
        f'Acquire::{scheme}::Proxy "{proxy or "DIRECT"}";' for scheme, proxy in proxies.items()
    ]
    if not all(mirror.check_expiry for mirror in mirrors):
        lines.append('Acquire::Check-Valid-Until "false";')
    return {
        "debian.sources": "\n".join(stanzas),
        "apt.conf": "".join(f"{line}\n" for line in lines),
    }
