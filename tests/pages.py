"""The documentation's commands, as a reader would type them: a page's code blocks, in order, in one shell each."""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
_TIMEOUT_S = 300
_PROGRAM = """\
#!/bin/sh
exec {python} -c 'from {module} import main; main()' "$@"
"""
_PROGRAMS = {"kubectl-slurm": "slurmcli.plugin", "slurm-bridge": "slurmcli.program"}
"""As an installed package has them."""


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences."""

    language: str
    text: str

    def commands(self) -> Sequence[str]:
        """Lines as they are typed: what is continued after a backslash is one, comments are none."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line.strip() and not line.startswith("#")]


def blocks(page: str) -> Sequence[Block]:
    """The code blocks of a page of `docs/`, in order; those of a list are indented."""
    found = re.findall(r"(?ms)^( *)```(\w*)\n(.*?)^\1```$", (DOCS / page).read_text())
    return [Block(language, textwrap.dedent(text)) for _, language, text in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Somebody who types what a page says."""

    folder: Path
    """Where; the checkout's `deploy` is there."""
    environment: Mapping[str, str]
    in_place_of: Mapping[str, str] = field(default_factory=dict)
    """What the page cannot know, as the address of somebody's slurmrestd -> what it is here."""
    expected: Mapping[str, int] = field(default_factory=dict)
    """Commands that do not end with exit code 0."""

    def adapted(self, text: str) -> str:
        """With this reader's own names and addresses."""
        for theirs, ours in self.in_place_of.items():
            text = text.replace(theirs, ours)
        return text

    def types(self, command: str) -> str:
        """Type it; what is printed.

        Raises:
            AssertionError: the exit code is not the one expected.
        """
        done = subprocess.run(
            ["/bin/bash", "-o", "pipefail", "-c", self.adapted(command)],
            cwd=self.folder,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
        said = f"{command}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"
        assert (
            self.expected.get(command.split("  #", maxsplit=1)[0].strip(), 0) == done.returncode
        ), said
        return done.stdout


def reader(folder: Path, environment: Mapping[str, str], *programs: Path) -> Reader:
    """Somebody in a checkout with its .venv, with that and these folders of programs on PATH."""
    ours = folder / ".venv/bin"
    ours.mkdir(parents=True)
    for name, module in _PROGRAMS.items():
        (ours / name).write_text(_PROGRAM.format(python=sys.executable, module=module))
        (ours / name).chmod(0o755)
    (folder / "deploy").symlink_to(DOCS.parent / "deploy")
    path = ":".join([str(ours), *map(str, programs), environment["PATH"]])
    code = {"PYTHONPATH": os.pathsep.join([str(DOCS.parent), os.environ.get("PYTHONPATH", "")])}
    return Reader(folder=folder, environment={**environment, **code, "PATH": path})
