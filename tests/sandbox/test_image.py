"""How our images are built: what a step learns of this machine's pip, and what an archive tells."""

import gzip
import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from sandbox.assets.apt import Mirror
from sandbox.image import base, debian, layout, pip

CONFIGURED = """\
:env:.cert='/etc/ours.crt'
:env:.find-links='/opt/wheels'
global.cert='/etc/other.crt'
global.index-url='https://me:secret@index.example/simple'
install.extra-index-url='https://a.example\\nhttps://b.example'
list.format='json'
"""


def test_a_step_reaches_the_index_as_this_machines_pip_does(tmp_path: Path) -> None:
    found = pip.secrets(CONFIGURED, tmp_path)

    assert found == {"pip.conf": tmp_path / "pip.conf", "ca.crt": Path("/etc/ours.crt")}
    assert (tmp_path / "pip.conf").read_text() == (
        "[global]\n"
        f"cert = {pip.INSIDE}\n"
        "extra-index-url = https://a.example\n"
        "    https://b.example\n"
        "index-url = https://me:secret@index.example/simple\n"
    )
    assert (tmp_path / "pip.conf").stat().st_mode & 0o077 == 0


def test_a_machine_without_certificates_of_its_own_gives_none(tmp_path: Path) -> None:
    assert pip.secrets("", tmp_path) == {"pip.conf": tmp_path / "pip.conf"}


def test_a_step_reaches_the_mirrors_as_this_machines_apt_does() -> None:
    mirrors = (
        Mirror(address="http://near.example/debian"),
        Mirror(address="http://far.example/debian", check_expiry=False),
    )

    found = debian.apt_files("forky", mirrors, {"http": "http://proxy.example:3128", "https": ""})

    signed = "Signed-By: /usr/share/keyrings/debian-archive-keyring.pgp\n"
    assert found["debian.sources"] == (
        f"Types: deb\nURIs: http://near.example/debian\nSuites: forky\nComponents: main\n{signed}\n"
        f"Types: deb\nURIs: http://far.example/debian\nSuites: forky\nComponents: main\n{signed}"
    )
    assert found["apt.conf"] == (
        'Acquire::http::Proxy "http://proxy.example:3128";\n'
        'Acquire::https::Proxy "DIRECT";\n'
        'Acquire::Check-Valid-Until "false";\n'
    )
    assert "" == debian.apt_files("forky", mirrors[:1], {})["apt.conf"]


def test_an_archive_tells_its_size_and_what_a_container_sees(tmp_path: Path) -> None:
    lower = _layer({"a/gone/x": b"12", "a/stays": b"123", "b/covered": b"1"})
    upper = _layer({"a/.wh.gone": b"", "b/.wh..wh..opq": b"", "b/new": b"1234"})
    archive = tmp_path / "image.tar"
    configuration = _blob(json.dumps({"config": {"User": "1:1"}}).encode())
    layers = [_blob(lower), _blob(upper)]
    manifest = _blob(
        json.dumps(
            {
                "config": {"digest": configuration[0]},
                "layers": [{"digest": digest, "size": len(data)} for digest, data in layers],
            }
        ).encode()
    )
    index = json.dumps({"manifests": [{"digest": manifest[0]}]}).encode()
    with tarfile.open(archive, "w") as tar:
        _add(tar, "index.json", index)
        for digest, data in (configuration, manifest, *layers):
            _add(tar, f"blobs/{digest.replace(':', '/')}", data)

    held = layout.read(archive, lambda path: path.startswith("a/"))

    assert held.digest == manifest[0]
    assert held.data == {"a/stays": b"123"}
    assert held.configuration == {"User": "1:1"}
    assert held.compressed_bytes == len(lower) + len(upper)
    assert held.files == {"a/stays": 3, "b/new": 4}
    assert held.unpacked_bytes == 7


@pytest.mark.parametrize("name", ["usr/bin/python", "etc/passwd", "tmp"])
def test_a_base_has_what_no_package_holds(tmp_path: Path, name: str) -> None:
    made = {entry.path: entry for entry in base.entries(tmp_path, "python3.13", {})}

    assert name in made


def test_a_base_trusts_debians_authorities(tmp_path: Path) -> None:
    folder = tmp_path / "usr/share/ca-certificates/mozilla"
    folder.mkdir(parents=True)
    (folder / "A.crt").write_bytes(b"a\n")
    (folder / "B.crt").write_bytes(b"b\n")

    made = {entry.path: entry for entry in base.entries(tmp_path, "python3.13", {})}

    assert made["etc/ssl/certs/ca-certificates.crt"].data == b"a\nb\n"


def _layer(files: dict[str, bytes]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, data in files.items():
            _add(tar, name, data)
    return gzip.compress(plain.getvalue())


def _blob(data: bytes) -> tuple[str, bytes]:
    return f"sha256:{sha256(data).hexdigest()}", data


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
