"""A Slurm of pods on real kubelets, made by slurm-operator, as its tests see it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class InPods:
    """A Slurm of pods."""

    sandbox: Sandbox
    login_image: str

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

    def accounted(self) -> set[tuple[str, ...]]:
        """Return ids and states of all jobs that slurmdbd knows."""
        lines = self.run("sacct", "-X", "-n", "-P", "-a", "-o", "JobID,State").splitlines()
        return {tuple(line.split("|")) for line in lines}

    def log_in(self, name: str, image: str) -> Callable[..., str]:
        """Make a LoginSet and wait until it is ready; return what runs kubectl's `exec` or `logs` for it."""
        listed = slurm_objects.login_set(name, image, slurm_objects.USERS_OF_FILES)
        bodies = json.dumps({"apiVersion": "v1", "kind": "List", "items": listed})
        self.sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=bodies)
        wait_until(
            lambda: self.condition("loginsets", name, "Ready")[0] == "True",
            STARTS_S,
            sandbox=self.sandbox,
        )

        def run(verb: str, *command: str) -> str:
            what = (f"deployment/{name}", "-c", "login", *(("--", *command) if command else ()))
            return self.sandbox.kubectl("-n", NAMESPACE, verb, *what)

        return run

    def workers(self) -> list[str]:
        """Return the names of the workers' pods."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        found = self.sandbox.admin.get(path, labelSelector="app.kubernetes.io/name=slurmd")
        return sorted(each["metadata"]["name"] for each in found["items"])

    def submit(self, worker: str, seconds: int = 20) -> str:
        """Submit a batch job to a worker; return its id, "" while there is no slurmctld."""
        command = ("--parsable", "--output=/dev/null", "-w", worker, "--wrap", f"sleep {seconds}")
        return self.run("sbatch", *command).strip()

    @contextmanager
    def frozen(self, daemon: str) -> Iterator[None]:
        """Stop the container of a daemon that has one pod from doing anything for a while."""
        pod = self._of(daemon)
        self._task(pod, daemon, "pause")
        try:
            yield
        finally:
            self._task(pod, daemon, "resume")

    def _of(self, daemon: str) -> str:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        found = self.sandbox.admin.get(path, labelSelector=f"app.kubernetes.io/name={daemon}")
        (pod,) = (str(each["metadata"]["name"]) for each in found["items"])
        return pod

    def _task(self, pod: str, container: str, *action: str) -> None:
        """Do something to a running container."""
        found = self._pod(pod)
        statuses = found["status"]["containerStatuses"]
        (where,) = (str(each["containerID"]) for each in statuses if each["name"] == container)
        command = ("ctr", "-n", "k8s.io", "tasks", *action, where.removeprefix("containerd://"))
        self.sandbox.on_node(found["spec"]["nodeName"], *command)

    def _pod(self, name: str) -> dict[str, Any]:
        return dict(self.sandbox.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}"))


@contextmanager
def slurm_in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    """The objects are there, and the operator runs; nobody has waited for the workers."""
    with (
        running_sandbox(OPTIONS) as sandbox,
        surroundings.reachable(sandbox, "mariadb") as gateway,
    ):
        sandbox.kubectl("create", "namespace", NAMESPACE)
        objects = [
            *slurm_objects.OBJECTS,
            *slurm_objects.accounting(gateway, sandbox.instance.ports["mariadb"]),
        ]
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=listed)
        (login,) = (image.name for image in slurm_images if image.daemon == "login")
        in_pods = InPods(sandbox, login)
        wait_until(
            lambda: in_pods.condition("restapis", "site", "Ready")[0] == "True",
            STARTS_S,
            sandbox=sandbox,
        )
        yield in_pods
