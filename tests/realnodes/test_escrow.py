"""A real kubelet and a real slurmd on one node, and slurmctld's scripts between them: no batch job runs beside containers of ended jobs.

Pods and jobs write into one file of the node, in the order in which things happen there.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox import escrow
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.realnodes.containers import STARTS_S, Containers
from tests.servers import fresh_namespace, running_sandbox, wait_until

pytestmark = pytest.mark.real_all

NODE = "real-0"
FOLDER = "/var/lib/kubelet"
OPTIONS = Options(hybrid=True, escrow=True, accounting=True, nodes=0, plain_nodes=0, real_nodes=1)
ONE_CPU = {"cpu": "1", "memory": "64Mi"}
STUBBORN = (
    "trap 'echo told >> /host/{log}; until [ -e /host/{log}.over ]; do sleep 0.1; done;"
    " echo dead >> /host/{log}; exit 0' TERM; echo runs >> /host/{log}; while :; do sleep 0.1; done"
)
"""Told to end, a container goes on until the test lets it end."""
PATIENT = {"DEADLINE_S": 600}
GRACE_S = 600


@pytest.fixture(scope="module")
def hybrid(able: None) -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as sandbox:
        yield sandbox


@pytest.fixture
def containers(hybrid: Sandbox) -> Iterator[Containers]:
    """Of a namespace, whose name the log has; no container outlives its test."""
    escrow.configure(hybrid.instance, **PATIENT)
    with fresh_namespace(hybrid, labels={names.ENABLED_LABEL: "true"}) as namespace:
        containers = Containers(hybrid, namespace)
        hybrid.on_node(NODE, "touch", f"{FOLDER}/{namespace}")
        yield containers
        let_end(containers)
        pods = f"/api/v1/namespaces/{namespace}/pods"
        hybrid.admin.delete(pods)
        wait_until(lambda: not hybrid.admin.get(pods)["items"], STARTS_S, sandbox=hybrid)


def stubborn(containers: Containers, name: str) -> str:
    """A container that runs, and its job."""
    create_stubborn(containers, name)
    containers.runs(name)
    return containers.job_of(name)


def create_stubborn(containers: Containers, name: str) -> None:
    containers.create(
        name,
        STUBBORN.format(log=containers.namespace),
        limits=ONE_CPU,
        host_folder=FOLDER,
        terminationGracePeriodSeconds=GRACE_S,
    )


def let_end(containers: Containers) -> None:
    containers.sandbox.on_node(NODE, "touch", f"{FOLDER}/{containers.namespace}.over")


def native(containers: Containers, cpus: int, word: str = "native", *options: str) -> str:
    """A batch job of root's that writes a word."""
    shape = ("--parsable", "--chdir=/", f"--cpus-per-task={cpus}", "--mem=64", *options)
    script = f"--wrap=echo {word} >> {FOLDER}/{containers.namespace}"
    return containers.sandbox.run("sbatch", *shape, script).strip()


def preempting(containers: Containers, cpus: int) -> str:
    """A batch job of root's that ends all others: their pods have their whole grace period, as nobody cancelled them."""
    qos = ("Preempt=normal", "Priority=1000")
    containers.sandbox.run("sacctmgr", "-i", "add", "qos", "urgent", *qos)
    containers.sandbox.run("sacctmgr", "-i", "modify", "user", "root", "set", "qos+=urgent")
    return native(containers, cpus, "native", "--qos=urgent")


def cpus(sandbox: Sandbox) -> int:
    return int(sandbox.admin.get(f"/api/v1/nodes/{NODE}")["status"]["capacity"]["cpu"])


def happened(containers: Containers) -> list[str]:
    return containers.sandbox.on_node(NODE, "cat", f"{FOLDER}/{containers.namespace}").split()


def state(sandbox: Sandbox, job: str) -> str:
    return sandbox.run("squeue", "-h", "--states=all", "-o", "%T", "-j", job).strip()


def completed(sandbox: Sandbox, job: str) -> None:
    wait_until(lambda: state(sandbox, job) == "COMPLETED", STARTS_S, sandbox=sandbox)


