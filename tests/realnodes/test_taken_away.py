"""Slurm takes a real container's node away: the pod is not to blame."""

import pytest

from sandbox.client import Sandbox
from tests.realnodes.containers import Containers
from tests.realnodes.disrupted import UNLESS_DISRUPTED

pytestmark = pytest.mark.real_all

NODE = "real-1"
URGENT = "urgent"


@pytest.fixture(scope="module")
def urgent(real: Sandbox) -> None:
    """A QOS whose jobs, root's here, preempt everybody else's."""
    real.run("sacctmgr", "-i", "add", "qos", URGENT, "Preempt=normal", "Priority=1000")
    real.run("sacctmgr", "-i", "modify", "user", "root", "set", f"qos+={URGENT}")


@pytest.mark.usefixtures("urgent")
def test_a_preempted_container_is_a_disruption_and_its_job_goes_on_afterwards(
    real: Sandbox, containers: Containers
) -> None:
    containers.create_job("work", "sleep 600", node=NODE, spec=UNLESS_DISRUPTED)
    first = containers.pod_of("work")
    containers.runs(first)
    preempted = containers.job_of(first)

    whole = ("--parsable", "--external", "--exclusive", f"--nodelist={NODE}", f"--qos={URGENT}")
    job = real.run("sbatch", *whole).strip()
    try:
        assert "PREEMPTED" == containers.accounted_job(preempted)[0]
        second = containers.pod_of("work", after=first)
        assert "RUNNING" in real.run("squeue", "-h", "-j", job, "-o", "%T")
    finally:
        real.run("scancel", job)
    containers.runs(second)
