"""What docs/security.md says of Scorecard's checks is so in this tree, as far as a tree shows it."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BINARY = (
    b"\x7fELF",
    b"MZ",
    b"PK\x03\x04",
    b"\xca\xfe\xba\xbe",
    b"!<arch>",
    b"\x00asm",
    b"\x1f\x8b",
)
"""How programs, archives and libraries begin."""


def tracked() -> list[Path]:
    command = ("git", "ls-files", "-z")
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_the_tree_holds_no_binary_artifact() -> None:
    binaries = []
    for path in tracked():
        if path.is_file():
            with path.open("rb") as file:
                if file.read(8).startswith(BINARY):
                    binaries.append(path)
    assert binaries == []


def test_there_are_neither_workflows_nor_a_bot_that_renews_dependencies() -> None:
    names = {str(path.relative_to(ROOT)) for path in tracked()}
    assert not [name for name in names if name.startswith(".github/workflows/")]
    assert not [name for name in names if re.search("dependabot|renovate", name)]


def test_license_and_policy_are_there() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert "How to report" in (ROOT / "SECURITY.md").read_text()


@pytest.mark.parametrize(
    "lock", ["requirements.txt", "requirements-build.txt", "requirements-dev.txt"]
)
def test_every_package_of_a_lock_has_hashes(lock: str) -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / lock).read_text().strip())
    assert len(entries) > 5
    assert [] == [entry for entry in entries if "--hash=sha256:" not in entry]


def test_the_page_says_what_is_not_pinned() -> None:
    (base,) = re.findall(r"^ARG BASE_IMAGE=(.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    is_pinned = "@sha256:" in base
    page = (ROOT / "docs/security.md").read_text()
    assert is_pinned is ("**Not pinned:** the Dockerfile's default base" not in page)


def test_the_page_names_every_check() -> None:
    section = (ROOT / "docs/security.md").read_text().partition("### Scorecard's checks")[2]
    rows = re.findall(r"^\| ([A-Z][\w, -]+) \|", section.partition("\n## ")[0], re.MULTILINE)
    assert {
        "Binary-Artifacts", "Branch-Protection", "CI-Tests", "CII-Best-Practices", "Code-Review", "Contributors",
        "Dangerous-Workflow", "Dependency-Update-Tool", "Fuzzing", "License", "Maintained", "Packaging",
        "Pinned-Dependencies", "SAST", "SBOM", "Security-Policy", "Signed-Releases", "Token-Permissions",
        "Vulnerabilities", "Webhooks",
    } == {check for row in rows for check in row.split(", ")}  # fmt: skip
