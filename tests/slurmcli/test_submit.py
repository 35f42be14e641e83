"""`submit --dry-run`: the job of a script, as a person sees it."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from slurmcli import plugin
from slurmcli.batch import submit
from tests.slurmcli.conftest import Run

SCRIPT = "#!/bin/sh\n#SBATCH --mem=1G\n#SBATCH -c2\ntrue\n"


@pytest.fixture
def run() -> Run:
    """Run `kubectl slurm …` where there is no cluster at all."""

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(plugin.app(), arguments)

    return call


def test_prints_the_job_and_asks_nobody(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "train.sh"
    file.write_text(SCRIPT)

    done = run("submit", str(file), "--dry-run", "--set", "nodes=2", "--set", "hold")

    assert 0 == done.exit_code, done.output
    job = yaml.safe_load(done.stdout)["job"]
    assert ("train.sh", 2, 2) == (job["name"], job["cpus_per_task"], job["minimum_nodes"])
    assert (SCRIPT, 0) == (job["script"], job["priority"]["number"])
    as_json = run("submit", str(file), "--dry-run", "-o", "json")
    assert "train.sh" == json.loads(as_json.stdout)["job"]["name"]


def test_tells_every_fault_with_its_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "train.sh"
    file.write_text("#!/bin/sh\n#SBATCH --mem=4Q\n#SBATCH --uid=0\ntrue\n#SBATCH -N1\n")

    done = run("submit", str(file), "--dry-run")

    assert 2 == done.exit_code
    assert ["line 5", "line 2", "line 3"] == [
        line.removeprefix("train.sh: ").removeprefix("warning: ")[:6]
        for line in done.stderr.splitlines()
    ]


@pytest.mark.parametrize(
    ("called", "expected"),
    [
        ("train.sh", "train-"),
        ("My_Job.v2.sbatch", "my-job-"),
        (".hidden", "hidden-"),
        ("sbatch", "sbatch-"),
        ("日本.sh", "job-"),
        ("x" * 200, "x" * 50 + "-"),
    ],
)
def test_the_name_begins_like_the_scripts(called: str, expected: str) -> None:
    assert expected == submit.prefix(called)


def test_a_variable_that_is_not_there_is_said(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "train.sh"
    file.write_text(SCRIPT)

    done = run("submit", str(file), "--dry-run", "--env", "NO_SUCH_VARIABLE")
    assert (2, True) == (done.exit_code, "not set in your shell" in done.stderr)


def test_a_file_that_is_not_there_is_said(run: Run, tmp_path: Path) -> None:
    done = run("submit", str(tmp_path / "none.sh"), "--dry-run")
    assert (1, True) == (done.exit_code, "No such file" in done.stderr)
