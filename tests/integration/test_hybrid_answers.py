"""What each answer to `nodes.hybrid` does on a machine with a real slurmd, and what no answer does."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

from bridge.domain.nodes import state as node_state
from bridge.escrow.questions import LEASE
from sandbox import chart, escrow, services
from sandbox.options import Options
from slurmruntime.values import names
from tests.integration.machines import PATIENCE_S, Machine
from tests.integration.native_jobs import native, reason, state
from tests.integration.replicas import is_ready
from tests.integration.worlds import Worlds, played
from tests.servers import fresh_namespace, running_sandbox, wait_until

_ROOT = Path(__file__).parents[2]
_CPUS = 8
_STOPS_S = 8.0
WHOLE = {"slurmjob.slinky.slurm.net/exclusive": "true"}
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{names.RELEASE_NAMESPACE}/leases"

pytestmark = pytest.mark.skipif(
    os.getuid() != 0,
    reason="NOT RUN: a real slurmd needs root (a /run of its own, jobs as other users); CI runs this as root",
)


@pytest.fixture(scope="module")
def hybrid() -> Iterator[Machine]:
    """The node with a slurmd, none besides, and slurmctld's script."""
    with running_sandbox(Options(hybrid=True, escrow=True, nodes=0, node_cpus=_CPUS)) as sandbox:
        machine = Machine(sandbox, sandbox.instance.options.hybrid_name, sandbox)
        machine.await_in_service()
        yield machine


@pytest.fixture
def worlds(hybrid: Machine) -> Iterator[Worlds]:
    with fresh_namespace(hybrid.sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(hybrid.sandbox, name)
        yield worlds
        worlds.clear()


@contextmanager
def answered(hybrid: Machine, rule: str) -> Iterator[None]:
    """In place of the sandbox's own, extender and controllers of an administrator who has answered otherwise."""
    sandbox, instance = hybrid.sandbox, hybrid.sandbox.instance
    escrow.configure(instance, URLS="")
    processes = []
    for program in escrow.PROGRAMS:
        config = instance.bridge / program / "config.yaml"
        other = config.with_name("other.yaml")
        settings = {**yaml.safe_load(config.read_text()), "nodes": {"hybrid": rule}}
        other.write_text(yaml.safe_dump(settings))
        sandbox.stop(program)
        with instance.log(program).open("ab") as log:
            command = (
                *services.command(instance.options, program),
                "--config",
                str(other),
                *chart.arguments(program),
            )
            processes.append(subprocess.Popen(command, cwd=_ROOT, stdout=log, stderr=log))
    try:
        for program in escrow.PROGRAMS:
            health = instance.url(f"{program}-health")
            wait_until(partial(is_ready, health), PATIENCE_S, sandbox=sandbox)
        yield
    finally:
        for process in processes:
            process.terminate()
            process.wait()
        for program in escrow.PROGRAMS:
            sandbox.start(program)
        escrow.configure(instance)


def test_without_an_answer_no_new_pod_gets_there_and_each_side_says_why(
    hybrid: Machine, worlds: Worlds
) -> None:
    worlds.submit("before")
    worlds.await_phase("before", "Running")

    with answered(hybrid, ""):
        says_why(hybrid, worlds)
    worlds.await_phase("after", "Running")
    hybrid.await_in_service()


def says_why(hybrid: Machine, worlds: Worlds) -> None:
    assert "nodes.hybrid does not say" in hybrid.await_condition("NoPods")[1]
    uid = worlds.submit("after")
    assert "nodes.hybrid does not say" in worlds.await_event("after", "SubmitRefused")
    assert [] == worlds.jobs(uid)
    native_job = native(hybrid, 1, "true")
    wait_until(lambda: state(hybrid, native_job) == "COMPLETED", PATIENCE_S, sandbox=hybrid.sandbox)
    before = worlds.pod("before")
    assert before is not None
    assert "Running" == before["status"]["phase"]


def test_overlap_is_accepted_where_an_administrator_says_so(
    hybrid: Machine, worlds: Worlds
) -> None:
    with answered(hybrid, "acceptOverlap"):
        worlds.submit("any")
        worlds.await_phase("any", "Running")


def test_escrow_counts_only_while_the_script_asks(hybrid: Machine, worlds: Worlds) -> None:
    worlds.submit("asked")
    worlds.await_phase("asked", "Running")

    escrow.configure(hybrid.sandbox.instance, URLS="")
    hybrid.sandbox.admin.delete(f"{LEASES}/{LEASE}")
    hybrid.sandbox.restart("extender")
    worlds.submit("unasked")
    assert "script has not asked" in worlds.await_event("unasked", "NodeMisfit")
    unasked = worlds.pod("unasked")
    assert unasked is not None
    assert "Pending" == unasked["status"]["phase"]

    escrow.configure(hybrid.sandbox.instance)
    worlds.await_phase("unasked", "Running")


def test_native_jobs_and_pods_have_the_machine_in_turns(hybrid: Machine, worlds: Worlds) -> None:
    """However the pod's job ends, no native job begins before its last container has stopped."""
    with answered(hybrid, "alternate"):
        they_take_turns(hybrid, worlds)


def they_take_turns(hybrid: Machine, worlds: Worlds) -> None:
    worlds.submit("shares")
    assert "exclusive" in worlds.await_event("shares", "SubmitRefused")
    worlds.delete("shares")

    first = native(hybrid, 1, "sleep 5")
    wait_until(lambda: state(hybrid, first) == "RUNNING", PATIENCE_S, sandbox=hybrid.sandbox)
    uid = worlds.submit("whole", annotations={**WHOLE, **played(stop_seconds=_STOPS_S)})
    job = worlds.await_live(uid, lambda job: job.state == "PENDING")
    assert "RUNNING" == state(hybrid, first)
    worlds.await_phase("whole", "Running")
    assert "COMPLETED" == state(hybrid, first)
    drain = hybrid.await_in_slurm(lambda node: "DRAIN" in node["State"])
    assert node_state.TAKEN in drain["Reason"]
    wait_until(
        lambda: "native jobs wait" in hybrid.condition()[2], PATIENCE_S, sandbox=hybrid.sandbox
    )

    second = native(hybrid, 1, "true")
    worlds.scontrol("update", f"JobId={second}", "Priority=4000000000")
    hybrid.slurm.run("scancel", str(job.id))
    seen: set[str] = set()

    def gone() -> bool:
        before = state(hybrid, second)
        pod = worlds.pod("whole")
        if pod is not None:
            seen.add(before)
        return pod is None

    wait_until(gone, PATIENCE_S, sandbox=hybrid.sandbox)
    assert {"PENDING"} == seen, reason(hybrid, second)
    wait_until(lambda: state(hybrid, second) == "COMPLETED", PATIENCE_S, sandbox=hybrid.sandbox)
    hybrid.await_in_service()
