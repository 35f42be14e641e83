"""The distribution as a user gets it: an empty venv, `pip install ./client`, the README's lines."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from slurmclient import sync
from tests.servers import is_offline

ROOT = Path(__file__).parents[2]
SOURCES = {".ci", ".github", "bridge", "client", "deploy", "dev", "docs", "exporter", "tests"}
README = (ROOT / "client" / "README.md").read_text()


@pytest.fixture(scope="module")
def empty_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A venv with only the library; the last test adds the extra."""
    if is_offline():
        pytest.skip("an empty venv needs wheels")
    folder = tmp_path_factory.mktemp("stranger")
    shutil.copytree(ROOT / "client", folder / "client")
    venv.create(folder / "venv", with_pip=False)
    install(folder / "venv", "")
    return folder / "venv"


def install(where: Path, extra: str) -> None:
    python = str(where / "bin" / "python")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile")
    source = f"{where.parent / 'client'}{extra}"
    subprocess.run((*pip, source), check=True, capture_output=True, timeout=300)


def run(
    where: Path, sandbox: Sandbox | None, *command: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    slurm = (
        {"SLURMRESTD_URL": sandbox.slurmrestd_url, "SLURM_JWT": sandbox.token()} if sandbox else {}
    )
    return subprocess.run(
        (str(where / "bin" / command[0]), *command[1:]),
        env={"PATH": os.environ["PATH"], **slurm, **variables},
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_lines_of_the_readme_submit_watch_and_cancel_a_job(
    empty_venv: Path, slurm_with_slurmd: Sandbox
) -> None:
    (lines,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert 12 == len([line for line in lines.splitlines() if line.strip()]), "twelve lines"
    done = run(empty_venv, slurm_with_slurmd, "python", "-c", lines)
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.splitlines()[-1].startswith("first RUNNING")
    with sync.Client(slurm_with_slurmd.slurmrestd_url, token=slurm_with_slurmd.token()) as slurm:
        (job,) = (one for one in slurm.run(slurm.jobs.list()) if one.name == "first")
    assert "CANCELLED" in job.job_state


def test_without_the_extra_the_command_says_which_one_to_install(empty_venv: Path) -> None:
    done = run(empty_venv, None, "slurmc", "list", "jobs")
    words = "slurmc needs the extra 'cli': pip install './client[cli]' in the repository"
    assert (1, f"{words} (slurm-client is on no package index)\n") == (done.returncode, done.stderr)


def test_the_library_needs_two_packages_only() -> None:
    project = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]
    assert ["aiohttp", "msgspec"] == [re.split(r"\W", one)[0] for one in project["dependencies"]]


def test_one_version_for_all() -> None:
    versions = {
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["version"]
        for folder in ("", "client", "exporter")
    }
    assert 1 == len(versions)


def test_nothing_takes_the_client_from_an_index() -> None:
    """Until it is published there, anybody could claim its name."""
    for file in ("pyproject.toml", "requirements.txt", "requirements-dev.txt"):
        assert not re.search(r"^\W*slurm-client\b", (ROOT / file).read_text(), re.MULTILINE), file
    folders = [one for one in ROOT.iterdir() if one.is_dir() and one.name in SOURCES]
    files = [one for one in ROOT.iterdir() if one.is_file() and not one.name.startswith(".")]
    files += [one for folder in folders for one in folder.rglob("*") if one.is_file()]
    told = [
        str(file.relative_to(ROOT))
        for file in files
        if file != Path(__file__)
        and file.suffix in {"", ".md", ".py", ".sh", ".toml", ".yaml", ".yml"}
        and re.search(
            r"(?<!helm )\binstall\b[^\n|]*[\s'\"](slurm-(client|exporter)|slurmclient)\b",
            file.read_text(),
        )
    ]
    assert [] == told


def test_the_bridge_without_the_client_says_what_to_run() -> None:
    """Its metadata cannot name slurm-client: pip would look for it on an index."""
    for name in ("slurm_bridge", "kubectl_slurm"):
        lines = f"import sys; sys.modules['slurmclient'] = None\nfrom slurmcli import entry; entry.{name}()"
        done = subprocess.run(
            (sys.executable, "-c", lines), capture_output=True, text=True, check=False, timeout=60
        )
        assert 1 == done.returncode
        assert "pip install ./client" in done.stderr
        assert 1 == len(done.stderr.splitlines())


def test_with_the_extra_the_command_submits_watches_and_cancels(
    empty_venv: Path, slurm_with_slurmd: Sandbox
) -> None:
    where = empty_venv
    install(where, "[cli]")
    script = where / "job.sh"
    script.write_text("#!/bin/sh\nsleep 600\n")
    submitted = run(
        where, slurm_with_slurmd, "slurmc", "submit", str(script), "name=typed", "--key", "k"
    )
    job = submitted.stdout.strip()
    assert (0, True) == (submitted.returncode, job.isdecimal())
    watched = run(where, slurm_with_slurmd, "slurmc", "watch", "jobs", "--count", "1")
    assert (0, "added") == (watched.returncode, watched.stdout.split()[0])
    cancelled = run(where, slurm_with_slurmd, "slurmc", "cancel", job)
    assert (0, "", "") == (cancelled.returncode, cancelled.stdout, cancelled.stderr)
    # As `--show-completion` does, which asks the process tree for the shell: CI may have none there.
    completion = run(where, None, "slurmc", _SLURMC_COMPLETE="source_bash")
    assert "slurmc" in completion.stdout
