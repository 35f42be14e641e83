"""Debian packages without apt.

A suite's index, trusted for its signature, and packages, trusted for the index.

Trust: pinned archive keys -> signature of InRelease -> SHA256 of Packages.xz -> SHA256 of each
package. Formats: the Debian wiki on DebianRepository/Format, and deb(5).
"""

import email.utils
import io
import lzma
import re
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sandbox.assets.apt import Mirror
from sandbox.assets.download import Web
from sandbox.assets.errors import FetchError
from sandbox.assets.progress import Teller
from sandbox.assets.signature import ARCHIVE_KEYS, Verifier

HOST_KEYRINGS = tuple(
    Path(f"/usr/share/keyrings/debian-archive-keyring.{suffix}") for suffix in ("gpg", "pgp")
)
NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One binary package of a suite; a suite has one version of each."""

    name: str
    version: str
    path: str
    """Relative to the mirror's address."""
    bytes: int
    sha256: str
    depends: str
    """Depends and Pre-Depends verbatim."""
    provides: str

    def dependencies(self) -> list[list[str]]:
        """Return groups of alternatives, one of each is needed.

        Versions and architectures are left out.
        """
        groups = self.depends.split(",")
        return [
            [match[0] for part in group.split("|") if (match := NAME.match(part.strip()))]
            for group in groups
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One mirror's copy of one suite's main component for one architecture."""

    mirror: Mirror
    name: str
    architecture: str
    """Debian's name for it: amd64, arm64."""

    def packages(
        self,
        web: Web,
        *,
        now: datetime,
        scratch: Path,
        tell: Teller,
        keyring: Path | None = None,
        trusted: frozenset[str] = ARCHIVE_KEYS,
    ) -> Mapping[str, Package]:
        """Return all packages by name. `keyring` None: the host's, else the mirror's.

        Raises:
            FetchError: unreachable, no such suite, not signed properly, altered or expired.
        """
        signed = web.get(f"{self._address}/InRelease", attempts=2)  # there may be no network
        if keyring is None:
            keyring = next((ring for ring in HOST_KEYRINGS if ring.exists()), None)
        if keyring is None:
            keyring = self._mirrors_keyring(web, signed.decode(errors="replace"), scratch)
        verifier = Verifier(keyring=keyring, trusted=trusted)
        release = verifier.text(signed, of=self._address, scratch=scratch, tell=tell)
        if not re.search(rf"^(Codename|Suite): {re.escape(self.name)}$", release, re.MULTILINE):
            raise FetchError(f"{self._address}: signed, but for another suite")
        if self.mirror.check_expiry:
            _check_expiry(release, now, self._address)
        return self._index(web, release)

    def _index(self, web: Web, release: str) -> Mapping[str, Package]:
        folder = f"main/binary-{self.architecture}"
        entry = re.search(rf"^ ([0-9a-f]{{64}}) +\d+ {folder}/Packages\.xz$", release, re.MULTILINE)
        if entry is None:
            raise FetchError(f"{self._address}: no {folder}/Packages.xz")
        packed = web.get(f"{self._address}/{folder}/by-hash/SHA256/{entry[1]}", sha256=entry[1])
        stanzas = lzma.decompress(packed).decode().split("\n\n")
        return {package.name: package for package in map(_package, stanzas) if package}

    def _mirrors_keyring(self, web: Web, unverified: str, scratch: Path) -> Path:
        keyring = scratch / "keyring.gpg"
        try:
            package = self._index(web, unverified)["debian-archive-keyring"]
            deb = web.get(f"{self.mirror.address}/{package.path}", sha256=package.sha256)
            with data_of(deb) as tar:
                keyring.write_bytes(_content(tar, "debian-archive-keyring"))
        except (KeyError, ValueError, lzma.LZMAError, tarfile.TarError) as error:
            raise FetchError(
                f"{self.mirror.address}: no usable archive keyring: {error!r}"
            ) from error
        return keyring

    @property
    def _address(self) -> str:
        return f"{self.mirror.address}/dists/{self.name}"


def closure(
    packages: Mapping[str, Package], roots: Iterable[str], follow: re.Pattern[str]
) -> list[Package]:
    """Return the roots and their dependencies, as far as names match `follow`.

    Of alternatives, the first that exists.

    Raises:
        FetchError: a root is not in the suite.
    """
    providers = {
        name: package.name
        for package in packages.values()
        for name in NAME.findall(re.sub(r"\(.*?\)", "", package.provides))
    }
    todo = list(roots)
    chosen: dict[str, Package] = {}
    while todo:
        wanted = todo.pop()
        package = packages.get(wanted) or packages.get(providers.get(wanted, ""))
        if package is None:
            raise FetchError(f"the suite has no package {wanted}")
        if package.name not in chosen:
            chosen[package.name] = package
            for alternatives in package.dependencies():
                known = [name for name in alternatives if name in packages or name in providers]
                todo += [name for name in known if follow.match(name)][:1]
    return sorted(chosen.values(), key=lambda package: package.name)


def unpack(deb: bytes, root: Path, keep: re.Pattern[str]) -> None:
    """Extract files and relative links whose names match `keep`; run no scripts.

    /lib and the like are merged into /usr.
    """
    with data_of(deb) as tar:
        # Python before 3.11.4 has no such filter; the name is checked below in any case.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        for member in tar:
            member.name = re.sub(
                r"^(lib|lib64|bin|sbin)/", r"usr/\1/", member.name.removeprefix("./")
            )
            inside = ".." not in member.name.split("/")
            wanted = member.isfile() or (member.issym() and not member.linkname.startswith("/"))
            if inside and wanted and keep.match(member.name):
                member.mode = (member.mode & 0o755) | 0o600
                tar.extract(member, root)


def data_of(deb: bytes) -> tarfile.TarFile:
    """Return the files of a package.

    An `ar` archive of debian-binary, control.tar.* and data.tar.*.
    """
    position = 8
    while header := deb[position : position + 60]:
        length = int(header[48:58])
        position += 60
        if header.startswith(b"data.tar"):  # xz in all of Debian; Python opens zstd from 3.14 on
            try:
                return tarfile.open(fileobj=io.BytesIO(deb[position : position + length]))
            except tarfile.ReadError as error:
                name = header[:16].decode().strip()
                raise FetchError(f"this Python cannot open a package's {name}") from error
        position += length + length % 2
    raise FetchError("a package without data.tar: not a Debian package")


def _content(tar: tarfile.TarFile, stem: str) -> bytes:
    for member in tar:
        if member.isfile() and re.search(rf"/{stem}\.(gpg|pgp)$", member.name):
            file = tar.extractfile(member)
            if file is not None:
                return file.read()
    raise KeyError(stem)


def _package(stanza: str) -> Package | None:
    fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line)
    if "Package" not in fields:
        return None
    return Package(
        name=fields["Package"],
        version=fields["Version"],
        path=fields["Filename"],
        bytes=int(fields["Size"]),
        sha256=fields["SHA256"],
        depends=f"{fields.get('Pre-Depends', '')},{fields.get('Depends', '')}",
        provides=fields.get("Provides", ""),
    )


def _check_expiry(release: str, now: datetime, address: str) -> None:
    until = re.search(r"^Valid-Until: (.*)$", release, re.MULTILINE)
    if until and email.utils.parsedate_to_datetime(until[1]).astimezone(UTC) < now:
        raise FetchError(
            f"{address}: the index expired on {until[1]}: a stale mirror or a wrong clock;"
            " SLURM_DEB_IGNORE_EXPIRY=1 accepts it"
        )
