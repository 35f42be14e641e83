"""What a release says of its images: all that is in them and nothing else, signed so that a change shows."""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from sandbox.errors import SandboxError
from sandbox.image import bom, provenance, release
from sandbox.image.bom import Component
from sandbox.image.provenance import Source

NOW = datetime(2026, 11, 23, tzinfo=UTC)
SITE = "opt/venv/lib/python3.13/site-packages"
DIGEST = f"sha256:{'ab' * 32}"
TOLD = {
    f"{SITE}/typing_extensions-4.15.0.dist-info/METADATA": b"Metadata-Version: 2.4\nName: typing_extensions\nVersion: 4.15.0\n"
    b"License-Expression: PSF-2.0\n\nVersion: 9 of the description\n",
    bom.DPKG_STATUS: bom.dpkg_status({"libc6": "2.42-1+b2", "dash": "0.5.12-12"}),
}
PARTS = (
    Component(kind="deb", name="dash", version="0.5.12-12"),
    Component(kind="deb", name="libc6", version="2.42-1+b2"),
    Component(kind="pypi", name="typing-extensions", version="4.15.0", license="PSF-2.0"),
)


def test_packages_of_both_kinds_are_found() -> None:
    assert bom.components(TOLD) == PARTS
    assert all(bom.is_telling(path) for path in TOLD)
    assert not bom.is_telling(f"{SITE}/typing_extensions.py")


def test_a_package_that_was_removed_again_is_none() -> None:
    status = b"Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n"

    assert bom.components({bom.DPKG_STATUS: status}) == ()


def test_the_bill_names_the_image_and_every_part() -> None:
    made = bom.document("ours", "0.1.0", DIGEST, PARTS, serial=UUID(int=0), now=NOW)

    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    about = made["metadata"]["component"]
    assert about["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    assert [part["purl"] for part in made["components"]] == [
        "pkg:deb/debian/dash@0.5.12-12",
        "pkg:deb/debian/libc6@2.42-1%2Bb2",
        "pkg:pypi/typing-extensions@4.15.0",
    ]
    assert made["components"][-1]["licenses"] == [{"expression": "PSF-2.0"}]


def test_the_bill_is_what_the_format_allows() -> None:
    """By CycloneDX' own library, with everything that the lock holds."""
    locked = (
        Component(kind="pypi", name=name, version=version, license="Apache-2.0 OR MIT")
        for name, version in release.pinned().items()
    )
    made = bom.document("ours", "0.1.0", DIGEST, (*PARTS, *locked), serial=UUID(int=0), now=NOW)
    validator = JsonStrictValidator(SchemaVersion.V1_6)

    assert validator.validate_str(json.dumps(made)) is None
    made["components"][0]["type"] = "package"
    assert "package" in str(validator.validate_str(json.dumps(made)))


def test_what_the_lock_does_not_name_is_refused_all_of_it_at_once() -> None:
    pinned = bom.locked("typing_extensions==4.14.0 \\\n    --hash=sha256:00\n")
    stray = Component(kind="pypi", name="pip", version="26.2")

    with pytest.raises(SandboxError) as told:
        bom.check("ours", (*PARTS, stray), pinned)

    assert "typing-extensions 4.15.0, expected 4.14.0" in str(told.value)
    assert "pip 26.2, expected none" in str(told.value)
    bom.check("ours", PARTS, {"typing-extensions": "4.15.0"})


def test_our_own_packages_and_the_lock_may_be_in_an_image() -> None:
    pinned = release.pinned()

    assert {"slurm-bridge", "slurm-client", "slurm-exporter", "pydantic", "aiohttp"} <= set(pinned)


def test_a_release_is_made_of_what_cannot_change(tmp_path: Path) -> None:
    (tmp_path / "old.tar").touch()
    changed = Source(commit="c0ffee", is_clean=False)

    with pytest.raises(SandboxError) as told:
        release.check(changed, tmp_path, "python:3.13-slim", is_draft=False)

    for fault in ("differs from its commit", "name it by digest", "is not empty"):
        assert fault in str(told.value)
    release.check(changed, tmp_path / "new", f"python@{DIGEST}", is_draft=True)


def test_the_attestation_is_about_the_image_by_its_digest() -> None:
    made = provenance.statement(
        "ours",
        DIGEST,
        stage="bridge",
        source=Source(commit="c0ffee", is_clean=True),
        base="base@sha256:00",
        materials={"Dockerfile": "cd"},
        began=NOW,
        ended=NOW,
    )

    assert made["subject"] == [{"name": "ours", "digest": {"sha256": "ab" * 32}}]
    sources = made["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert [source["digest"] for source in sources] == [{"gitCommit": "c0ffee"}, {"sha256": "cd"}]


def test_a_signature_holds_until_something_changes(tmp_path: Path) -> None:
    key, folder = tmp_path / "key", tmp_path / "release"
    generate = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    subprocess.run(generate, check=True)
    signers = tmp_path / "signers"
    signers.write_text(f"maintainer {key.with_suffix('.pub').read_text()}")
    folder.mkdir()
    (folder / "image.tar").write_text("image")
    listed = folder / release.SUMS
    listed.write_text(release.sums(folder))

    release.sign(listed, key)

    check = ("sha256sum", "--check", "--quiet", release.SUMS)
    verify = (
        *("ssh-keygen", "-Y", "verify", "-f", signers, "-I", "maintainer"),
        *("-n", release.NAMESPACE, "-s", f"{listed}.sig"),
    )

    def holds() -> bool:
        with listed.open() as signed:
            is_signed = subprocess.run(verify, stdin=signed, check=False, capture_output=True)
        is_whole = subprocess.run(check, cwd=folder, check=False, capture_output=True)
        return is_signed.returncode == is_whole.returncode == 0

    assert holds()
    (folder / "image.tar").write_text("another")
    assert not holds()
    listed.write_text(release.sums(folder))
    assert not holds()
