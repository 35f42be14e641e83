"""A worker of a Slurm in pods as a bridged node: its Slurm gives the node to batch jobs and to ordinary pods alike."""

import copy
import json
from collections.abc import Iterator

import pytest

from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.image.slurm import SlurmImage
from sandbox.options import Options
from slurmruntime.values import names
from tests.realnodes import slurm_objects
from tests.realnodes.containers import Containers
from tests.servers import fresh_namespace, running_sandbox, wait_until

pytestmark = pytest.mark.real_all

NAMESPACE, WORKER, CPUS = "slurm", "workers-0", 2
STARTS_S = 180.0
OPTIONS = Options(
    operator=True,
    nodes=0,
    plain_nodes=0,
    real_nodes=2,
    real_memory_mib=4096,
    dns=True,
    values=(
        "config.slurm.controller=slurm/site",
        "config.slurm.partition=workers",
        "config.slurm.user=games",
        "config.slurm.group=games",
    ),
)
FREE_FOR_PODS = {
    "limits": {"cpu": str(CPUS), "memory": "2Gi"},
    "requests": {"cpu": "0", "memory": "0"},
}
"""What a worker may use is Slurm's to give to jobs and to pods; what it requests, no pod could have."""


@pytest.fixture(scope="module")
def one(slurm_images: tuple[SlurmImage, ...]) -> Iterator[Sandbox]:
    """The Slurm in pods is there, and the bridge has its worker's node."""
    with running_sandbox(OPTIONS) as sandbox:
        for node in ("real-0", "real-1"):
            sandbox.kubectl("label", "node", node, f"{names.EXTERNAL_NODE_LABEL}-")
        objects = copy.deepcopy(slurm_objects.OBJECTS)
        for manifest in objects:
            manifest.get("spec", {}).pop("accountingRef", None)
        objects[-1]["spec"] |= {
            "replicas": 1,
            "slurmd": {"resources": FREE_FOR_PODS},
            "template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "real-1"}}},
        }
        # The daemons ask for CPU, of which a filler would keep a whole one on the worker's node.
        for each in objects:
            if each["kind"] in ("Controller", "RestApi"):
                elsewhere = {"nodeSelector": {"kubernetes.io/hostname": "real-0"}}
                each["spec"]["template"] = {"spec": elsewhere}
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=listed)
        wait_until(
            lambda: in_slurm(sandbox, "sinfo", "-h", "-o", "%D %t") == "1 idle\n",
            STARTS_S,
            sandbox=sandbox,
        )
        labels = (f"{names.SLURM_NODE_NAME_LABEL}={WORKER}", f"{names.HYBRID_NODE_LABEL}=true")
        sandbox.kubectl("label", "node", "real-1", *labels)
        wait_until(
            lambda: "slurm-bridge" in in_slurm(sandbox, "sinfo", "-h", "-o", "%f"),
            STARTS_S,
            sandbox=sandbox,
        )
        yield sandbox


def in_slurm(sandbox: Sandbox, *command: str) -> str:
    """Run a command beside slurmctld; "" while it cannot run."""
    pod = ("exec", "site-controller-0", "-c", "slurmctld", "--")
    try:
        return sandbox.kubectl("-n", NAMESPACE, *pod, *command)
    except SandboxError:
        return ""


def batch(sandbox: Sandbox, cpus: int) -> str:
    """Submit a batch job that runs until it is cancelled; return its id."""
    shape = ("--parsable", "--output=/dev/null", f"--cpus-per-task={cpus}", "--mem=64")
    return in_slurm(sandbox, "sbatch", *shape, "--wrap=sleep 600").strip()


def test_a_batch_job_and_a_pod_share_a_workers_node_and_no_more_than_slurm_gives(
    one: Sandbox,
) -> None:
    def state(job: str) -> str:
        return in_slurm(one, "squeue", "-h", "-o", "%T %C %N", "-j", job).strip()

    with fresh_namespace(one, labels={names.ENABLED_LABEL: "true"}) as namespace:
        containers = Containers(one, namespace)
        containers.create("pod", "sleep 600", limits={"cpu": "1", "memory": "64Mi"})
        pod = containers.runs("pod")
        assert "real-1" == pod["spec"]["nodeName"]
        of_pod = containers.job_of("pod")
        assert f"RUNNING 1 {WORKER}" == state(of_pod)

        beside = batch(one, CPUS - 1)
        wait_until(lambda: state(beside) == f"RUNNING 1 {WORKER}", STARTS_S, sandbox=one)
        too_much = batch(one, 1)
        wait_until(lambda: state(too_much).startswith("PENDING"), STARTS_S, sandbox=one)
        containers.create("late", "exit 0", limits={"cpu": "1", "memory": "64Mi"})
        in_slurm(one, "scancel", too_much)
        assert not containers.get("late")["spec"].get("nodeName")

        in_slurm(one, "scancel", beside)
        assert "Succeeded" == containers.ends("late")["status"]["phase"]
        assert f"RUNNING 1 {WORKER}" == state(of_pod)
        one.admin.delete(f"/api/v1/namespaces/{namespace}/pods/pod")
        wait_until(lambda: not state(of_pod).startswith("RUNNING"), STARTS_S, sandbox=one)