def was_told_to_wait(sandbox: Sandbox, job: str) -> bool:
    lines = sandbox.instance.log(escrow.PROGRAMS[0]).read_text().splitlines()
    of_it = re.compile(rf'"job_id": *{job}\b')
    return any("escrow.waits" in line and of_it.search(line) for line in lines)


def waits_for(containers: Containers, job: str, *, told: int = 1) -> None:
    """Wait until the job has its cores and the containers know that they are to end."""
    wait_until(
        lambda: state(containers.sandbox, job) == "CONFIGURING",
        STARTS_S,
        sandbox=containers.sandbox,
    )
    wait_until(
        lambda: happened(containers).count("told") == told, STARTS_S, sandbox=containers.sandbox
    )


@pytest.mark.parametrize("repeat", range(3))
def test_a_batch_job_never_starts_before_the_last_container_is_dead(
    hybrid: Sandbox, containers: Containers, repeat: int
) -> None:
    first = stubborn(containers, "first")
    job = native(containers, cpus(hybrid))
    hybrid.run("scancel", first)
    waits_for(containers, job)
    let_end(containers)
    completed(hybrid, job)

    assert ["runs", "told", "dead", "native"] == happened(containers)


def test_it_waits_for_the_last_of_several(hybrid: Sandbox, containers: Containers) -> None:
    if cpus(hybrid) == 1:
        pytest.skip("NOT RUN: this machine has one processor")
    jobs = [stubborn(containers, name) for name in ("one", "two")]
    job = native(containers, cpus(hybrid))
    hybrid.run("scancel", *jobs)
    waits_for(containers, job, told=2)
    let_end(containers)
    completed(hybrid, job)

    assert ["told", "told", "dead", "dead", "native"] == happened(containers)[2:]


def test_a_killed_kubelet_does_not_let_it_go(hybrid: Sandbox, containers: Containers) -> None:
    """The container lives on without it, and nobody knows how it does."""
    first = stubborn(containers, "first")
    hybrid.hold_daemon(NODE, "kubelet", held=True)
    try:
        job = native(containers, cpus(hybrid))
        hybrid.run("scancel", first)
        waits_for(containers, job, told=0)
        wait_until(
            lambda: "deletionTimestamp" in containers.get("first")["metadata"],
            STARTS_S,
            sandbox=hybrid,
        )
        assert "CONFIGURING" == state(hybrid, job)
    finally:
        hybrid.hold_daemon(NODE, "kubelet", held=False)
    let_end(containers)
    completed(hybrid, job)

    assert ["runs", "told", "dead", "native"] == happened(containers)


def test_controllers_that_are_killed_meanwhile_let_nobody_go(
    hybrid: Sandbox, containers: Containers
) -> None:
    """Not even if both are away for longer than the script waits for a first answer."""
    escrow.configure(hybrid.instance, **PATIENT, AWAY_S=2)
    stubborn(containers, "first")
    job = preempting(containers, cpus(hybrid))
    waits_for(containers, job)
    wait_until(lambda: was_told_to_wait(hybrid, job), STARTS_S, sandbox=hybrid)
    for program in escrow.PROGRAMS:
        hybrid.restart(program, signal="KILL", wait=False)
    for program in reversed(escrow.PROGRAMS):
        hybrid.restart(program, signal="KILL")
    assert "CONFIGURING" == state(hybrid, job)
    let_end(containers)
    completed(hybrid, job)

    assert ["runs", "told", "dead", "native"] == happened(containers)


def test_a_pod_whose_job_ends_while_it_is_given_its_node_never_starts(
    hybrid: Sandbox, containers: Containers
) -> None:
    """The next job may have been let go meanwhile: nobody could see the pod there."""
    hybrid.pause("controllers")
    hybrid.pause("bridge-scheduler")
    try:
        create_stubborn(containers, "first")
        wait_until(lambda: names.NODE_ANNOTATION in notes_of(containers), STARTS_S, sandbox=hybrid)
        hybrid.run("scancel", containers.job_of("first"))
        hybrid.resume("bridge-scheduler")
        wait_until(lambda: "no longer has" in unbound(containers), STARTS_S, sandbox=hybrid)
        assert "nodeName" not in containers.get("first")["spec"]
    finally:
        hybrid.resume("bridge-scheduler")
        hybrid.resume("controllers")
    completed(hybrid, native(containers, cpus(hybrid)))

    assert ["native"] == happened(containers)


