"""The job of a script, without a Slurm; that it is sbatch's is shown by `tests/slurmjobs/test_like_sbatch.py`."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmjobs.request.build import BuildResult, build
from slurmjobs.request.origin import ScriptOrigin
from tests.slurmjobs.cases import CASES, HEADERS

HERE = ScriptOrigin(directory="/home/alice", now=datetime(2031, 5, 20, tzinfo=UTC))


def built(*options: str, **fields: object) -> BuildResult:
    script = "".join(("#!/bin/sh\n", *(f"#SBATCH {option}\n" for option in options), "true\n"))
    return build(script, name="job.sh", origin=HERE, fields=fields)


def test_the_body_is_what_slurmrestd_takes() -> None:
    request = built("-N2 --ntasks-per-node=3", "--output=out", time=5).request
    assert request
    body = request.body
    assert ("job.sh", 2, 3, 6) == tuple(
        body[key] for key in ("name", "minimum_nodes", "tasks_per_node", "minimum_cpus")
    )
    assert "/home/alice/out" == body["standard_output"]
    assert {"set": True, "infinite": False, "number": 5} == body["time_limit"]
    assert "SLURM_NTASKS_PER_NODE=3" in body["environment"]  # type: ignore[operator]
    assert "SLURM_SUBMIT_DIR=/home/alice" in body["environment"]  # type: ignore[operator]
    assert str(body["script"]).startswith("#!/bin/sh\n#SBATCH -N2")


@pytest.mark.parametrize(
    "line",
    [
        "#SBATCH --begin=uts999999999999",
        "#SBATCH --deadline=now+999999999weeks",
        "#SBATCH --begin=now-999999999weeks",
        "#PBS -W umask=9",
        "#PBS -W umask=",
        f"#PBS -W umask={'7' * 9000}",
        f"#SBATCH --gpus-per-task={'1' * 900}",
    ],
)
def test_numbers_beyond_all_bounds_are_told_with_their_line(line: str) -> None:
    found = build(f"#!/bin/sh\n{line}\ntrue\n", name="job.sh", origin=HERE)

    assert ["line 2"] == [fault.path for fault in found.faults]


def test_all_contradictions_are_told_at_once() -> None:
    found = built(
        "--mem=1 --mem-per-cpu=1", "-c1 --cpus-per-gpu=1", "--exclusive -s", "-m arbitrary"
    )
    assert found.request is None
    assert [2, 4, 3, 5] == [int(fault.path.split()[1]) for fault in found.faults]


def test_a_contradiction_names_the_stronger_place() -> None:
    (fault,) = built("--mem=1", memPerCpu=1).faults
    assert "fields.memPerCpu: --mem and --mem-per-cpu exclude each other: keep one" == fault.text


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from([*HEADERS, *(f"#SBATCH {o}" for cases in CASES.values() for o in cases)]),
        max_size=6,
    )
)
def test_every_header_makes_a_job_or_faults(headers: list[str]) -> None:
    found = build("\n".join(("#!/bin/sh", *headers)), name="x", origin=HERE)
    assert (found.request is None) == bool(found.faults)


@pytest.mark.parametrize("export", ["NONE", "NIL", "A=1"])
def test_only_what_is_exported_reaches_the_job(export: str) -> None:
    origin = ScriptOrigin(
        directory="/", now=HERE.now, environment={"TOKEN": "secret", "SLURM_X": "1"}
    )
    script = f"#!/bin/sh\n#SBATCH --export={export}\n"
    request = build(script, name="x", origin=origin).request
    assert request
    assert "TOKEN" not in request.environment
    assert "1" == request.environment["SLURM_X"]
