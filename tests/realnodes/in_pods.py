"""A Slurm of pods on real kubelets, made by slurm-operator, as its tests see it."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.image.slurm import SlurmImage
from sandbox.options import Options
from tests.realnodes import slurm_objects
from tests.realnodes.installed import surroundings
from tests.servers import running_sandbox, wait_until

OPTIONS = Options(
    accounting=True,  # for its database
    bridge=False,
    operator=True,
    nodes=0,
    plain_nodes=0,
    real_nodes=2,
    real_memory_mib=4096,
    dns=True,
)
NAMESPACE = "slurm"
STARTS_S = 120.0
_SAVED = "/var/spool/slurmctld/*/job_state"


@dataclass(frozen=True, slots=True)
class InPods:
    """A Slurm of pods."""

    sandbox: Sandbox
    login_image: str
    namespace: str = NAMESPACE

    def run(self, *command: str) -> str:
        """Run a command beside slurmctld; "" while there is none."""
        try:
            return self.sandbox.kubectl(
                "-n", self.namespace, "exec", "site-controller-0", "-c", "slurmctld", "--", *command
            )
        except SandboxError:
            return ""

    def condition(self, kind: str, name: str, wanted: str) -> tuple[str, str]:
        """Return status and message of an object's condition."""
        path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{self.namespace}/{kind}/{name}"
        for condition in self.sandbox.admin.get(path).get("status", {}).get("conditions", []):
            if condition["type"] == wanted:
                return condition["status"], condition.get("message", "")
        return "", ""

    def drained(self) -> list[str]:
        """Return the workers that Slurm gives no more jobs."""
        lines = self.run("sinfo", "-h", "-N", "-o", "%N %T").splitlines()
        return [name for name, state in map(str.split, lines) if state.startswith("drain")]

    def state(self, job: str) -> str:
        """Return a job's state."""
        return self.run("squeue", "-h", "--states=all", "-j", job, "-o", "%T").strip()

    def accounted(self) -> set[tuple[str, ...]]:
        """Return ids and states of all jobs that slurmdbd knows."""
        lines = self.run("sacct", "-X", "-n", "-P", "-a", "-o", "JobID,State").splitlines()
        return {tuple(line.split("|")) for line in lines}

    def log_in(self, name: str, image: str) -> Callable[..., str]:
        """Make a LoginSet and wait until it is ready; return what runs kubectl's `exec` or `logs` for it."""
        listed = slurm_objects.login_set(name, image, slurm_objects.USERS_OF_FILES)
        bodies = json.dumps({"apiVersion": "v1", "kind": "List", "items": listed})
        self.sandbox.kubectl("-n", self.namespace, "apply", "-f", "-", stdin=bodies)
        wait_until(
            lambda: self.condition("loginsets", name, "Ready")[0] == "True",
            STARTS_S,
            sandbox=self.sandbox,
        )

        def run(verb: str, *command: str) -> str:
            what = (f"deployment/{name}", "-c", "login", *(("--", *command) if command else ()))
            return self.sandbox.kubectl("-n", self.namespace, verb, *what)

        return run

    def workers(self) -> list[str]:
        """Return the names of the workers' pods."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        found = self.sandbox.admin.get(path, labelSelector="app.kubernetes.io/name=slurmd")
        return sorted(item["metadata"]["name"] for item in found["items"])

    def submit(self, worker: str, seconds: int = 20, *, partition: str = "") -> str:
        """Submit a batch job to a worker; return its id, "" while there is no slurmctld.

        Args:
            worker: its Slurm node.
            seconds: how long the job runs.
            partition: one that has the worker; the default one if none is named.
        """
        where = ("-w", worker, "--output=/dev/null", *(("-p", partition) if partition else ()))
        return self.run("sbatch", "--parsable", *where, "--wrap", f"sleep {seconds}").strip()

    def submit_wide(self, nodes: int, seconds: int) -> str:
        """Submit a batch job that wants whole nodes; return its id."""
        size = ("--parsable", "--output=/dev/null", "--exclusive", f"-N{nodes}")
        return self.run("sbatch", *size, "--wrap", f"sleep {seconds}").strip()

    def address(self, daemon: str) -> str:
        """Return the address of a daemon that has one pod: this host reaches pods, but no Service."""
        return self.address_of(self._of(daemon))

    def address_of(self, pod: str) -> str:
        """Return the address of a pod."""
        return str(self._pod(pod)["status"]["podIP"])

    def scale(self, node_set: str, replicas: int) -> None:
        """Change how many workers there are to be."""
        patch = json.dumps({"spec": {"replicas": replicas}})
        what = (f"nodeset/{node_set}", "--type=merge", f"-p={patch}")
        self.sandbox.kubectl("-n", self.namespace, "patch", *what)

    def kill(self, daemon: str) -> str:
        """Kill the container of a daemon that has one pod; return the pod's name."""
        pod = self._of(daemon)
        self._kill(pod, daemon)
        return pod

    def let_save(self) -> None:
        """Wait until slurmctld has saved what it knows now, some seconds after each change, and told slurmdbd."""
        mark = f"saved-{time.time_ns()}"
        self.run("scancel", "--name=saved")  # the last one
        self.run("sbatch", "--hold", "--job-name=saved", f"--comment={mark}", "--wrap=true")
        wait_until(lambda: mark in self.run("sh", "-c", f"grep -ao {mark} {_SAVED}"), STARTS_S)
        wait_until(lambda: "DBD Agent queue size: 0" in self.run("sdiag"), STARTS_S)

    @contextmanager
    def frozen(self, daemon: str) -> Iterator[None]:
        """Stop the container of a daemon that has one pod from doing anything for a while."""
        node, container = self._running(self._of(daemon), daemon)
        self._task(node, container, "pause")
        try:
            yield
        finally:
            self._task(node, container, "resume")

    def _of(self, daemon: str) -> str:
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        found = self.sandbox.admin.get(path, labelSelector=f"app.kubernetes.io/name={daemon}")
        (pod,) = (str(item["metadata"]["name"]) for item in found["items"])
        return pod

    def kill_worker(self, name: str) -> None:
        """Kill the slurmd of a worker, and with it all that runs in its container."""
        self._kill(name, "slurmd")

    def _kill(self, pod: str, name: str) -> None:
        node, container = self._running(pod, name)
        self._task(node, container, "kill", "--signal", "SIGKILL")

        def is_noticed() -> bool:
            now = self._pod(pod)["status"]["containerStatuses"]
            ids = {each.get("containerID") for each in now if each["name"] == name}
            return ids != {container} or not self.is_ready(pod)

        wait_until(is_noticed, STARTS_S, sandbox=self.sandbox)

    def _running(self, pod: str, name: str) -> tuple[str, str]:
        """Return the node of a running container, and its id."""
        found = self._pod(pod)
        statuses = found["status"]["containerStatuses"]
        (container,) = (str(status["containerID"]) for status in statuses if status["name"] == name)
        return found["spec"]["nodeName"], container

    def _task(self, node: str, container: str, *action: str) -> None:
        """Do something to a running container."""
        command = ("ctr", "-n", "k8s.io", "tasks", *action, container.removeprefix("containerd://"))
        self.sandbox.on_node(node, *command)

    def is_ready(self, pod: str) -> bool:
        """Check whether a pod is ready."""
        conditions = self._pod(pod)["status"].get("conditions", ())
        return any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in conditions
        )

    def _pod(self, name: str) -> dict[str, Any]:
        return dict(self.sandbox.admin.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}"))

    def tries(self, login: Callable[..., str], *command: str) -> str:
        """Run a command in a login pod; return what it prints, "" if it fails."""
        try:
            return login("exec", "timeout", "20", *command)
        except SandboxError:
            return ""


