"""The check of commit messages sees what is wrong, and only where it can know."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.architecture import commits

GOOD = "Take a gang for one\n\nIts members were counted each.\n"
CHECK = "commits.py"


@pytest.mark.parametrize(
    ("message", "count"),
    [
        pytest.param(GOOD, 0, id="good"),
        pytest.param("x" * 72 + "\n\nWhy.\n", 0, id="longest"),
        pytest.param("x" * 73 + "\n\nWhy.\n", 1, id="too long"),
        pytest.param("\u00e9" * 72 + "\n\nWhy.\n", 0, id="characters, not bytes"),
        pytest.param("Do it\n", 1, id="no body"),
        pytest.param("Do it\nWhy.\n", 1, id="no empty line"),
        pytest.param("Do it\n\nSigned-off-by: A\n", 1, id="trailers are no body"),
        pytest.param("Do it\n\n# a comment of Git's\n", 1, id="comments are no body"),
        pytest.param("", 2, id="nothing"),
    ],
)
def test_messages(message: str, count: int) -> None:
    assert count == len(commits.faults(message))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "test")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "test@localhost")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")
    git(path, "commit", "--allow-empty", "-m", "old and bad")
    (path / CHECK).touch()
    git(path, "add", CHECK)
    git(path, "commit", "-m", "Add the check, badly")
    return path


def git(repository: Path, *arguments: str) -> None:
    command = ("git", "-C", str(repository), *arguments)
    subprocess.run(command, check=True, capture_output=True)


def checked(repository: Path) -> list[str]:
    since = commits.base(repository, CHECK)
    assert since
    return [message.strip() for _, message in commits.messages(repository, since)]


def test_commits_after_the_check_count(repository: Path) -> None:
    assert [] == checked(repository)
    git(repository, "commit", "--allow-empty", "-m", "bad")
    assert ["bad"] == checked(repository)


def test_a_release_settles_what_was_before(repository: Path) -> None:
    git(repository, "commit", "--allow-empty", "-m", "bad")
    git(repository, "tag", "v0.2.0")
    git(repository, "commit", "--allow-empty", "-m", "later")
    assert ["later"] == checked(repository)


def test_a_release_from_before_the_check_settles_nothing(repository: Path) -> None:
    git(repository, "tag", "v0.1.0", "HEAD~1")
    git(repository, "commit", "--allow-empty", "-m", "later")
    assert ["later"] == checked(repository)


def test_merges_and_branches_from_before_the_check_do_not_count(repository: Path) -> None:
    git(repository, "switch", "--quiet", "-c", "branch", "main~1")
    git(repository, "commit", "--allow-empty", "-m", "bad, but could not know")
    git(repository, "switch", "--quiet", "main")
    git(repository, "merge", "--no-ff", "-m", "Merge branch", "branch")
    assert [] == checked(repository)


def test_a_shallow_clone_checks_what_it_has(repository: Path, tmp_path: Path) -> None:
    for message in ("first", "second"):
        git(repository, "commit", "--allow-empty", "-m", message)
    git(tmp_path, "clone", "--quiet", "--depth=2", repository.as_uri(), "clone")
    assert ["second"] == checked(tmp_path / "clone")


def test_without_history_there_is_nothing_to_check(repository: Path, tmp_path: Path) -> None:
    inside = repository / "unpacked"
    inside.mkdir()
    assert commits.base(tmp_path, CHECK) is None
    assert commits.base(inside, CHECK) is None, "the history of what it was unpacked in"


def test_without_git_there_is_nothing_to_check(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert commits.base(repository, CHECK) is None


@pytest.mark.parametrize(
    ("message", "code"),
    [(GOOD, 0), ("bad\n", 1), ("Merge branch\n", 0), ("fixup! Take a gang for one\n", 0)],
)
def test_the_hook_reads_a_file(tmp_path: Path, message: str, code: int) -> None:
    (tmp_path / "COMMIT_EDITMSG").write_text(message)
    assert code == commits.main([str(tmp_path / "COMMIT_EDITMSG")])
