"""Every commit has a subject of at most 72 characters and a body that says why: `python -m tests.architecture.commits`.

Checked are the commits made on top of the one that added this file, or of the newest release (a tag v*) since.
Merges need neither. Where there is no history, as in an archive or a shallow clone, nothing is left to check.
With the name of a file it checks the message in it, as Git's hook commit-msg wants.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

LONGEST = 72
_HERE = Path(__file__)
_TRAILER = re.compile(r"[A-Z][\w-]*-by: .+")
_AUTOMATIC = ("fixup! ", "squash! ", "amend! ", "Merge ", "Revert ")
"""How subjects begin that Git writes; a hook sees no parents."""


def faults(message: str) -> tuple[str, ...]:
    """What is wrong with a commit's message."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject, *rest = "\n".join(lines).strip().splitlines() or [""]
    body = [line for line in rest if line.strip() and not _TRAILER.fullmatch(line)]
    return tuple(
        fault
        for fault, holds in (
            ("has no subject", not subject),
            (
                f"has a subject of {len(subject)} characters, {LONGEST} at most",
                len(subject) > LONGEST,
            ),
            ("has no empty line after its subject", bool(rest) and bool(rest[0].strip())),
            ("has no body that says why", not body),
        )
        if holds
    )


def base(repository: Path, added: str) -> str | None:
    """The commit after which messages count; None if there is no history of this repository."""
    try:
        top = _git(repository, "rev-parse", "--show-toplevel")
    except (OSError, subprocess.CalledProcessError):
        return None
    if Path(top).resolve() != repository.resolve():
        return None
    commits = _git(repository, "log", "--diff-filter=A", "--format=%H", "--", added).split()
    if not commits:
        return None
    selection = ("--list", "v[0-9]*", "--merged", "HEAD", "--contains", commits[-1])
    releases = _git(repository, "tag", "--sort=-creatordate", *selection).split()
    return releases[0] if releases else commits[-1]


def messages(repository: Path, since: str) -> Iterator[tuple[str, str]]:
    """Abbreviated id and message of each commit, no merge, that has this one among its ancestors."""
    text = _git(
        repository,
        "log",
        "--no-merges",
        "--ancestry-path",
        "-z",
        "--format=%h%n%B",
        f"{since}..HEAD",
    )
    for commit in filter(None, text.split("\0")):
        number, _, message = commit.partition("\n")
        yield number, message


def _git(repository: Path, *arguments: str) -> str:
    command = ("git", "-C", str(repository), *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main(arguments: Sequence[str]) -> int:
    """Check a message, or the repository's; return the exit code."""
    if arguments:
        message = Path(arguments[0]).read_text()
        checked = [] if message.startswith(_AUTOMATIC) else [("this commit", message)]
    else:
        repository = _HERE.parents[2]
        since = base(repository, str(_HERE.relative_to(repository)))
        checked = list(messages(repository, since)) if since else []
        sys.stdout.write(
            f"{len(checked)} commit messages checked since {since}\n"
            if since
            else "no history here, so no commit messages are checked\n"
        )
    wrong = [f"{name} {fault}" for name, message in checked for fault in faults(message)]
    for line in wrong:
        sys.stderr.write(f"{line}: CONTRIBUTING.md, Commits\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
