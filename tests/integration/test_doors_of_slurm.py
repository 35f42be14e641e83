"""Attacks through Slurm, door by door: scontrol, sbatch, sacctmgr and slurmrestd, by ordinary users.

A pod runs for all of them; its job belongs to Slurm user kubernetes. Whatever bob or its own user do, pod and job are
as they were.
"""

import base64
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import httpx
import pytest

from sandbox.client import Sandbox
from sandbox.slurm_rest import API
from slurmruntime.process.clock import SystemClock
from slurmruntime.values import names
from tests.attacks import attack
from tests.integration.worlds import Job, Worlds, played
from tests.servers import fresh_namespace

BOB = "bob"
OWNER = "kubernetes"


@dataclass(frozen=True, slots=True)
class Stage:
    """A pod that runs, and its job."""

    worlds: Worlds
    uid: str
    job: Job
    record: str

    @property
    def sandbox(self) -> Sandbox:
        """Where."""
        return self.worlds.sandbox

    def tried_as(self, user: str, command: str) -> str:
        """What is said against a command, `{job}` being the victim's; "" if it was done."""
        name, *arguments = command.replace("{job}", str(self.job.id)).split()
        done = subprocess.run(
            (str(self.sandbox.instance.bin / name), *arguments),
            env={**self.sandbox.env, "SLURM_JWT": self.sandbox.token(user)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            input="y\n",
        )
        return (done.stderr or f"exit code {done.returncode}") if done.returncode else ""

    def asked(self, method: str, path: str, token: str, body: object = None) -> httpx.Response:
        """What slurmrestd answers to whoever has this token."""
        return httpx.request(
            method,
            f"{self.sandbox.slurmrestd_url}/slurm/{API}{path}".replace("{job}", str(self.job.id)),
            json=body,
            headers={"X-SLURM-USER-TOKEN": token},
            trust_env=False,
        )

    def now(self) -> tuple[str, str, str]:
        """State, nodes and record of the job, and whether the pod is at peace."""
        (job,) = (one for one in self.worlds.queue() if one.id == self.job.id)
        return job.state, job.nodes, record_of(self.worlds, job.id)


@pytest.fixture(scope="module")
def stage(full_sandbox: Sandbox) -> Iterator[Stage]:
    with fresh_namespace(full_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(full_sandbox, name)
        uid = worlds.submit("victim", annotations={f"{names.REQUEST_PREFIX}timelimit": "60"})
        worlds.await_phase("victim", "Running")
        job = worlds.await_live(uid, lambda job: job.state == "RUNNING")
        yield Stage(worlds, uid, job, record_of(worlds, job.id))
        worlds.clear()


def record_of(worlds: Worlds, job: int) -> str:
    return worlds.sandbox.run(
        "squeue", "--noheader", "-j", str(job), "-O", "admin_comment:4000"
    ).strip()


@pytest.fixture(autouse=True)
def unharmed(stage: Stage) -> Iterator[None]:
    yield
    assert ("RUNNING", stage.job.nodes, stage.record) == stage.now()
    pod = stage.worlds.await_pod("victim", bool)
    assert (stage.uid, "Running") == (pod["metadata"]["uid"], pod["status"]["phase"])
    assert "deletionTimestamp" not in pod["metadata"]


@pytest.mark.parametrize(
    ("user", "command"),
    [
        attack(
            "cancel", "cancel another user's placeholder", "Slurm refuses", BOB, "scancel {job}"
        ),
        attack(
            "shrink",
            "make another user's placeholder smaller",
            "Slurm refuses",
            BOB,
            "scontrol update jobid={job} numnodes=1 timelimit=1",
        ),
        attack(
            "hold", "hold another user's placeholder", "Slurm refuses", BOB, "scontrol hold {job}"
        ),
        attack(
            "requeue another's",
            "requeue another user's placeholder",
            "Slurm refuses",
            BOB,
            "scontrol requeue {job}",
        ),
        attack(
            "the record",
            "write the record of one's own placeholder (`admin_comment`)",
            "Slurm lets only operators",
            OWNER,
            "scontrol update jobid={job} admincomment={}",
        ),
        attack(
            "requeue",
            "requeue one's own running placeholder, and keep the pod",
            "Slurm does not requeue external jobs",
            OWNER,
            "scontrol requeue {job}",
        ),
        attack(
            "a longer life",
            "raise the time limit of one's own running placeholder",
            "Slurm lets only operators",
            OWNER,
            "scontrol update jobid={job} timelimit=10000",
        ),
        attack(
            "first",
            "raise the priority of one's own placeholder",
            "Slurm lets only operators",
            OWNER,
            "scontrol update jobid={job} priority=4000000000",
        ),
        attack(
            "drain",
            "drain a node in Slurm",
            "Slurm lets only operators",
            BOB,
            "scontrol update nodename=node-0 state=drain reason=x",
        ),
        attack(
            "delete a node",
            "delete a node in Slurm",
            "Slurm lets only operators",
            BOB,
            "scontrol delete nodename=node-3",
        ),
        attack(
            "make a node",
            "create a node with our mark in Slurm",
            "Slurm lets only operators",
            BOB,
            "scontrol create nodename=mine state=external nodeaddr=127.0.0.1 feature=slurm-bridge",
        ),
        attack(
            "reserve",
            "reserve all bridged nodes",
            "Slurm lets only operators",
            BOB,
            "scontrol create reservation starttime=now duration=60 nodes=ALL users=bob",
        ),
        attack(
            "close",
            "close the partition",
            "Slurm lets only operators",
            BOB,
            "scontrol update partition=slurm-bridge state=down",
        ),
        attack("stop", "stop slurmctld", "Slurm lets only operators", BOB, "scontrol shutdown"),
        attack(
            "an operator",
            "become an operator",
            "slurmdbd lets only administrators",
            BOB,
            "sacctmgr -i modify user bob set adminlevel=operator",
        ),
    ],
)
def test_slurm_refuses(stage: Stage, user: str, command: str) -> None:
    assert stage.tried_as(user, command)


def token_of(stage: Stage, kind: str) -> str:
    """A token that is not good, as root's."""
    good = stage.sandbox.token("root")
    head, claims, signature = good.split(".")
    match kind:
        case "expired":
            return stage.sandbox.token("root", now=SystemClock().now() - timedelta(days=400))
        case "unsigned":
            none = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
            return f"{none}.{claims}."
        case "forged":
            bobs = stage.sandbox.token(BOB).split(".")[2]
            return f"{head}.{claims}.{bobs}"
        case _:
            return f"{head}.{claims}.{signature[:-4]}AAAA"


@pytest.mark.parametrize(
    "kind",
    [
        attack("expired", "use an expired token of root at slurmrestd", "Slurm refuses", "expired"),
        attack("unsigned", "use an unsigned token (`alg: none`)", "Slurm refuses", "unsigned"),
        attack("forged", "put another's signature under root's name", "Slurm refuses", "forged"),
        attack("changed", "change the signature of a token", "Slurm refuses", "changed"),
    ],
)
def test_slurmrestd_refuses_a_token(stage: Stage, kind: str) -> None:
    answer = stage.asked("DELETE", "/job/{job}", token_of(stage, kind))

    assert not answer.is_success


@pytest.mark.parametrize(
    ("user", "method", "path", "body"),
    [
        attack(
            "the record by REST",
            "write the record of one's own placeholder through slurmrestd",
            "Slurm lets only operators",
            OWNER,
            "POST",
            "/job/{job}",
            {"admin_comment": "{}"},
        ),
        attack(
            "cancel by REST",
            "cancel another user's placeholder through slurmrestd",
            "Slurm refuses",
            BOB,
            "DELETE",
            "/job/{job}",
            None,
        ),
        attack(
            "features by REST",
            "take our mark off a node through slurmrestd",
            "Slurm lets only operators",
            BOB,
            "POST",
            "/node/node-0",
            {"features": ["mine"]},
        ),
    ],
)
def test_slurmrestd_refuses_a_user(
    stage: Stage, user: str, method: str, path: str, body: object
) -> None:
    answer = stage.asked(method, path, stage.sandbox.token(user), body)

    said = answer.json()
    assert said.get("errors") or any(one["error"]["code"] for one in said.get("status") or ())


@pytest.mark.parametrize(
    "command",
    [
        attack(
            "a copy of the record",
            "submit an external job with a copy of a victim's record in every field there is",
            "only `admin_comment` counts, which Slurm lets only operators write",
            ("--comment={record}", "--job-name=victim", "--external"),
        ),
        attack(
            "a false filler",
            "submit an external job that looks like one of our fillers",
            "only `admin_comment` counts, which Slurm lets only operators write",
            ("--job-name=slurm-bridge-filler", "--comment={record}", "--external"),
        ),
    ],
)
def test_a_job_that_only_looks_like_ours_is_a_strangers(
    stage: Stage, command: tuple[str, ...]
) -> None:
    """It is neither counted as the victim's second one, nor cancelled as an orphan."""
    arguments = [part.replace("{record}", stage.record) for part in command]
    done = subprocess.run(
        [
            str(stage.sandbox.instance.bin / "sbatch"),
            "--parsable",
            "-t",
            "5",
            "--mem=10",
            *arguments,
        ],
        env={**stage.sandbox.env, "SLURM_JWT": stage.sandbox.token(BOB)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=os.sep,
        input="#!/bin/sh\n",
    )
    assert 0 == done.returncode, done.stderr
    theirs = int(done.stdout.partition(";")[0])
    try:
        # A pod that comes and goes after it: by its end, every job has been looked at.
        passes = stage.worlds.submit("passes", annotations=played(seconds=1))
        stage.worlds.await_accounted(passes)
        (job,) = (one for one in stage.worlds.queue() if one.id == theirs)
        assert job.is_live
        assert job.identity is None
    finally:
        stage.worlds.delete("passes")
        stage.sandbox.run("scancel", str(theirs))
        stage.worlds.await_gone("passes")
