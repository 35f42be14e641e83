"""A real kubelet and a real slurmd on one node, and slurmctld's scripts between them: no batch job runs beside containers of ended jobs.

Pods and jobs write into one file of the node, in the order in which things happen there.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.domain import names
from sandbox import escrow
from sandbox.client import Sandbox
from sandbox.options import Options
from tests.realnodes.containers import STARTS_S, Containers
from tests.servers import fresh_namespace, running_sandbox, wait_until

pytestmark = pytest.mark.real_all

NODE = "real-0"
FOLDER = "/var/lib/kubelet"
OPTIONS = Options(hybrid=True, escrow=True, accounting=True, nodes=0, plain_nodes=0, real_nodes=1)
ONE_CPU = {"cpu": "1", "memory": "64Mi"}
STUBBORN = (
    "trap 'echo told >> /host/log; sleep {stops_s}; echo dead >> /host/log; exit 0' TERM;"
    " echo runs >> /host/log; while :; do sleep 0.1; done"
)
"""Told to end, a container takes its time."""


@pytest.fixture(scope="module")
def hybrid(able: None) -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as sandbox:
        yield sandbox


@pytest.fixture
def containers(hybrid: Sandbox) -> Iterator[Containers]:
    hybrid.on_node(NODE, "sh", "-c", f": > {FOLDER}/log")
    escrow.configure(hybrid.instance)
    with fresh_namespace(hybrid, labels={names.ENABLED_LABEL: "true"}) as namespace:
        yield Containers(hybrid, namespace)


def stubborn(containers: Containers, name: str, *, stops_s: int) -> str:
    """A container that runs, and takes that long to end; its job."""
    containers.create(
        name,
        STUBBORN.format(stops_s=stops_s),
        limits=ONE_CPU,
        host_folder=FOLDER,
        terminationGracePeriodSeconds=stops_s + 30,
    )
    containers.runs(name)
    return containers.job_of(name)


def native(sandbox: Sandbox, cpus: int, word: str) -> str:
    """A batch job of root's that writes a word."""
    shape = ("--parsable", "--chdir=/", f"--cpus-per-task={cpus}", "--mem=64")
    return sandbox.run("sbatch", *shape, f"--wrap=echo {word} >> {FOLDER}/log").strip()


def cpus(sandbox: Sandbox) -> int:
    return int(sandbox.admin.get(f"/api/v1/nodes/{NODE}")["status"]["capacity"]["cpu"])


def happened(sandbox: Sandbox) -> list[str]:
    return sandbox.on_node(NODE, "cat", f"{FOLDER}/log").split()


def state(sandbox: Sandbox, job: str) -> str:
    return sandbox.run("squeue", "-h", "--states=all", "-o", "%T", "-j", job).strip()


def completed(sandbox: Sandbox, job: str) -> None:
    wait_until(lambda: state(sandbox, job) == "COMPLETED", STARTS_S, sandbox=sandbox)


def waits_before_launch(sandbox: Sandbox, job: str) -> None:
    wait_until(lambda: state(sandbox, job) == "CONFIGURING", STARTS_S, sandbox=sandbox)


@pytest.mark.parametrize("stops_s", [1, 3, 6])
def test_a_batch_job_never_starts_before_the_last_container_is_dead(
    hybrid: Sandbox, containers: Containers, stops_s: int
) -> None:
    first = stubborn(containers, "first", stops_s=stops_s)
    job = native(hybrid, cpus(hybrid), "native")
    hybrid.run("scancel", first)
    completed(hybrid, job)

    assert ["runs", "told", "dead", "native"] == happened(hybrid)


def test_it_waits_for_the_slowest_of_several(hybrid: Sandbox, containers: Containers) -> None:
    if cpus(hybrid) < 2:
        pytest.skip("NOT RUN: this machine has one processor")
    jobs = [stubborn(containers, f"pod-{stops_s}", stops_s=stops_s) for stops_s in (1, 6)]
    native_job = native(hybrid, cpus(hybrid), "native")
    hybrid.run("scancel", *jobs)
    completed(hybrid, native_job)

    assert ["dead", "native"] == happened(hybrid)[-2:]
    assert 2 == happened(hybrid).count("dead")


