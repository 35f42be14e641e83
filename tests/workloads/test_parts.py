"""The controllers as parts of the sandbox: shown, stopped, started again; their webhooks have a say meanwhile."""

import pytest
from typer.testing import CliRunner

from sandbox import cli
from sandbox.api import ApiError
from sandbox.client import Sandbox
from sandbox.options import WORKLOADS
from tests.workloads.kinds import JOBSET_NAME, JOBSETS, Kinds, replicated_job, template


def test_they_are_parts_like_others(workload_sandbox: Sandbox) -> None:
    status = workload_sandbox.status()

    assert dict.fromkeys(WORKLOADS, "up") == {name: status[name].state for name in WORKLOADS}


def test_a_controller_that_was_away_goes_on(kinds: Kinds) -> None:
    spec = {"replicatedJobs": [replicated_job("work", 1, 1, template())]}
    sandbox = kinds.worlds.sandbox
    sandbox.stop("jobset")
    with pytest.raises(ApiError, match="failed calling webhook"):
        kinds.create(JOBSETS, "early", spec)

    sandbox.start("jobset")

    kinds.create(JOBSETS, "late", spec)
    kinds.await_running(f"{JOBSET_NAME}=late", 1)


def test_a_controller_that_does_not_exist_is_told() -> None:
    done = CliRunner().invoke(cli.app, ["up", "--workloads=jobset,volcano", "--state=/nowhere"])

    assert 2 == done.exit_code
    assert "no controller volcano" in done.stderr
    assert all(name in done.stderr for name in WORKLOADS)
