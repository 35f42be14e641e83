"""`make test-releases`: the same tests on each release that README names; ends with 1 if one of them fails."""

import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from sandbox import assets
from sandbox.assets import Asset, AssetName
from tests.releases import matrix
from tests.releases.matrix import Outcome, Run
from tests.servers import DATA_PARSER

TREE = Path(__file__).parents[2]
_LIMIT_S = 1800.0


def main(
    *,
    page: Annotated[Path, typer.Option(help="The page to write.")],
    only: Annotated[str, typer.Option(help="Such as Kubernetes or v0.0.43; no page.")] = "",
) -> None:
    """Run the tests of the matrix, one run after the other."""
    with assets.shown(sys.stderr) as report:
        wanted = (AssetName.KUBE, AssetName.OLDEST, AssetName.SLURM)
        found = assets.resolve_all(wanted, report=report)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="slurm-bridge-releases-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)  # the servers run as other users
        kubernetes = {
            found[AssetName.OLDEST].version: str(_whole(found, folder / "oldest")),
            found[AssetName.KUBE].version: str(found[AssetName.KUBE].bin),
        }
        for run in matrix.runs(kubernetes, _pythons(), parser_variable=DATA_PARSER):
            if only in f"{run.what} {run.release}":
                outcomes.append(_outcome(run, folder))
                said = outcomes[-1]
                typer.echo(f"{run.what} {run.release}: {said.passed} passed, {said.failed} failed")
    if not only:
        beside = {
            "Kubernetes": found[AssetName.KUBE].version,
            "Slurm": found[AssetName.SLURM].version,
            "Python": ".".join(map(str, sys.version_info[:2])),
        }
        page.write_text(matrix.page(outcomes, beside))
    if not all(outcome.is_good for outcome in outcomes):
        raise typer.Exit(1)


def _whole(found: Mapping[AssetName, Asset], folder: Path) -> Path:
    """Return a folder with the oldest control plane, and the newest of what goes with it."""
    folder.mkdir()
    for name in (AssetName.KUBE, AssetName.OLDEST):
        for program in found[name].bin.iterdir():
            link = folder / program.name
            link.unlink(missing_ok=True)
            link.symlink_to(program)
    return folder


def _pythons() -> dict[str, str]:
    """Return the interpreters of PATH, by release."""
    named = {release: shutil.which(f"python{release}") for release in matrix.PYTHONS}
    return {release: path for release, path in named.items() if path and _answers(path)}


def _answers(python: str) -> bool:
    """Whether it runs: a version manager's shim may stand for one that is not chosen."""
    command = (python, "-c", "import ensurepip, ssl")
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _outcome(run: Run, folder: Path) -> Outcome:
    python = _environment(run, folder) if run.python else Path(sys.executable)
    report = folder / f"{run.release}.xml"
    command = (str(python), "-m", "pytest", "-q", f"--junitxml={report}", *run.tests)
    subprocess.run(
        command, cwd=TREE, env={**os.environ, **run.environment}, check=False, timeout=_LIMIT_S
    )
    if not report.exists():
        return Outcome(run=run, passed=0, failed=1)
    suite = next(ET.parse(report).iter("testsuite"))  # noqa: S314  # our own child wrote it
    total, failed, skipped = (
        sum(int(suite.get(name, "0")) for name in names)
        for names in (("tests",), ("failures", "errors"), ("skipped",))
    )
    return Outcome(run=run, passed=total - failed - skipped, failed=failed)


def _environment(run: Run, folder: Path) -> Path:
    """Make the interpreter's own environment, as `make venv` does; return its Python."""
    place = folder / f"venv-{run.release}"
    subprocess.run((run.python, "-m", "venv", str(place)), check=True)
    python = place / "bin" / "python"
    install = (str(python), "-m", "pip", "install", "--quiet")
    locked = ("--require-hashes", "--only-binary", ":all:", "-r", "requirements-dev.txt")
    ours = ("--no-deps", "--no-build-isolation", "-e", ".", "-e", "./client", "-e", "./exporter")
    for arguments in (locked, ours):
        subprocess.run((*install, *arguments), cwd=TREE, check=True)
    return python


if __name__ == "__main__":
    typer.run(main)
