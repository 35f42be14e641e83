"""A real kubelet and a real slurmd on one node: containers and batch jobs share it, and nobody is promised what is not there."""

from collections.abc import Iterator

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.realnodes.containers import STARTS_S, Containers
from tests.servers import fresh_namespace, running_sandbox, wait_until

pytestmark = pytest.mark.real_all

NODE = "real-0"
FLAGS = "/var/lib/kubelet"
"""A folder of the node, where a file tells both to go on."""
OPTIONS = Options(hybrid=True, accounting=True, nodes=0, plain_nodes=0, real_nodes=1)
ONE_CPU = {"cpu": "1", "memory": "64Mi"}


@pytest.fixture(scope="module")
def hybrid(able: None) -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as sandbox:
        yield sandbox


def native(sandbox: Sandbox, cpus: int, script: str) -> str:
    """Submit a batch job of root's and return its id."""
    shape = ("--parsable", "--chdir=/", f"--cpus-per-task={cpus}", "--mem=64")
    return sandbox.run("sbatch", *shape, f"--wrap={script}").strip()


def test_containers_and_batch_jobs_share_a_real_machine(hybrid: Sandbox) -> None:
    cpus = int(hybrid.admin.get(f"/api/v1/nodes/{NODE}")["status"]["capacity"]["cpu"])
    with fresh_namespace(hybrid, labels={names.ENABLED_LABEL: "true"}) as namespace:
        containers = Containers(hybrid, namespace)
        containers.create(
            "pod",
            "until [ -e /host/go ]; do sleep 0.2; done; exit 3",
            limits=ONE_CPU,
            host_folder=FLAGS,
        )
        containers.runs("pod")
        beside = native(hybrid, cpus - 1, f"until [ -e {FLAGS}/go ]; do sleep 0.2; done; exit 4")

        def state(job: str) -> str:
            return hybrid.run("squeue", "-h", "-o", "%T", "-j", job).strip()

        wait_until(lambda: state(beside) == "RUNNING", STARTS_S, sandbox=hybrid)
        assert hybrid.on_node(NODE, "pgrep", "-f", "slurm_script").strip()
        all_of_it = native(hybrid, cpus, "exit 5")
        wait_until(lambda: state(all_of_it) == "PENDING", STARTS_S, sandbox=hybrid)
        hybrid.on_node(NODE, "touch", f"{FLAGS}/go")

        assert NODE == containers.ends("pod")["spec"]["nodeName"]
        assert ("FAILED", "3:0") == containers.accounted("pod")
        assert ("FAILED", "4:0") == containers.accounted_job(beside)
        assert ("FAILED", "5:0") == containers.accounted_job(all_of_it)


def test_a_reconfigure_of_slurm_keeps_no_pod_waiting(hybrid: Sandbox) -> None:
    """Slurmctld forgets the features by which we know a node with a slurmd; the controllers set them again."""
    with fresh_namespace(hybrid, labels={names.ENABLED_LABEL: "true"}) as namespace:
        containers = Containers(hybrid, namespace)
        for number in range(3):
            hybrid.run("scontrol", "reconfigure")
            containers.create(f"pod-{number}", "exit 0", limits=ONE_CPU)
            assert "Succeeded" == containers.ends(f"pod-{number}")["status"]["phase"]
