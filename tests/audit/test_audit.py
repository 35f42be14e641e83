"""`make audit`: what a file of advisories knows of our locks is found, and a file that is old or none is refused."""

import json
import subprocess
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from audit import __main__ as program
from audit import advisories
from audit.advisories import UnusableFile
from slurmruntime.model.objects import JsonDict
from slurmruntime.process.clock import SystemClock

NOW = datetime(2026, 11, 29, tzinfo=UTC)
LOCK = f"typing-extensions==4.16.0 --hash=sha256:{'ab' * 32}\n"


def record(*events: dict[str, str], versions: tuple[str, ...] = (), modified: datetime) -> JsonDict:
    return {
        "schema_version": "1.6.0",
        "id": "PYSEC-2026-1",
        "modified": f"{modified:%Y-%m-%dT%H:%M:%SZ}",
        "published": "2026-02-03T04:05:06Z",
        "aliases": ["CVE-2026-1"],
        "summary": "types that extend too far",
        "affected": [
            {
                "package": {"ecosystem": "PyPI", "name": "typing-extensions"},
                "ranges": [
                    {"type": "GIT", "repo": "https://example.org", "events": [{"introduced": "0"}]},
                    {"type": "ECOSYSTEM", "events": list(events)},
                ],
                "versions": list(versions),
            }
        ],
    }


def archive(path: Path, text: str) -> Path:
    with zipfile.ZipFile(path, "w") as members:
        members.writestr("README.md", "about it")
        members.writestr("PYSEC-2026-1.json", text)
    return path


def audited(file: Path, tmp_path: Path) -> tuple[int, str]:
    """Exit code and output of the command, over a lock of one package."""
    lock = tmp_path / "requirements.txt"
    lock.write_text(LOCK)
    command = (sys.executable, "-m", "audit", str(file), str(lock))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_locked_package_with_an_advisory_is_found(tmp_path: Path) -> None:
    its = record({"introduced": "0"}, {"fixed": "4.17.0"}, modified=SystemClock().now())

    code, said = audited(archive(tmp_path / "all.zip", json.dumps(its)), tmp_path)

    assert 1 == code, said
    for part in ("typing-extensions", "4.16.0", "PYSEC-2026-1", "CVE-2026-1", "4.17.0"):
        assert part in said


def test_one_that_is_fixed_is_not(tmp_path: Path) -> None:
    its = record({"introduced": "0"}, {"fixed": "4.16.0"}, modified=SystemClock().now())

    code, said = audited(archive(tmp_path / "all.zip", json.dumps(its)), tmp_path)

    assert 0 == code, said
    assert "No known vulnerabilities found" in said


def test_a_file_older_than_ninety_days_audits_nothing(tmp_path: Path) -> None:
    old = SystemClock().now() - timedelta(days=91)
    its = record({"introduced": "0"}, modified=old)

    code, said = audited(archive(tmp_path / "all.zip", json.dumps(its)), tmp_path)

    assert program.UNUSABLE == code
    assert f"is of {old:%Y-%m-%d}, 91 days ago, and may be 90" in said


def test_without_a_file_nothing_is_audited(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.UNUSABLE == program.main([])
    assert "make audit DATABASE=all.zip" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"affected": 5}', '{"affected": [{"package": {}}]}']
)
def test_a_file_without_advisories_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnusableFile, match=r"all\.zip"):
        advisories.read(archive(tmp_path / "all.zip", text), NOW)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "all.zip").write_text("advisories")

    with pytest.raises(UnusableFile, match="no zip archive"):
        advisories.read(tmp_path / "all.zip", NOW)
    with pytest.raises(UnusableFile, match="no zip archive"):
        advisories.read(tmp_path / "none.zip", NOW)


@pytest.mark.parametrize(
    ("events", "versions", "affected"),
    [
        pytest.param((), ("4.16.0",), True, id="listed"),
        pytest.param((), ("4.16",), True, id="listed, written otherwise"),
        pytest.param((), ("4.15.0", "none"), False, id="another is listed"),
        pytest.param(({"introduced": "0"},), (), True, id="all"),
        pytest.param(({"introduced": "4.16.0"},), (), True, id="from this one on"),
        pytest.param(({"introduced": "4.17.0"},), (), False, id="later ones"),
        pytest.param(({"introduced": "0"}, {"last_affected": "4.16.0"}), (), True, id="the last"),
        pytest.param(
            ({"introduced": "0"}, {"last_affected": "4.15.0"}), (), False, id="earlier ones"
        ),
        pytest.param(
            ({"introduced": "4.16"}, {"fixed": "4.1"}, {"introduced": "0"}), (), True, id="again"
        ),
    ],
)
def test_a_version_is_looked_up_as_the_format_says(
    tmp_path: Path, events: tuple[dict[str, str], ...], versions: tuple[str, ...], affected: bool
) -> None:
    its = record(*events, versions=versions, modified=NOW)

    known = advisories.read(archive(tmp_path / "all.zip", json.dumps(its)), NOW)

    assert affected is bool(known.of("Typing.Extensions", "4.16.0"))
    assert [] == known.of("another", "4.16.0")
