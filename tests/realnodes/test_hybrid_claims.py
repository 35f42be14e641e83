"""Claims on a node with a slurmd: pods and native jobs get devices of one node, and never the same."""

from collections.abc import Iterator

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.realnodes import claimants as claimants_of
from tests.realnodes.claimants import GRES, PROFILE, Claimants
from tests.realnodes.containers import STARTS_S, Containers
from tests.servers import fresh_namespace, running_sandbox, wait_until

pytestmark = pytest.mark.real_all

NODE = "real-0"
DEVICES = 4
OPTIONS = Options(
    hybrid=True,
    accounting=True,
    nodes=0,
    plain_nodes=0,
    real_nodes=1,
    real_dra=DEVICES,
    settings=(PROFILE,),
)
LABELS = f"/api/v1/nodes/{NODE}"
FOLDER = "/var/lib/kubelet"
ALL = {f"device-{index:02}" for index in range(DEVICES)}


@pytest.fixture(scope="module")
def shared(able: None) -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as sandbox:
        claimants_of.create_class(sandbox)
        wait_until(
            lambda: claimants_of.is_offered(sandbox, NODE, DEVICES), STARTS_S, sandbox=sandbox
        )
        yield sandbox


@pytest.fixture
def claimants(shared: Sandbox) -> Iterator[Claimants]:
    with fresh_namespace(shared, labels={names.ENABLED_LABEL: "true"}) as namespace:
        found = Claimants(Containers(shared, namespace))
        claimants_of.create_templates(shared, namespace, DEVICES)
        yield found
        found.end()


def order(sandbox: Sandbox, known: str | None) -> None:
    """Vouch for the order of the node's devices, or no longer."""
    sandbox.admin.patch(LABELS, {"metadata": {"labels": {names.DEVICE_ORDER_LABEL: known}}})


def native(claimants: Claimants, devices: int) -> str:
    """A batch job that writes which devices slurmd gives it, and lasts."""
    shape = ("--parsable", "--chdir=/", "--cpus-per-task=1", "--mem=64")
    file = f"{FOLDER}/{claimants.pods.namespace}"
    script = f"--wrap=echo $SLURM_JOB_GPUS > {file}; exec sleep 600"
    job = claimants.sandbox.run("sbatch", *shape, f"--gres={GRES}:{devices}", script).strip()
    wait_until(lambda: told(claimants), STARTS_S, sandbox=claimants.sandbox)
    return job


def told(claimants: Claimants) -> set[str]:
    """The devices of the native job by slurmd's word; none until it runs."""
    file = f"{FOLDER}/{claimants.pods.namespace}"
    said = claimants.sandbox.on_node(NODE, "sh", "-c", f"cat {file} 2>/dev/null || true")
    return {f"device-{int(index):02}" for index in said.strip().split(",") if index}


def test_a_pod_and_a_native_job_never_have_the_same_device(
    shared: Sandbox, claimants: Claimants
) -> None:
    order(shared, "by-name")
    pods = claimants.pods
    job = native(claimants, 1)
    claimants.create("pod", "exec sleep 600", count=DEVICES - 1)
    pods.runs("pod")

    assert 1 == len(told(claimants))
    assert ALL - told(claimants) == claimants.inside("pod") == claimants.in_slurm("pod")

    # What the job had is the next pod's, and the other way round.
    shared.run("scancel", job)
    claimants.create("next", "exec sleep 600", count=1)
    pods.runs("next")
    assert told(claimants) == claimants.inside("next") == claimants.in_slurm("next")


def test_without_the_administrators_word_no_claim_is_placed_there(
    shared: Sandbox, claimants: Claimants
) -> None:
    order(shared, None)
    claimants.create("pod", "exec sleep 600", count=1)

    def said() -> str:
        conditions = claimants.pods.get("pod")["status"].get("conditions", [])
        found = (
            condition for condition in conditions if condition["type"] == names.ALLOCATED_CONDITION
        )
        return next((each["message"] for each in found), "")

    wait_until(lambda: f"{names.DEVICE_ORDER_LABEL}=by-name" in said(), STARTS_S, sandbox=shared)
    order(shared, "by-name")
    claimants.pods.runs("pod")
    assert claimants.in_slurm("pod") == claimants.inside("pod")