def notes_of(containers: Containers) -> Mapping[str, str]:
    notes: Mapping[str, str] = containers.get("first")["metadata"].get("annotations", {})
    return notes


def unbound(containers: Containers) -> str:
    """Why kube-scheduler could not bind it."""
    conditions = containers.get("first")["status"].get("conditions", ())
    return "".join(condition.get("message", "") for condition in conditions)


def test_a_batch_job_beside_a_pod_whose_job_runs_does_not_wait(
    hybrid: Sandbox, containers: Containers
) -> None:
    if cpus(hybrid) == 1:
        pytest.skip("NOT RUN: this machine has one processor")
    stubborn(containers, "first")
    completed(hybrid, native(containers, 1))

    assert ["runs", "native"] == happened(containers)


def test_a_batch_job_that_is_cancelled_while_it_waits_never_runs(
    hybrid: Sandbox, containers: Containers
) -> None:
    first = stubborn(containers, "first")
    job = native(containers, cpus(hybrid))
    hybrid.run("scancel", first)
    waits_for(containers, job)
    hybrid.run("scancel", job)
    let_end(containers)
    wait_until(lambda: "dead" in happened(containers), STARTS_S, sandbox=hybrid)
    completed(hybrid, native(containers, 1, "later"))

    assert ["runs", "told", "dead", "later"] == happened(containers)


@pytest.mark.parametrize("trouble", ["away", "hanging", "wrong token", "deadline"])
def test_the_job_starts_at_last_whatever_is_wrong_with_us(
    hybrid: Sandbox, containers: Containers, trouble: str
) -> None:
    """Then there is no guarantee, and no job is lost or requeued."""
    first = stubborn(containers, "first")
    job = native(containers, cpus(hybrid))
    with in_trouble(hybrid, trouble):
        hybrid.run("scancel", first)
        completed(hybrid, job)
        assert "dead" not in happened(containers)
        assert ("COMPLETED", "0:0") == containers.accounted_job(job)
    told = hybrid.instance.log("slurmctld").read_text()
    assert f"prolog_running_decr: Configuration for JobId={job} is complete" in told
    assert f"prolog_slurmctld JobId={job} prolog exit status" not in told


@contextmanager
def in_trouble(hybrid: Sandbox, trouble: str) -> Iterator[None]:
    """Let nobody answer the script as it should be."""
    short = {"AWAY_S": 3, "LONGEST_S": 3}
    escrow.configure(hybrid.instance, **({"DEADLINE_S": 3} if trouble == "deadline" else short))
    token = escrow.token_file(hybrid.instance)
    kept = token.read_text()
    try:
        if trouble == "wrong token":
            token.write_text("e" * 64)
        for program in escrow.PROGRAMS:
            if trouble == "away":
                hybrid.stop(program)
            if trouble == "hanging":
                hybrid.pause(program)
        yield
    finally:
        token.write_text(kept)
        for program in escrow.PROGRAMS:
            if trouble == "away":
                hybrid.start(program)
            if trouble == "hanging":
                hybrid.resume(program)


def test_it_runs_a_sites_own_scripts_too(hybrid: Sandbox, containers: Containers) -> None:
    own = escrow.folder(hybrid.instance) / "own"
    mark = Path(hybrid.instance.slurm) / "run" / "own"
    own.write_text(f'#!/bin/sh\necho "$SLURM_SCRIPT_CONTEXT $SLURM_JOB_ID" >> {mark}\n')
    own.chmod(0o755)
    escrow.configure(hybrid.instance, **PATIENT, PROLOGS=own, EPILOGS=own)
    first = stubborn(containers, "first")
    job = native(containers, cpus(hybrid))
    hybrid.run("scancel", first)
    waits_for(containers, job)
    let_end(containers)
    completed(hybrid, job)
    assert ["runs", "told", "dead", "native"] == happened(containers)
    wait_until(lambda: f"epilog_slurmctld {job}" in mark.read_text(), STARTS_S, sandbox=hybrid)
    assert f"prolog_slurmctld {job}" in mark.read_text()
