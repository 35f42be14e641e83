"""Every release that README names is run, and the page tells what was."""

import re
from pathlib import Path

import yaml

from sandbox.assets import oldest
from slurmruntime.slurm.client import VERSIONS
from tests.releases import matrix
from tests.releases.matrix import Outcome

TREE = Path(__file__).parents[2]
KUBERNETES = {"1.30.14": "/oldest", "1.36.4": "/newest"}
RUNS = tuple(matrix.runs(KUBERNETES, {"3.13": "/python"}, parser_variable="PARSER"))


def test_the_oldest_control_plane_is_the_one_that_readme_and_charts_ask_for() -> None:
    built = oldest.modules()["k8s.io/kubernetes"].removeprefix("v").rpartition(".")[0]

    assert f"Kubernetes ≥ {built}" in (TREE / "README.md").read_text()
    for chart in ("deploy/chart", "deploy/exporter/chart"):
        wanted = yaml.safe_load((TREE / chart / "Chart.yaml").read_text())["kubeVersion"]
        assert wanted == f">={built}.0-0"


def test_every_data_parser_and_python_that_we_support_is_run() -> None:
    assert sorted(matrix.DATA_PARSERS) == sorted(f"v0.0.{version}" for version in VERSIONS)
    oldest_python = re.search(
        r'requires-python = ">=([\d.]+)"', (TREE / "pyproject.toml").read_text()
    )
    assert oldest_python is not None
    assert matrix.PYTHONS[0] == oldest_python[1]


def test_each_run_varies_one_thing() -> None:
    assert [run.environment for run in RUNS] == [
        {"SANDBOX_KUBE": "/oldest"},
        {"SANDBOX_KUBE": "/newest"},
        *({"PARSER": version} for version in matrix.DATA_PARSERS),
        {},
    ]
    assert [run.python for run in RUNS if run.python] == ["/python"]
    assert all((TREE / test).exists() for run in RUNS for test in run.tests)


def test_a_run_without_tests_is_no_success() -> None:
    assert not Outcome(run=RUNS[0], passed=0, failed=0).is_good
    assert not Outcome(run=RUNS[0], passed=3, failed=1).is_good
    assert Outcome(run=RUNS[0], passed=3, failed=0).is_good


def test_the_page_names_what_was_run() -> None:
    text = matrix.page([Outcome(run=RUNS[0], passed=3, failed=1)], {"Slurm": "26.05.5"})

    assert "| Kubernetes 1.30.14 | 3 | 1 | `tests/integration" in text
    assert "Slurm 26.05.5" in text