@contextmanager
def slurm_in_pods(
    slurm_images: tuple[SlurmImage, ...],
    *,
    files: Mapping[str, str] = MappingProxyType({}),
    slurm_conf: str = "",
    controller: Callable[[Sandbox], Mapping[str, Any]] = lambda _: {},
) -> Iterator[InPods]:
    """The objects are there, and the operator runs; nobody has waited for the workers.

    Args:
        slurm_images: of all daemons.
        files: further ones of Slurm's, such as topology.yaml.
        slurm_conf: further lines.
        controller: makes more fields of the Controller's specification, once there are nodes.
    """

    def objects(sandbox: Sandbox) -> tuple[dict[str, Any], ...]:
        return slurm_objects.objects(files, slurm_conf, controller(sandbox))

    with slurms_in_pods(slurm_images, (NAMESPACE,), objects) as (found,):
        yield found


@contextmanager
def slurms_in_pods(
    slurm_images: tuple[SlurmImage, ...],
    namespaces: Sequence[str],
    objects: Callable[[Sandbox], Sequence[Mapping[str, Any]]] = lambda _: slurm_objects.OBJECTS,
) -> Iterator[tuple[InPods, ...]]:
    """`slurm_in_pods`, one in each namespace, all on the same nodes and with a database each.

    Args:
        slurm_images: of all daemons.
        namespaces: their names.
        objects: makes those of each, but for its Accounting, once there are nodes.
    """
    (login,) = (image.name for image in slurm_images if image.daemon == "login")
    with (
        running_sandbox(OPTIONS) as sandbox,
        surroundings.reachable(sandbox, "mariadb") as gateway,
    ):
        bodies = objects(sandbox)
        found = tuple(InPods(sandbox, login, namespace) for namespace in namespaces)
        for each in found:
            _apply(each, gateway, bodies)
        wait_until(lambda: all(map(_answers, found)), STARTS_S, sandbox=sandbox)
        yield found


def _answers(in_pods: InPods) -> bool:
    return in_pods.condition("restapis", "site", "Ready")[0] == "True"


def _apply(in_pods: InPods, gateway: str, objects: Sequence[Mapping[str, Any]]) -> None:
    sandbox, namespace = in_pods.sandbox, in_pods.namespace
    database = (gateway, sandbox.instance.ports["mariadb"], namespace.replace("-", "_"))
    items = [*objects, *slurm_objects.accounting(*database)]
    sandbox.kubectl("create", "namespace", namespace)
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    sandbox.kubectl("-n", namespace, "apply", "-f", "-", stdin=listed)
