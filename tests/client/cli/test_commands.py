"""`slurmc` against a real Slurm."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sandbox.client import Sandbox
from slurmclient import Client
from slurmclient.cli.rendering import as_yaml
from tests.client.conftest import Submit

ROOT = Path(__file__).parents[3]


class Slurmc:
    """Runs the command in a process of its own; returns exit code, output and error output."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "client"),
            "COLUMNS": "200",
            "SLURMRESTD_URL": sandbox.slurmrestd_url,
            "SLURM_JWT": sandbox.token(),
        }

    def __call__(
        self, *arguments: str, stdin: str = "", **environment: str
    ) -> tuple[int, str, str]:
        done = subprocess.run(
            (sys.executable, "-c", "from slurmclient.cli.entry import main; main()", *arguments),
            env={**self.environment, **environment},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def slurmc(slurm_accounting: Sandbox) -> Slurmc:
    return Slurmc(slurm_accounting)


async def test_a_job_is_listed_got_changed_and_cancelled(slurmc: Slurmc, submit: Submit) -> None:
    job = str((await submit(name="typed", hold=True)).job_id)
    code, listed, _ = slurmc("list", "jobs")
    assert 0 == code
    (line,) = (line for line in listed.splitlines() if line.split()[:1] == [job])
    assert ["typed", "root", "slurm-bridge", "PENDING"] == line.split()[1:5]

    assert (0, "", "") == slurmc("update", "jobs", job, "time_limit=90", "comment=typed in")
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        _, text, _ = slurmc("get", "jobs", job, "-o", output)
        found = read(text)
        assert (90, "typed in", ["PENDING"]) == (
            found["time_limit"],
            found["comment"],
            found["job_state"],
        )

    assert (0, "", "") == slurmc("cancel", job)
    code, _, complaint = slurmc("cancel", job)
    assert 1 == code
    assert "already completing or completed" in complaint
    assert "See its state with 'slurmc get'." in complaint


async def test_names_of_others_are_no_markup_and_no_commands_to_the_terminal(
    slurmc: Slurmc, submit: Submit
) -> None:
    for name in ("[/x]", "[red]a", "a\x1b]0;owned\x07b"):
        await submit(name=name)

    code, out, err = slurmc("list", "jobs")

    assert (0, "") == (code, err)
    assert "[/x]" in out
    assert "[red]a" in out
    assert r"a\u001b]0;owned\u0007b" in out
    assert "\x1b" not in out


async def test_a_job_that_cannot_be_cancelled_does_not_keep_the_others(
    slurmc: Slurmc, submit: Submit, client: Client
) -> None:
    job = (await submit(hold=True)).job_id
    code, _, complaint = slurmc("cancel", "99998", str(job), "99999")
    assert 1 == code
    assert complaint.index("99998") < complaint.index("99999")
    assert "CANCELLED" in (await client.jobs.get(job)).job_state


def test_every_kind_is_listed_in_every_form(slurmc: Slurmc) -> None:
    for kind in ("partitions", "shares", "users"):
        code, text, complaint = slurmc("list", kind, "-o", "json")
        assert (0, "") == (code, complaint)
        assert json.loads(text), kind
    code, table, _ = slurmc("list", "nodes")
    assert {"node-0", "node-1"} <= {line.split()[0] for line in table.splitlines() if line.split()}


def test_a_watch_prints_what_there_is_and_ends_when_told(slurmc: Slurmc) -> None:
    code, text, _ = slurmc("watch", "partitions", "--count", "1", "-o", "json")
    event = json.loads(text)
    assert (0, "added", "slurm-bridge") == (code, event["event"], event["object"]["name"])


def test_a_script_is_read_from_the_input_and_slurm_says_why_it_does_not_fit(slurmc: Slurmc) -> None:
    """Without a slurmd a batch job has no node; test_installed runs one."""
    code, _, complaint = slurmc(
        "submit", "-", "nodes=1", "partition=nope", stdin="#!/bin/sh\ntrue\n"
    )
    assert 1 == code
    assert "Invalid partition name specified" in complaint
    assert "slurmc list" in complaint


def test_an_error_says_what_to_do(slurmc: Slurmc) -> None:
    code, _, complaint = slurmc("list", "jobs", SLURMRESTD_URL="")
    assert 2 == code
    assert "SLURMRESTD_URL is not set: expected the address of slurmrestd" in complaint
    code, _, complaint = slurmc("list", "jobs", SLURM_JWT="stale")
    assert 1 == code
    assert "Get a new token" in complaint
    code, _, complaint = slurmc("list", "jobs", SLURMRESTD_URL="http://127.0.0.1:1")
    assert 1 == code
    assert "Check the address" in complaint
    code, _, complaint = slurmc("list", "jobs", SLURMRESTD_CA="/nowhere/ca.crt")
    assert (2, True) == (code, "expected a CA in /nowhere/ca.crt" in complaint)
    code, _, complaint = slurmc("list", "jobs", "nope=1")
    assert 2 == code
    assert "it has update_time, flags" in complaint
    code, _, complaint = slurmc("get", "licenses", "x")
    assert 2 == code
    assert "list them" in complaint
    code, _, complaint = slurmc("update", "jobs", "1", "nonsense")
    assert 2 == code
    assert "expected FIELD=VALUE" in complaint


async def test_yaml_is_read_back_as_it_was(client: Client) -> None:
    nodes = await client.raw.slurm_get_nodes()
    assert nodes == yaml.safe_load(as_yaml(nodes))
    odd: object = {"a b": [], "c": {}, "d": [[1, [2]], {"e": "yes: #\n'"}], "f": None, "g": True}
    assert odd == yaml.safe_load(as_yaml(odd))