def test_a_killed_kubelet_does_not_let_it_go(hybrid: Sandbox, containers: Containers) -> None:
    """The container lives on without it, and nobody knows how it does."""
    first = stubborn(containers, "first", stops_s=2)
    hybrid.hold_daemon(NODE, "kubelet", held=True)
    job = native(hybrid, cpus(hybrid), "native")
    hybrid.run("scancel", first)
    waits_before_launch(hybrid, job)
    wait_until(
        lambda: "deletionTimestamp" in containers.get("first")["metadata"],
        STARTS_S,
        sandbox=hybrid,
    )
    assert "CONFIGURING" == state(hybrid, job)
    hybrid.hold_daemon(NODE, "kubelet", held=False)
    completed(hybrid, job)

    assert ["runs", "told", "dead", "native"] == happened(hybrid)


def test_a_batch_job_beside_a_pod_whose_job_runs_does_not_wait(
    hybrid: Sandbox, containers: Containers
) -> None:
    if cpus(hybrid) < 2:
        pytest.skip("NOT RUN: this machine has one processor")
    stubborn(containers, "first", stops_s=1)
    completed(hybrid, native(hybrid, 1, "native"))

    assert ["runs", "native"] == happened(hybrid)


def test_a_batch_job_that_is_cancelled_while_it_waits_never_runs(
    hybrid: Sandbox, containers: Containers
) -> None:
    first = stubborn(containers, "first", stops_s=4)
    job = native(hybrid, cpus(hybrid), "native")
    hybrid.run("scancel", first)
    waits_before_launch(hybrid, job)
    hybrid.run("scancel", job)
    wait_until(lambda: "dead" in happened(hybrid), STARTS_S, sandbox=hybrid)
    completed(hybrid, native(hybrid, 1, "later"))

    assert ["runs", "told", "dead", "later"] == happened(hybrid)


@pytest.mark.parametrize("trouble", ["away", "hanging", "wrong token", "deadline"])
def test_the_job_starts_at_last_whatever_is_wrong_with_us(
    hybrid: Sandbox, containers: Containers, trouble: str
) -> None:
    """Then there is no guarantee, and no job is lost or requeued."""
    short = {"AWAY_S": 3, "LONGEST_S": 3}
    escrow.configure(hybrid.instance, **({"DEADLINE_S": 3} if trouble == "deadline" else short))
    first = stubborn(containers, "first", stops_s=60)
    job = native(hybrid, cpus(hybrid), "native")
    token = escrow.token_file(hybrid.instance)
    kept = token.read_text()
    try:
        match trouble:
            case "wrong token":
                token.write_text("e" * 64)
            case "away":
                for program in escrow.PROGRAMS:
                    hybrid.stop(program)
            case "hanging":
                for program in escrow.PROGRAMS:
                    hybrid.pause(program)
            case _:
                pass
        hybrid.run("scancel", first)
        waits_before_launch(hybrid, job)
        completed(hybrid, job)
        assert "dead" not in happened(hybrid)
        assert ("COMPLETED", "0:0") == containers.accounted_job(job)
    finally:
        token.write_text(kept)
        for program in escrow.PROGRAMS:
            if trouble == "away":
                hybrid.start(program)
            if trouble == "hanging":
                hybrid.resume(program)
    restarts = hybrid.run("squeue", "-h", "--states=all", "-o", "%r", "-j", job).strip()
    assert "None" == restarts


def test_it_stands_beside_a_sites_own_scripts(hybrid: Sandbox, containers: Containers) -> None:
    """All of them run, in their order."""
    folder = escrow.folder(hybrid.instance)
    own = folder / "own"
    mark = Path(hybrid.instance.slurm) / "run" / "own"
    own.write_text(f'#!/bin/sh\necho "$SLURM_SCRIPT_CONTEXT $SLURM_JOB_ID" >> {mark}\n')
    own.chmod(0o755)
    conf = hybrid.slurm_conf
    before = conf.read_text()
    conf.write_text(f"{before}PrologSlurmctld={own}\nEpilogSlurmctld={own}\n")
    hybrid.run("scontrol", "reconfigure")
    try:
        first = stubborn(containers, "first", stops_s=3)
        job = native(hybrid, cpus(hybrid), "native")
        hybrid.run("scancel", first)
        completed(hybrid, job)
        assert ["runs", "told", "dead", "native"] == happened(hybrid)
        wait_until(lambda: f"epilog_slurmctld {job}" in mark.read_text(), STARTS_S, sandbox=hybrid)
        assert f"prolog_slurmctld {job}" in mark.read_text()
    finally:
        conf.write_text(before)
        hybrid.run("scontrol", "reconfigure")
    assert os.access(own, os.X_OK)
