"""A release of our chart on real nodes: where it goes, how it is installed, and what is seen of it."""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import nss, slurm_conf
from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.realnodes.installed import surroundings
from tests.servers import wait_until

RELEASE = "slurm-bridge"
COMPONENTS = ("webhook", "extender", "controllers", "scheduler")
OURS, FOR_SLURM = ("real-0", "real-1"), "real-2"
"""As on a cluster with nodes for infrastructure, where our programs are."""
INFRASTRUCTURE = "test.slurm-bridge.dev/infrastructure"
READY_S = 240.0
REPLICAS = 2
_NOT_FOUND = 404
_LEFT = (
    "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,"
    "validatingwebhookconfigurations,mutatingwebhookconfigurations,deployments,services,pods,"
    "configmaps,secrets,serviceaccounts,roles,rolebindings,poddisruptionbudgets"
)


@dataclass(frozen=True, slots=True)
class Installed:
    """A release."""

    sandbox: Sandbox
    helm: Path
    namespace: str = names.RELEASE_NAMESPACE

    def helms(self, *arguments: str) -> None:
        done = subprocess.run(
            (self.helm, *arguments, "--namespace", self.namespace),
            env=self.sandbox.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=READY_S,
        )
        assert done.returncode == 0, done.stderr

    def install(self, chart: Path, values: Path) -> None:
        """Install as the page says: a namespace, the Secret, helm; wait until all pods are Ready."""
        self.create_namespace()
        self.helms("install", RELEASE, str(chart), "--values", str(values))
        self.await_ready()

    def create_namespace(self) -> None:
        """Create the namespace, and in it the Secret with Slurm's token."""
        sandbox = self.sandbox
        token = sandbox.run("scontrol", "token", "username=root").strip()
        literal = f"--from-literal=token={token.removeprefix('SLURM_JWT=')}"
        sandbox.kubectl("create", "namespace", self.namespace)
        sandbox.kubectl("-n", self.namespace, "create", "secret", "generic", "slurm-token", literal)

    def pods(self, component: str = "") -> list[dict[str, Any]]:
        """Our pods, or those of one component, that are not on their way out."""
        found = self.sandbox.admin.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return [
            pod
            for pod in found
            if "deletionTimestamp" not in pod["metadata"]
            and pod["metadata"]["name"].startswith(f"{RELEASE}-{component}")
        ]

    def await_version(self, version: str) -> None:
        """Wait until all of our own programs are of a version, and all replicas are Ready."""

        def tags() -> set[str]:
            return {
                container["image"].rpartition(":")[2]
                for pod in self.pods()
                for container in pod["spec"]["containers"]
                if not pod["metadata"]["name"].startswith(f"{RELEASE}-scheduler")
            }

        wait_until(lambda: tags() == {version}, READY_S, sandbox=self.sandbox)
        self.await_ready()

    def leader(self) -> dict[str, Any]:
        """The pod that leads the controllers."""
        name = f"{RELEASE}-controllers"
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{name}"
        holder = self.sandbox.admin.get(path)["spec"]["holderIdentity"]
        (pod,) = [pod for pod in self.pods() if holder.startswith(pod["metadata"]["name"])]
        return pod

    def left(self) -> list[str]:
        """All objects that say they are the release's."""
        ours = f"--selector=app.kubernetes.io/instance={RELEASE}"
        return self.sandbox.kubectl("get", _LEFT, "--all-namespaces", ours, "-o=name").split()

    def inside(self) -> set[str]:
        """What is in the release's namespace that could be somebody's, whatever its labels."""
        kinds = "configmaps,deployments.apps,leases,secrets,services"
        return set(self.sandbox.kubectl("-n", self.namespace, "get", kinds, "-o=name").split())

    def await_ready(self) -> None:
        """Wait until all replicas are Ready; else fail with what their pods say."""
        last: list[str] = ["nothing seen"]

        def ready() -> bool:
            last[:] = self._unready()
            return not last

        try:
            wait_until(ready, READY_S, sandbox=self.sandbox)
        except AssertionError as error:
            raise AssertionError("\n".join((*last, str(error)))) from None

    def _unready(self) -> list[str]:
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
        found = {item["metadata"]["name"]: item for item in self.sandbox.admin.get(path)["items"]}
        short = [
            name
            for component in COMPONENTS
            if not _is_complete(found.get(name := f"{RELEASE}-{component}", {}))
        ]
        said = [
            f"{pod['metadata']['name']}: {json.dumps(pod['status'].get('containerStatuses'))}"
            for pod in self.pods()
        ]
        return short and [*short, *said]

    def remove(self) -> None:
        """Uninstall what is left of it, with its namespace."""
        if self.left():
            self.helms("uninstall", RELEASE, "--ignore-not-found")
        with contextlib.suppress(ApiError):  # it never came so far
            self.sandbox.admin.delete(f"/api/v1/namespaces/{self.namespace}")
        wait_until(self._is_gone, READY_S, sandbox=self.sandbox)

    def _is_gone(self) -> bool:
        try:
            self.sandbox.admin.get(f"/api/v1/namespaces/{self.namespace}")
        except ApiError as error:
            return error.status == _NOT_FOUND and not self.left()
        return False


def _is_complete(deployment: Mapping[str, Any]) -> bool:
    """Whether the controller has seen the latest word, and all replicas of it are Ready, and no other."""
    status = deployment.get("status", {})
    counts = {status.get(key) for key in ("replicas", "readyReplicas", "updatedReplicas")}
    seen = status.get("observedGeneration")
    return counts == {REPLICAS} and bool(seen == deployment["metadata"]["generation"])


@contextlib.contextmanager
def ground(sandbox: Sandbox) -> Iterator[str]:
    """Keep two nodes for infrastructure, and let pods reach Slurm; yield its address."""
    for node in OURS:
        labels = (f"{names.EXTERNAL_NODE_LABEL}-", f"{INFRASTRUCTURE}=true")
        sandbox.kubectl("label", "--overwrite", "node", node, *labels)
    with surroundings.reachable(sandbox) as address:
        yield address


def values(sandbox: Sandbox, address: str) -> dict[str, Any]:
    """Only what the install page asks for, and on which nodes our pods are."""
    ports, here = sandbox.instance.ports, {"nodeSelector": {INFRASTRUCTURE: "true"}}
    return {
        "scheduler": {"image": {"repository": surroundings.SCHEDULER}, **here},
        "webhook": here,
        "extender": here,
        "controllers": here,
        "config": {
            "slurm": {
                "insecure": True,  # slurmrestd is on this host and speaks no TLS
                "url": f"http://{address}:{ports['slurmrestd']}",
                "controller_host": address,
                "controller_port": ports["slurmctld"],
                "partition": slurm_conf.PARTITION,
                "user": nss.JOB_USER.name,
                "group": nss.JOB_USER.name,
                "account": nss.JOB_USER.name,
            }
        },
    }
