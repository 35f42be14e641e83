"""`why`, `queue` and `nodes` on real clusters."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.integration.worlds import Worlds, is_gated
from tests.servers import wait_until
from tests.slurmcli.conftest import EXPENSIVE, Run

_SHOW_MODULES = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv[0] = "kubectl-slurm"
from slurmcli.entry import kubectl_slurm
kubectl_slurm()
"""

HELD = {"slurmjob.slinky.slurm.net/hold": "true"}


@pytest.fixture
def worlds(full_sandbox: Sandbox, bridged_namespace: str) -> Worlds:
    return Worlds(full_sandbox, bridged_namespace)


def test_why_says_what_a_pod_waits_for_and_what_to_do(worlds: Worlds, run: Run) -> None:
    job = worlds.await_live(worlds.submit("held", annotations=HELD))

    done = run("why", f"{worlds.namespace}/held")

    assert 3 == done.exit_code
    assert f"{worlds.namespace}/held waits in Slurm" in done.stdout
    assert "its user holds it (JobHeldUser)" in done.stdout
    assert "release it: scontrol release" in done.stdout
    assert f"{job.id} PENDING" in done.stdout


def test_why_says_what_the_pod_carries_where_slurm_cannot_be_asked(
    worlds: Worlds, run: Run
) -> None:
    worlds.submit("held", annotations=HELD)
    worlds.await_pod("held", lambda pod: is_gated(pod) and "slurm-jobid" in str(pod["metadata"]))

    absent = run("why", "held", "-n", worlds.namespace, environment={"SLURM_JWT": None})
    refused = run("why", "held", "-n", worlds.namespace, environment={"SLURM_JWT": "wrong"})

    assert 3 == absent.exit_code
    assert "Slurm was not asked" in absent.stdout
    assert 3 == refused.exit_code
    assert "warning: Slurm's side is missing" in refused.stderr


def test_why_of_a_pod_that_runs_and_of_one_that_is_not_there(worlds: Worlds, run: Run) -> None:
    worlds.submit("runs")
    worlds.await_phase("runs", "Running")

    assert 0 == run("why", f"{worlds.namespace}/runs").exit_code
    missing = run("why", f"{worlds.namespace}/nobody")
    assert 1 == missing.exit_code
    assert 'pods "nobody" not found' in missing.stderr


def test_why_and_queue_import_only_what_they_use(worlds: Worlds) -> None:
    worlds.await_live(worlds.submit("held", annotations=HELD))

    why = at_the_shell(worlds, "why", f"{worlds.namespace}/held", "-o", "json")
    queue = at_the_shell(worlds, "queue", "-n", worlds.namespace, "-o", "json")

    assert "waits" == json.loads(why.stdout)["stage"]
    assert "PENDING" == json.loads(queue.stdout)[0]["state"]
    for done in (why, queue):
        loaded = done.stderr.split()
        assert "slurmcli.access" in loaded
        assert [] == [name for name in (*EXPENSIVE, "typer") if name in loaded]


def test_queue_shows_both_worlds(worlds: Worlds, ask: Callable[..., Any], run: Run) -> None:
    job = worlds.await_live(worlds.submit("held", annotations=HELD))
    worlds.submit("runs", cpus="2")
    worlds.await_phase("runs", "Running")

    entries = ask("queue", "-n", worlds.namespace)

    assert [("Pod/held", "PENDING", 0), ("Pod/runs", "RUNNING", 1)] == [
        (entry["workload"], entry["state"], entry["running"]) for entry in entries
    ]
    assert job.id == entries[0]["job"]
    assert "JobHeldUser" == entries[0]["reason"]
    shown = run("queue", "-n", worlds.namespace).stdout.splitlines()
    assert shown[0].split()[:3] == ["NAMESPACE", "WORKLOAD", "PODS"]
    assert 3 == len(shown)
    everywhere = yaml.safe_load(run("queue", "-A", "-o", "yaml").stdout)
    assert job.id in {entry["job"] for entry in everywhere}


def test_queue_says_that_there_is_nothing(run: Run) -> None:
    done = run("queue", "-n", "default")

    assert 0 == done.exit_code
    assert "no pods scheduled by Slurm in namespace default" in done.stderr


def test_nodes_shows_what_does_not_fit_together(
    full_sandbox: Sandbox, ask: Callable[..., Any], run: Run
) -> None:
    rows = {row["kube_node"]: row for row in ask("nodes")}

    assert full_sandbox.instance.options.node_names[0] in rows
    assert {""} == {row["mismatch"] for row in rows.values()}
    assert "EXTERNAL" in rows["node-0"]["slurm"]

    full_sandbox.admin.create(
        "/api/v1/nodes",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "nowhere",
                "labels": {names.HYBRID_NODE_LABEL: "true"},
            },
        },
    )
    try:
        wait_until(lambda: run("nodes").exit_code == 2, 10, sandbox=full_sandbox)
        assert "labelled, but Slurm has no such node" in run("nodes").stdout
    finally:
        full_sandbox.admin.delete("/api/v1/nodes/nowhere")


def test_the_doctor_knows_how_a_qos_is_preempted(full_sandbox: Sandbox, run: Run) -> None:
    add = ("sacctmgr", "-i", "add", "qos", "patient")
    full_sandbox.run(*add, "GraceTime=60", "PreemptMode=suspend")
    try:
        told = json.loads(run("doctor", "-o", "json").stdout)
    finally:
        full_sandbox.run("sacctmgr", "-i", "delete", "qos", "patient")

    found = {each["check"]: each for each in told}
    assert ("warning", "fault") == (
        found["GraceTime"]["verdict"],
        found["PreemptMode"]["verdict"],
    )
    assert "QOS patient has GraceTime=60" in found["GraceTime"]["found"]
    assert "QOS patient has PreemptMode=SUSPEND" in found["PreemptMode"]["found"]


def at_the_shell(worlds: Worlds, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `kubectl slurm …` as its own process; its modules are the end of standard error."""
    return subprocess.run(
        [sys.executable, "-c", _SHOW_MODULES, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **worlds.sandbox.env},
    )
