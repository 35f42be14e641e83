"""The command: its flags, and how it is packed."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from slurmexporter.program.arguments import parse

ROOT = Path(__file__).parents[2]
SERVER = {"SLURMRESTD_URL": "http://slurmrestd:6820"}


def test_slurm_exporters_flags_are_accepted() -> None:
    """As its chart and its documentation have them."""
    settings = parse(
        [
            "--server=http://slurm-restapi:6820",
            "--metrics-bind-address",
            ":8081",
            "--cache-freq=5s",
            "--zap-log-level=info",
            "--zap-encoder=json",
            "--zap-devel",
            "--zap-stacktrace-level=panic",
            "--zap-time-encoding=iso8601",
        ],
        {},
    ).settings
    assert (("http://slurm-restapi:6820",), 8081, 5.0, "info", "own") == (
        settings.urls,
        settings.port,
        settings.interval_s,
        settings.log_level,
        settings.names,
    )


def test_the_environment_says_what_the_flags_do_not() -> None:
    said = {
        **SERVER,
        "SLURM_EXPORTER_TOP_USERS": "7",
        "SLURM_EXPORTER_NAMES": "slinky",
        "SLURM_EXPORTER_EFFICIENCY": "true",
        "SLURM_EXPORTER_INTERVAL": "1m30s",
    }
    settings = parse(["--names=native"], said).settings
    assert (7, "native", True, 90.0) == (
        settings.limits.top_users,
        settings.names,
        settings.has_efficiency,
        settings.interval_s,
    )
    assert ("http://slurmrestd:6820",) == settings.urls


@pytest.mark.parametrize(
    ("variable", "value", "setting", "expected"),
    [
        ("SERVER", "http://a,http://b", "urls", ("http://a", "http://b")),
        ("NO_ACCOUNTING", "true", "has_accounting", False),
        ("EFFICIENCY", "yes", "has_efficiency", True),
        ("INTERVAL", "30s", "interval_s", 30.0),
        ("STALE_AFTER", "2m", "stale_after_s", 120.0),
        ("LISTEN", "127.0.0.1:9000", "port", 9000),
        ("JOB_INFO", "7", "job_info", 7),
        ("LOG_LEVEL", "warn", "log_level", "warning"),
        ("MAX_BACKOFF", "2.5", "max_backoff", 2.5),
    ],
)
def test_each_flag_has_a_variable_of_its_name(
    variable: str, value: str, setting: str, expected: object
) -> None:
    settings = parse([], {**SERVER, f"SLURM_EXPORTER_{variable}": value}).settings
    assert expected == getattr(settings, setting)


def test_no_node_series_is_a_limit_of_a_page() -> None:
    assert not parse(["--no-node-series"], SERVER).settings.limits.node_series
    assert parse([], SERVER).settings.limits.node_series


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "expected --server URL or SLURMRESTD_URL"),
        (["--server=http://a", "--interval=soon"], "expected a span such as 15s"),
        (["--server=http://a", "--interval=0s"], "expected a span such as 15s"),
        (["--server=http://a", "--listen=here"], "expected HOST:PORT"),
        (["--server=http://a", "--listen=:99999"], "expected HOST:PORT"),
        (["--server=http://a", "--top-users=-1"], "expected a whole number"),
        (["--server=http://a", "--look-rate=inf"], "expected a number"),
        (["--server=http://a", "--include=("], "expected a regular expression"),
        (["--server=http://a", "--names=theirs"], "invalid choice"),
    ],
)
def test_what_is_not_understood_is_named(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(words, {})
    assert said in capsys.readouterr().err


def test_one_version_for_all() -> None:
    versions = {
        tomllib.loads((ROOT / file).read_text())["project"]["version"]
        for file in ("pyproject.toml", "client/pyproject.toml", "exporter/pyproject.toml")
    }
    assert 1 == len(versions)


def test_nothing_takes_the_exporter_or_the_client_from_an_index() -> None:
    """Until they are published there, anybody could claim their names."""
    files = (
        "pyproject.toml",
        "exporter/pyproject.toml",
        "requirements.txt",
        "requirements-dev.txt",
    )
    for file in files:
        required = re.findall(
            r"^\W*(slurm-(?:client|exporter))\b(?! = )", (ROOT / file).read_text(), re.MULTILINE
        )
        assert not required, file


def test_the_unit_starts_the_installed_program(tmp_path: Path) -> None:
    unit = (ROOT / "deploy/exporter/slurm-exporter.service").read_text()
    (started,) = re.findall(r"^ExecStart=(\S+)$", unit, re.MULTILINE)
    scripts = tomllib.loads((ROOT / "exporter/pyproject.toml").read_text())["project"]["scripts"]
    assert Path(started).name in scripts
    program = Path(sys.executable).parent / Path(started).name
    said = subprocess.run((program, "--help"), capture_output=True, text=True, check=True).stdout
    for variable in re.findall(r"SLURM\w+", unit):
        assert variable in said, f"{variable} of the unit is not read"
    if systemd := shutil.which("systemd-analyze"):
        here = tmp_path / "slurm-exporter.service"
        here.write_text(unit.replace(started, str(program)))
        done = subprocess.run(
            (systemd, "verify", "--man=no", here), capture_output=True, text=True, check=False
        )
        assert (0, "") == (done.returncode, done.stderr)
