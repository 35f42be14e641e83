"""Nothing from a Debian mirror is used unless the archive's keys vouch for it, down to the last package."""

import contextlib
import lzma
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sandbox import assets
from sandbox.assets import apt, debian, download, signature
from sandbox.assets.debian import Package, Suite
from sandbox.assets.errors import AssetError, FetchError
from sandbox.assets.progress import Teller
from slurmruntime.process.clock import SystemClock
from tests.sandbox import debian_mirror
from tests.sandbox.debian_mirror import Built
from tests.sandbox.openpgp import Key
from tests.servers import is_offline

NOW = SystemClock().now()  # gpgv looks at the machine's clock, and cannot be told another
WEB = download.web({"http": ""}, pauses_s=(0, 0, 0))
KEEP = re.compile(r"usr/(sbin|lib)/")

PACKAGES = [
    Built(
        name="slurmctld",
        files={"usr/sbin/slurmctld": b"daemon", "lib/x.so": b"library", "etc/slurm.conf": b""},
        depends="libc6 (>= 2.38), ucf, libfoo-abi-3 | libbar, slurm-plugins (= 26.05.5-1)",
    ),
    Built(name="slurm-plugins", files={"usr/lib/plugin.so": b"plugin"}, depends="slurmctld"),
    Built(name="libc6", files={}),
    Built(name="libfoo3", files={}, provides="libfoo-abi-3 (= 3), other"),
    Built(name="libbar", files={}),
    Built(name="ucf", files={}),
]


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A served mirror."""

    address: str
    folder: Path
    key: Key

    def packages(
        self,
        *,
        now: datetime = NOW,
        suite: str = debian_mirror.SUITE,
        check_expiry: bool = True,
        trusted: frozenset[str] = frozenset(),
    ) -> Mapping[str, Package]:
        """What the fetcher believes of it, with the archive's own key pinned unless `trusted` says otherwise."""
        mirror = apt.Mirror(address=self.address, check_expiry=check_expiry)
        wanted = Suite(mirror=mirror, name=suite, architecture=debian_mirror.ARCHITECTURE)
        return wanted.packages(
            WEB,
            now=now,
            scratch=self.folder,
            tell=Teller("slurm", lambda _: None),
            keyring=self.folder / "keyring.gpg",
            trusted=trusted or frozenset({self.key.fingerprint}),
        )

    def deb(self, package: Package) -> bytes:
        return WEB.get(f"{self.address}/{package.path}", sha256=package.sha256)

    def file(self, pattern: str) -> Path:
        (found,) = self.folder.glob(pattern)
        return found


@contextlib.contextmanager
def archive_of(folder: Path, key: Key, *, age: timedelta) -> Iterator[Archive]:
    debian_mirror.write(folder, PACKAGES, key, made=NOW - age)
    (folder / "keyring.gpg").write_bytes(key.keyring())
    with debian_mirror.served(folder) as address:
        yield Archive(address=address, folder=folder, key=key)


@pytest.fixture(scope="module")
def key() -> Key:
    return Key(created=NOW - timedelta(days=100))


@pytest.fixture
def archive(tmp_path: Path, key: Key) -> Iterator[Archive]:
    if shutil.which("gpgv") is None and is_offline():
        pytest.skip("without gpgv the verifier is a wheel from the network")
    with archive_of(tmp_path, key, age=timedelta(days=1)) as served:
        yield served


def test_a_signed_index_is_believed(archive: Archive) -> None:
    packages = archive.packages()

    assert {package.name for package in PACKAGES} == set(packages)
    assert packages["slurmctld"].version == "26.05.5-1"


def test_the_pinned_keys_are_the_default(archive: Archive) -> None:
    with pytest.raises(FetchError, match="no good signature by a known archive key"):
        archive.packages(trusted=signature.ARCHIVE_KEYS)


def test_what_a_stranger_signed_never_gets_into_the_cache(archive: Archive) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        environ = {
            "SANDBOX_CACHE": folder,
            "SLURM_DEB_MIRROR": archive.address,
            "SLURM_DEB_KEYRING": str(archive.folder / "keyring.gpg"),
        }
        with pytest.raises(AssetError, match=r"fetch: .*no good signature by a known archive key"):
            assets.fetch([assets.AssetName.SLURM], report=lambda _: None, environ=environ)

        assert [path.suffix for path in Path(folder).iterdir()] == [".lock"]


def test_a_known_key_must_have_signed_itself(archive: Archive, tmp_path: Path) -> None:
    """Its name in the trusted set does not help an index signed by a stranger."""
    stranger = Key(created=NOW - timedelta(days=100))
    debian_mirror.write(tmp_path, PACKAGES, stranger, made=NOW - timedelta(days=1))

    with pytest.raises(FetchError, match="signed by no key in the keyring"):
        archive.packages()


def test_an_expired_key_counts_no_more(tmp_path: Path, archive: Archive) -> None:
    month = timedelta(days=30)
    expired = Key(created=NOW - month, valid_s=int((month / 2).total_seconds()))
    (tmp_path / "old").mkdir()
    with (
        archive_of(tmp_path / "old", expired, age=month - timedelta(days=1)) as old,
        pytest.raises(FetchError, match="no good signature"),
    ):
        old.packages(check_expiry=False)


def test_an_altered_release_is_refused(archive: Archive) -> None:
    release = archive.file("dists/*/InRelease")
    release.write_bytes(release.read_bytes().replace(b"Suite: testing", b"Suite: testinG"))

    with pytest.raises(FetchError, match="no good signature"):
        archive.packages()


