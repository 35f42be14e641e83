"""slurm-operator on real kubelets: a Slurm of pods from three objects, and workers that leave only when they are idle."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridge.domain import names
from sandbox import assets
from sandbox.assets import AssetName
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.options import Options
from tests.realnodes import slurm_images
from tests.servers import running_sandbox, wait_until

pytestmark = pytest.mark.real_all

OPTIONS = Options(nodes=0, plain_nodes=0, real_nodes=2, real_memory_mib=4096, dns=True)
DEFINITIONS = Path(__file__).parents[2] / "deploy" / "operator" / "crds"
NAMESPACE = "slurm"
STARTS_S = 120.0
LEAVES_S = 120.0
JOB_S = 20
THIS_MACHINE = """\
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
"""
"""Its cgroups are of version 1, and containers have none mounted."""
OBJECTS: tuple[dict[str, Any], ...] = (
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "files"},
        "data": {"cgroup.conf": "CgroupPlugin=disabled\n"},
    },
    {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Controller",
        "metadata": {"name": "site"},
        "spec": {
            "slurmKeyRef": {"name": "site-auth-slurm", "key": "slurm.key"},
            "jwtKeyRef": {"name": "site-auth-jwt", "key": "jwt.key"},
            "persistence": {"enabled": False},
            "configFileRefs": [{"name": "files"}],
            "extraConf": THIS_MACHINE,
        },
    },
    {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "RestApi",
        "metadata": {"name": "site"},
        "spec": {"replicas": 1, "controllerRef": {"name": "site"}},
    },
    {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "NodeSet",
        "metadata": {"name": "workers"},
        "spec": {
            "replicas": 2,
            "controllerRef": {"name": "site"},
            "partition": {"enabled": True, "config": "Default=YES"},
        },
    },
)


@dataclass(frozen=True, slots=True)
class InPods:
    """A Slurm of pods."""

    sandbox: Sandbox

    def run(self, *command: str) -> str:
        """Run a command beside slurmctld; "" while there is none."""
        try:
            return self.sandbox.kubectl(
                "-n", NAMESPACE, "exec", "site-controller-0", "-c", "slurmctld", "--", *command
            )
        except SandboxError:
            return ""

    def condition(self, kind: str, name: str, wanted: str) -> tuple[str, str]:
        """Return status and message of an object's condition."""
        path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/{kind}/{name}"
        for each in self.sandbox.admin.get(path).get("status", {}).get("conditions", []):
            if each["type"] == wanted:
                return each["status"], each.get("message", "")
        return "", ""

    def drained(self) -> list[str]:
        """Return the workers that Slurm gives no more jobs."""
        lines = self.run("sinfo", "-h", "-N", "-o", "%N %T").splitlines()
        return [name for name, state in map(str.split, lines) if state.startswith("drain")]

    def state(self, job: str) -> str:
        """Return a job's state."""
        return self.run("squeue", "-h", "--states=all", "-j", job, "-o", "%T").strip()

    def workers(self) -> list[str]:
        """Return the names of the workers' pods."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        found = self.sandbox.admin.get(path, labelSelector="app.kubernetes.io/name=slurmd")
        return sorted(each["metadata"]["name"] for each in found["items"])


@pytest.fixture(scope="module")
def in_pods(able: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InPods]:
    """The objects are there, and the operator runs; nobody has waited for anything."""
    folder = tmp_path_factory.mktemp("operator")
    with assets.shown(sys.stderr) as report:
        found = assets.resolve_all((AssetName.SLURM, AssetName.NODE), report=report)
    with running_sandbox(OPTIONS) as sandbox, ExitStack() as ending:
        for name in ("real-0", "real-1"):
            sandbox.kubectl("label", "node", name, f"{names.EXTERNAL_NODE_LABEL}-")
        for archive in slurm_images.build(found[AssetName.SLURM], found[AssetName.NODE], folder):
            sandbox.load_image(archive)
        sandbox.kubectl("apply", "--server-side", "-f", str(DEFINITIONS))
        for definition in ("controllers", "nodesets", "restapis"):
            named = f"crd/{definition}.slinky.slurm.net"
            sandbox.kubectl("wait", "--for=condition=Established", named, "--timeout=30s")
        sandbox.kubectl("create", "namespace", NAMESPACE)
        listed = {"apiVersion": "v1", "kind": "List", "items": [*OBJECTS]}
        wait_until(lambda: applied(sandbox, listed), STARTS_S, sandbox=sandbox)
        port = free_port()
        in_pods = InPods(sandbox)
        ending.enter_context(
            running(sandbox, operator(sandbox, folder, port), folder / "operator.log")
        )
        wait_until(
            lambda: in_pods.condition("restapis", "site", "Ready")[0] == "True",
            STARTS_S,
            sandbox=sandbox,
        )
        forward = ("-n", NAMESPACE, "port-forward", "deployment/site-restapi", f"{port}:6820")
        kubectl = str(sandbox.instance.bin / "kubectl")
        ending.enter_context(running(sandbox, (kubectl, *forward), folder / "forward.log"))
        token = in_pods.run("scontrol", "token", "username=slurm").strip().partition("=")[2]
        (folder / "token").write_text(token)
        yield in_pods


def test_three_objects_are_a_slurm_whose_workers_leave_only_when_idle(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    wait_until(lambda: in_pods.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n", STARTS_S)
    assert ["workers-0", "workers-1"] == sorted(in_pods.run("srun", "-N2", "hostname").split())
    wait_until(
        lambda: in_pods.condition("nodesets", "workers", "SlurmKnown")[0] == "True",
        STARTS_S,
        sandbox=sandbox,
    )

    jobs = {name: submit(in_pods, name) for name in in_pods.workers()}
    wait_until(lambda: in_pods.run("squeue", "-h", "-o", "%t").split() == ["R", "R"], STARTS_S)
    sandbox.kubectl("-n", NAMESPACE, "scale", "nodeset/workers", "--replicas=1")
    (going,) = wait_until(in_pods.drained, LEAVES_S, sandbox=sandbox)
    assert {*jobs} == {*in_pods.workers()}

    wait_until(lambda: in_pods.workers() == sorted({*jobs} - {going}), LEAVES_S, sandbox=sandbox)
    wait_until(
        lambda: {"COMPLETED"} == {in_pods.state(job) for job in jobs.values()},
        LEAVES_S,
        sandbox=sandbox,
    )
    wait_until(
        lambda: in_pods.condition("nodesets", "workers", "Ready")[0] == "True",
        LEAVES_S,
        sandbox=sandbox,
    )


def test_kubectl_drain_waits_for_the_job_of_a_worker_and_then_ends(in_pods: InPods) -> None:
    """After the test above: one worker is left."""
    sandbox = in_pods.sandbox
    (worker,) = wait_until(in_pods.workers, LEAVES_S, sandbox=sandbox)
    where = f"/api/v1/namespaces/{NAMESPACE}/pods/{worker}"
    pod = sandbox.admin.get(where)
    kube_node, uid = pod["spec"]["nodeName"], pod["metadata"]["uid"]
    job = submit(in_pods, worker)
    wait_until(lambda: in_pods.state(job) == "RUNNING", STARTS_S, sandbox=sandbox)
    kubectl = (str(sandbox.instance.bin / "kubectl"), "drain", kube_node)
    only = ("--pod-selector=app.kubernetes.io/name=slurmd", f"--timeout={LEAVES_S:g}s")
    drain = subprocess.Popen(
        (*kubectl, *only, "--ignore-daemonsets", "--delete-emptydir-data"), env=sandbox.env
    )
    try:
        wait_until(lambda: worker in in_pods.drained(), LEAVES_S, sandbox=sandbox)
        assert "RUNNING" == in_pods.state(job)
        assert "deletionTimestamp" not in sandbox.admin.get(where)["metadata"]
        assert 0 == drain.wait(LEAVES_S)
    finally:
        drain.kill()
        sandbox.kubectl("uncordon", kube_node)
    assert "COMPLETED" == in_pods.state(job)
    wait_until(
        lambda: (
            [worker] == in_pods.workers()
            and uid != sandbox.admin.get(where)["metadata"]["uid"]
            and worker not in in_pods.drained()
        ),
        LEAVES_S,
        sandbox=sandbox,
    )


def submit(in_pods: InPods, worker: str) -> str:
    """Submit a batch job to a worker; return its id."""
    command = ("--parsable", "--output=/dev/null", "-w", worker, "--wrap", f"sleep {JOB_S}")
    return in_pods.run("sbatch", *command).strip()


def operator(sandbox: Sandbox, folder: Path, port: int) -> tuple[str, ...]:
    """Return the command of slurm-operator, which reaches Slurm by a port of this host."""
    (folder / "token").write_text("none yet")
    settings = {
        "kubernetes": {"kubeconfig": str(sandbox.kubeconfig), "namespace": NAMESPACE},
        "slurm": {"url": [f"http://127.0.0.1:{port}"], "token_file": str(folder / "token")},
        "operator": {"image": slurm_images.NAME, "controller": f"{NAMESPACE}/site"},
        "health": {"listen": "127.0.0.1:0"},
    }
    config = folder / "operator.yaml"
    config.write_text(yaml.safe_dump(settings))
    return (sys.executable, "-m", "cluster", "--config", str(config))


@contextmanager
def running(sandbox: Sandbox, command: tuple[str, ...], log: Path) -> Iterator[None]:
    """Run a program until the end."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env=sandbox.env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def applied(sandbox: Sandbox, listed: dict[str, Any]) -> bool:
    """Create the objects; what has just been defined is not served at once."""
    try:
        sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=json.dumps(listed))
    except SandboxError:
        return False
    return True


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
