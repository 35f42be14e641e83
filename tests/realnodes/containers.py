"""Pods with a shell script in a real container, and what both systems say of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.servers import wait_until

STARTS_S = 60.0
ENDS_S = 60.0
ACCOUNTED_S = 20.0
LIMITS = {"memory": "64Mi"}
"""The sandbox's settings ask for it."""


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
        notes: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        **spec: object,
    ) -> None:
        """Create a pod with a container for each script, named c0 and so on.

        A folder of the node appears as /host in each; `notes` are the pod's annotations.
        """
        made = running(scripts, node=node, limits=limits, host_folder=host_folder)
        metadata = {"name": name, "annotations": notes or {}, "labels": labels or {}}
        body = {"metadata": metadata, "spec": {**made, **spec}}
        self.sandbox.admin.create(f"/api/v1/namespaces/{self.namespace}/pods", body)

    def create_job(
        self,
        name: str,
        script: str,
        *,
        node: str = "",
        limits: Mapping[str, str] | None = None,
        spec: Mapping[str, object],
    ) -> None:
        """Create a Job of one pod at a time."""
        template = {"spec": running([script], node=node, limits=limits)}
        body = {"metadata": {"name": name}, "spec": {"template": template, **spec}}
        self.sandbox.admin.create(f"/apis/batch/v1/namespaces/{self.namespace}/jobs", body)

    def pod_of(self, job: str, *, after: str = "") -> str:
        """Wait until a Job has a pod that has not ended, another one than `after`; return its name."""

        def alive() -> list[str]:
            pods = self.sandbox.admin.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
            return [
                pod["metadata"]["name"]
                for pod in pods
                if pod["metadata"]["labels"].get("job-name") == job
                and pod["metadata"]["name"] != after
                and pod["status"]["phase"] in ("Pending", "Running")
            ]

        return wait_until(alive, STARTS_S, sandbox=self.sandbox)[0]

    def get(self, name: str) -> dict[str, Any]:
        """Read a pod."""
        return self.sandbox.admin.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def runs(self, name: str) -> dict[str, Any]:
        """Wait until every container runs; return the pod."""

        def all_run() -> bool:
            statuses = self.get(name)["status"].get("containerStatuses", [])
            return bool(statuses) and all("running" in status["state"] for status in statuses)

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

    def exec(self, name: str, *command: str) -> str:
        """Run a command in a pod's first container; return what it prints."""
        return self.sandbox.kubectl("-n", self.namespace, "exec", name, "-c", "c0", "--", *command)

    def accounted(self, name: str) -> tuple[str, str]:
        """Wait until sacct tells how the pod's job ended; return state and exit code."""
        return self.accounted_job(self.job_of(name))

    def accounted_job(self, job: str, within_s: float = ACCOUNTED_S) -> tuple[str, str]:
        """Wait until sacct tells how a job ended; return state and exit code."""
        wanted = ("-X", "-n", "-P", "-j", job, "-o", "State,ExitCode")

        def row() -> tuple[str, str]:
            state, _, code = self.sandbox.run("sacct", *wanted).strip().partition("|")
            return state.split()[0] if state else "", code

        wait_until(
            lambda: row()[0] not in ("", "PENDING", "RUNNING", "COMPLETING"),
            within_s,
            sandbox=self.sandbox,
        )
        return row()


def running(
    scripts: Sequence[str],
    *,
    node: str = "",
    limits: Mapping[str, str] | None = None,
    host_folder: str = "",
) -> dict[str, Any]:
    """Return the spec of a pod with a container for each script; /scratch takes a few MiB."""
    volumes: list[dict[str, object]] = [{"name": "scratch", "emptyDir": {"sizeLimit": "4Mi"}}]
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    if host_folder:
        volumes.append({"name": "host", "hostPath": {"path": host_folder}})
        mounts.append({"name": "host", "mountPath": "/host"})
    pinned = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return {
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
                "resources": {"limits": {**LIMITS, **(limits or {})}},
            }
            for number, script in enumerate(scripts)
        ],
    }
