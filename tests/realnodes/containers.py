"""Pods with a shell script in a real container, and what both systems say of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bridge.domain import names
from sandbox.client import Sandbox
from tests.servers import wait_until

STARTS_S = 60.0
ENDS_S = 60.0
ACCOUNTED_S = 20.0


@dataclass(frozen=True, slots=True)
class Containers:
    """Pods of one namespace."""

    sandbox: Sandbox
    namespace: str

    def create(
        self,
        name: str,
        *scripts: str,
        node: str = "",
        limits: Mapping[str, str] | None = None,
        host_folder: str = "",
        **spec: object,
    ) -> None:
        """Create a pod with a container for each script, named c0 and so on.

        A folder of the node appears as /host in each.
        """
        pinned = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
        volumes = [{"name": "host", "hostPath": {"path": host_folder}}] * bool(host_folder)
        mounts = [{"name": "host", "mountPath": "/host"}] * bool(host_folder)
        body = {
            "metadata": {"name": name},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 2,
                **pinned,
                "volumes": volumes,
                "containers": [
                    {
                        "name": f"c{number}",
                        "image": "busybox",
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["sh", "-c", script],
                        "volumeMounts": mounts,
                        "resources": {"limits": dict(limits or {})},
                    }
                    for number, script in enumerate(scripts)
                ],
                **spec,
            },
        }
        self.sandbox.admin.create(f"/api/v1/namespaces/{self.namespace}/pods", body)

    def get(self, name: str) -> dict[str, Any]:
        """Read a pod."""
        return self.sandbox.admin.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def runs(self, name: str) -> dict[str, Any]:
        """Wait until every container runs; return the pod."""

        def all_run() -> bool:
            statuses = self.get(name)["status"].get("containerStatuses", [])
            return bool(statuses) and all("running" in each["state"] for each in statuses)

        wait_until(all_run, STARTS_S, sandbox=self.sandbox)
        return self.get(name)

    def ends(self, name: str, within_s: float = ENDS_S) -> dict[str, Any]:
        """Wait until the pod has ended; return it."""

        def has_ended() -> bool:
            return self.get(name)["status"]["phase"] in ("Succeeded", "Failed")

        wait_until(has_ended, within_s, sandbox=self.sandbox)
        return self.get(name)

    def job_of(self, name: str) -> str:
        """Return the id of the pod's job."""
        labels: dict[str, str] = self.get(name)["metadata"]["labels"]
        return labels[names.JOB_ID_LABEL]

    def accounted(self, name: str) -> tuple[str, str]:
        """Wait until sacct tells how the pod's job ended; return state and exit code."""
        job = self.job_of(name)
        wanted = ("-X", "-n", "-P", "-j", job, "-o", "State,ExitCode")

        def row() -> tuple[str, str]:
            state, _, code = self.sandbox.run("sacct", *wanted).strip().partition("|")
            return state.split()[0] if state else "", code

        wait_until(
            lambda: row()[0] not in ("", "PENDING", "RUNNING", "COMPLETING"),
            ACCOUNTED_S,
            sandbox=self.sandbox,
        )
        return row()