def test_text_around_the_signed_text_is_not_read(archive: Archive, key: Key) -> None:
    """A hash put above the signed part must not be taken for the archive's."""
    release = archive.file("dists/*/InRelease")
    index = lzma.compress(b"")
    other = f" {'0' * 64} {len(index)} main/binary-amd64/Packages.xz\n".encode()
    release.write_bytes(other + release.read_bytes())

    assert "slurmctld" in archive.packages()


def test_an_altered_index_is_refused(archive: Archive) -> None:
    index = archive.file("dists/*/main/*/by-hash/SHA256/*")
    index.write_bytes(lzma.compress(lzma.decompress(index.read_bytes()) + b"\n"))

    with pytest.raises(FetchError, match=r"SHA256 is .* expected"):
        archive.packages()


def test_an_altered_package_is_refused(archive: Archive) -> None:
    package = archive.packages()["slurmctld"]
    path = archive.folder / package.path
    path.write_bytes(path.read_bytes()[:-1] + b"!")

    with pytest.raises(FetchError, match=r"SHA256 is .* expected"):
        archive.deb(package)


def test_a_truncated_download_is_refused(archive: Archive) -> None:
    package = archive.packages()["slurmctld"]
    path = archive.folder / package.path
    path.write_bytes(path.read_bytes()[:100])

    with pytest.raises(FetchError, match="SHA256"):
        archive.deb(package)


def test_an_expired_index_is_refused(archive: Archive) -> None:
    with pytest.raises(FetchError, match="SLURM_DEB_IGNORE_EXPIRY=1 accepts it"):
        archive.packages(now=NOW + timedelta(days=7))


def test_an_expired_index_is_accepted_where_the_host_accepts_it(archive: Archive) -> None:
    assert archive.packages(now=NOW + timedelta(days=7), check_expiry=False)


def test_the_signature_of_another_suite_does_not_count(archive: Archive, key: Key) -> None:
    (archive.folder / "dists" / "sid").symlink_to(archive.folder / "dists" / "forky")

    with pytest.raises(FetchError, match="signed, but for another suite"):
        archive.packages(suite="sid")


def test_a_suite_that_is_not_there_is_named(archive: Archive) -> None:
    with pytest.raises(FetchError, match="dists/duke/InRelease: 404"):
        archive.packages(suite="duke")


def test_a_mirror_that_does_not_answer_is_named() -> None:
    mirror = apt.Mirror(address="http://127.0.0.1:9")
    nowhere = Suite(mirror=mirror, name="forky", architecture="amd64")

    with pytest.raises(FetchError, match=r"127.0.0.1:9/dists/forky/InRelease: .*refused"):
        nowhere.packages(WEB, now=NOW, scratch=Path(), tell=Teller("slurm", lambda _: None))


def test_what_is_needed_follows_libraries_and_slurm_only(archive: Archive) -> None:
    chosen = debian.closure(archive.packages(), ["slurmctld"], re.compile("lib|slurm"))

    expected = ["libc6", "libfoo3", "slurm-plugins", "slurmctld"]
    assert expected == [package.name for package in chosen]


def test_a_root_that_is_not_in_the_suite_is_named(archive: Archive) -> None:
    with pytest.raises(FetchError, match="no package slurmdbd"):
        debian.closure(archive.packages(), ["slurmdbd"], re.compile("lib"))


def test_packages_are_unpacked_without_what_nobody_asked_for(
    archive: Archive, tmp_path: Path
) -> None:
    debian.unpack(archive.deb(archive.packages()["slurmctld"]), tmp_path / "root", KEEP)

    root = tmp_path / "root"
    files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert files == {"usr/sbin/slurmctld", "usr/lib/x.so"}


def test_a_package_cannot_write_outside_its_root(tmp_path: Path) -> None:
    deb = debian_mirror.deb({"usr/lib/../../../outside": b"", "/usr/lib/absolute": b""})

    debian.unpack(deb, tmp_path / "root", KEEP)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param("NEWSIG\nGOODSIG 1 a\nVALIDSIG S 0 PRIMARY", {"PRIMARY"}, id="a good one"),
        pytest.param("NEWSIG\nEXPKEYSIG 1 a\nVALIDSIG S 0 PRIMARY", set(), id="by an expired key"),
        pytest.param("NEWSIG\nREVKEYSIG 1 a\nVALIDSIG S 0 PRIMARY", set(), id="by a revoked key"),
        pytest.param("NEWSIG\nEXPSIG 1 a\nVALIDSIG S 0 PRIMARY", set(), id="expired itself"),
        pytest.param(
            "NEWSIG\nERRSIG 1\nNO_PUBKEY 1\nNEWSIG\nGOODSIG 2 b\nVALIDSIG S 0 TWO",
            {"TWO"},
            id="beside one by an unknown key",
        ),
        pytest.param(
            "NEWSIG\nGOODSIG 2 b\nVALIDSIG S 0 TWO\nNEWSIG\nBADSIG 1 a",
            set(),
            id="beside a bad one",
        ),
        pytest.param("", set(), id="none at all"),
    ],
)
def test_only_good_signatures_count(status: str, expected: set[str]) -> None:
    lines = "\n".join(f"[GNUPG:] {line}" for line in status.splitlines())

    assert expected == signature.good_signers(lines)
