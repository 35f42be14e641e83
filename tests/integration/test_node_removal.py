"""Slurm refuses every update of a job that names a node which is gone: so waiting placeholders forget it before it goes."""

from collections.abc import Iterator

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.integration.machines import PATIENCE_S, Machine, a_machine
from tests.integration.worlds import Worlds, is_gated
from tests.servers import wait_until

_LABELS = {names.EXTERNAL_NODE_LABEL: "true", "pool": "removal"}
_HELD = {f"{names.REQUEST_PREFIX}hold": "true"}


@pytest.fixture
def pair(full_sandbox: Sandbox) -> Iterator[tuple[Machine, Machine]]:
    """The two nodes that a pod with this selector may go to; its labels are not published, so the job excludes the others."""
    with (
        a_machine(full_sandbox, labels=_LABELS) as first,
        a_machine(full_sandbox, labels=_LABELS) as second,
    ):
        for machine in (first, second):
            machine.await_in_service()
        yield first, second
    for machine in (first, second):
        machine.await_not_in_slurm()


@pytest.fixture
def third(full_sandbox: Sandbox) -> Iterator[Machine]:
    """A node that such a pod may not go to."""
    with a_machine(full_sandbox, labels={names.EXTERNAL_NODE_LABEL: "true"}) as machine:
        machine.await_in_service()
        yield machine
    machine.await_not_in_slurm()


def test_a_waiting_job_forgets_a_node_that_leaves(
    pair: tuple[Machine, Machine], third: Machine, worlds: Worlds
) -> None:
    first, second = pair
    uid = worlds.submit("picky", annotations=_HELD, nodeSelector={"pool": "removal"})
    job = worlds.await_live(uid)
    before = excluded(worlds, job.id)
    assert third.name in before
    assert before.isdisjoint({first.name, second.name})

    for machine in (first, third):
        machine.label(None)
        machine.await_not_in_slurm()

    assert before - {third.name} == excluded(worlds, job.id)
    worlds.scontrol("update", f"jobid={job.id}", "comment=may be updated")
    worlds.scontrol("release", str(job.id))
    pod = worlds.await_phase("picky", "Running")
    assert second.name == pod["spec"]["nodeName"]


def test_a_waiting_job_that_has_no_other_node_is_submitted_again(
    pair: tuple[Machine, Machine], worlds: Worlds
) -> None:
    first, second = pair
    uid = worlds.submit("bound-to-it", annotations=_HELD, nodeSelector=first.selector)
    job = worlds.await_live(uid)

    first.label(None)
    first.await_not_in_slurm()
    pod = worlds.await_pod("bound-to-it", is_gated)
    assert "deletionTimestamp" not in pod["metadata"]

    first.label("true")
    again = worlds.await_live(uid, lambda found: found.id != job.id)
    worlds.scontrol("release", str(again.id))
    pod = worlds.await_phase("bound-to-it", "Running")
    assert (uid, first.name) == (pod["metadata"]["uid"], pod["spec"]["nodeName"])
    assert second.in_slurm()


def excluded(worlds: Worlds, job_id: int) -> set[str]:
    """The nodes that a job excludes."""
    line = worlds.scontrol("--oneliner", "show", "job", str(job_id))
    listed = line.partition("ExcNodeList=")[2].split()[0]
    return set(worlds.scontrol("show", "hostnames", listed).split())


def test_a_running_job_that_names_no_node_does_not_keep_one(
    pair: tuple[Machine, Machine], worlds: Worlds
) -> None:
    worlds.submit("anywhere")
    worlds.await_phase("anywhere", "Running")
    first, _ = pair
    first.label(None)

    wait_until(lambda: not first.in_slurm(), PATIENCE_S, sandbox=worlds.sandbox)
