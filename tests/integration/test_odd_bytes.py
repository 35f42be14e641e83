"""Slurm keeps whatever bytes a job's name has, and slurmrestd passes them on: one such job stops nobody."""

from collections.abc import Iterator

import pytest

from sandbox import nss
from sandbox.client import Sandbox
from tests.integration.slurm_users import run_as
from tests.integration.worlds import Worlds, is_gated, is_released, job_id, played

ODD = b"a\xff"
PATIENT_S = 30.0
_HELD = {"slurmjob.slinky.slurm.net/hold": "true"}


@pytest.fixture
def odd_job(full_sandbox: Sandbox) -> Iterator[int]:
    """One of an ordinary user's that waits."""
    command = ("sbatch", "--hold", "--parsable", "-A", nss.JOB_USER.name, "-J", ODD)
    printed = run_as(full_sandbox, "alice", *command, "--wrap", "true")
    found = int(printed.split(";")[0])
    yield found
    full_sandbox.run("scancel", "--quiet", str(found))


@pytest.mark.attack(
    "give a job a name with bytes that are not text, as any Slurm user",
    "flags and `admin_comment` say whose job it is; odd bytes elsewhere are replaced",
)
def test_pods_are_placed_and_completed_beside_a_strangers_job_with_an_odd_name(
    worlds: Worlds, request: pytest.FixtureRequest, full_sandbox: Sandbox
) -> None:
    ends = worlds.submit("ends", annotations=played(seconds=5))
    worlds.await_phase("ends", "Running")

    odd: int = request.getfixturevalue("odd_job")

    meanwhile = worlds.submit("meanwhile", annotations=played(seconds=1))
    for name, uid in {"ends": ends, "meanwhile": meanwhile}.items():
        assert "COMPLETED" == worlds.await_accounted(uid, PATIENT_S).state
        worlds.await_pod(name, is_released)

    lasts = worlds.submit("lasts", annotations=played(seconds=5))
    worlds.await_phase("lasts", "Running")
    run_as(full_sandbox, "alice", "scancel", str(odd))

    afterwards = worlds.submit("afterwards", annotations=played(seconds=1))
    for name, uid in {"lasts": lasts, "afterwards": afterwards}.items():
        assert "COMPLETED" == worlds.await_accounted(uid, PATIENT_S).state
        worlds.await_pod(name, is_released)


@pytest.mark.safeguard(
    "doubt",
    "a Slurm user gives an own job a name that cannot be read, so that it is unknown what became of it",
    "nothing: flags and `admin_comment` say whose job it is, and only Slurm's operators write them",
)
@pytest.mark.attack(
    "give the job of one's own pod a name with bytes that are not text",
    "flags and `admin_comment` say whose job it is; odd bytes elsewhere are replaced",
)
def test_a_placeholder_that_its_user_gives_an_odd_name_is_handled_as_ever(
    worlds: Worlds, full_sandbox: Sandbox
) -> None:
    """Renamed while it waits and again while it runs; new leaders find it by its identity and submit no other."""
    uid = worlds.submit("renamed", annotations=_HELD | played(seconds=20))
    waits = worlds.await_live(uid)
    rename(full_sandbox, waits.id)
    for service in ("extender", "controllers"):  # a new leader looks at every job
        full_sandbox.restart(service)
    seen = worlds.submit("seen", annotations=played(seconds=1))
    assert "COMPLETED" == worlds.await_accounted(seen, PATIENT_S).state
    assert is_gated(worlds.await_pod("renamed", bool))
    assert [waits.id] == [job.id for job in worlds.jobs(uid)]

    worlds.scontrol("release", str(waits.id))
    assert waits.id == job_id(worlds.await_phase("renamed", "Running", deadline_s=PATIENT_S))
    rename(full_sandbox, waits.id)

    assert "COMPLETED" == worlds.await_accounted(uid, PATIENT_S + 20).state
    worlds.await_pod("renamed", is_released)


def rename(sandbox: Sandbox, number: int) -> None:
    """As the user whose job it is."""
    name = b"name=" + ODD
    run_as(sandbox, nss.JOB_USER.name, "scontrol", "update", f"jobid={number}", name)
