"""What pods, gangs and SlurmJobs do while our programs are exchanged, and that none of it is lost."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sandbox.api import ApiError
from sandbox.chart import BATCH_USER
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from slurmruntime.values import names
from tests.integration import gang_pods
from tests.realnodes.containers import Containers
from tests.realnodes.installed.release import FOR_SLURM, READY_S
from tests.servers import wait_until

FLAGS = "/var/lib/kubelet"
"""A folder of the node; a file in it tells a pod to go on."""
MILLI_CPU_PER_CPU = 250
"""The machine has two processors, and all pods have to run at once."""
LIMITS = {"cpu": "250m", "memory": "32Mi"}
MOST = {"cpu": "1750m", "memory": "32Mi"}
"""So much that it waits until most others have ended."""
LONG_S = 600
COMPLETIONS = 3
SCRATCH = "scratch"
"""A claim whose volume is the folder that compute nodes and real ones share."""
_NOT_FOUND = 404
_BOUND = ("runs", "lends", "going", "left")
"""Pods with a container that must not restart; of the gang, the member that has its node."""
_UNBOUND = ("right", "waits")
"""Of the gang, the member that kube-scheduler cannot bind yet; and a pod that waits for Slurm."""
_JOBS = ("batch", "queued")


@dataclass(frozen=True, slots=True)
class Load:
    """Pods and SlurmJobs of one step, by the step's name."""

    containers: Containers
    step: str
    has_jobs: bool = True
    """Whether there are SlurmJobs."""
    known: set[str] = field(default_factory=set)
    """The Slurm jobs that there may be, of all steps."""

    @property
    def sandbox(self) -> Sandbox:
        return self.containers.sandbox

    def of(self, name: str) -> str:
        """Return the full name of a pod or SlurmJob of this step."""
        return f"{self.step}-{name}"

    def put(self) -> None:
        """Create all of it, and wait until each is in its state."""
        for name in ("runs", "ends"):
            self._create(name)
        self._create("lends", volumes=self._volumes())
        self._create("going", f"trap '' TERM; {self._until_told('going')}")
        for name in ("runs", "ends", "lends", "going"):
            self.containers.runs(self.of(name))
        self.sandbox.admin.delete(self._pod("going"))
        group = gang_pods.in_group(self.of("ring"), 2)
        member: dict[str, Any] = {"notes": group["annotations"], "labels": group["labels"]}
        self._create("left", **member)
        self._create("right", **member, volumes=self._volumes())
        self._create("waits", limits=MOST)
        self.containers.create_job(
            self.of("several"),
            "sleep 1",
            limits=LIMITS,
            spec={"completions": COMPLETIONS, "backoffLimit": 0},
        )
        if self.has_jobs:
            self._put_jobs()
        self.containers.runs(self.of("left"))
        wait_until(self._is_half_bound, READY_S, sandbox=self.sandbox)
        wait_until(lambda: self._label("waits"), READY_S, sandbox=self.sandbox)

    def _put_jobs(self) -> None:
        self._submit("batch")
        wait_until(lambda: self._job("batch").get("state") == "RUNNING", READY_S)
        self._submit("queued", "#SBATCH --exclusive\n")
        wait_until(lambda: self._job("queued").get("state") == "PENDING", READY_S)
        wait_until(lambda: self._follower() == "Running", READY_S, sandbox=self.sandbox)

    def state(self) -> dict[str, object]:
        """Return what must be the same before and after."""
        pods = {name: self.containers.get(self.of(name)) for name in (*_BOUND, *_UNBOUND)}
        queue = self.sandbox.run("squeue", "-h", "-o", "%i %T").splitlines()
        states = dict(map(str.split, queue))
        return {
            **{
                name: (
                    pod["metadata"]["uid"],
                    self._label(name),
                    states.get(self._label(name)),
                    pod["spec"].get("nodeName"),
                    pod["status"].get("containerStatuses"),
                )
                for name, pod in pods.items()
            },
            **{
                name: {
                    key: self._job(name).get(key)
                    for key in ("jobId", "attempt", "restarts", "state", "startTime")
                }
                for name in (_JOBS if self.has_jobs else ())
            },
        }

    def go_on(self) -> None:
        """Let a pod end and another one come, as they do at any time."""
        self.tell("ends")
        self.containers.create(self.of("comes"), "exit 0", limits=LIMITS)

    def tell(self, name: str) -> None:
        """Let a pod go on."""
        self.sandbox.on_node(FOR_SLURM, "touch", f"{FLAGS}/{self.of(name)}")

    def end(self) -> None:
        """Let all of it end; fail unless each ends once, well, and leaves nothing in Slurm."""
        jobs = {name: self._label(name) for name in (*_BOUND, *_UNBOUND, "ends")}
        self.tell("lends")
        self.containers.runs(self.of("right"))
        for name in ("runs", "going", "left", "right", "waits"):
            self.tell(name)
        jobs["comes"] = self._label("comes")
        for name in jobs.keys() - {"going"}:
            pod = self.containers.ends(self.of(name), READY_S)
            assert "Succeeded" == pod["status"]["phase"], name
            (status,) = pod["status"]["containerStatuses"]
            assert 0 == status["restartCount"], name
            assert jobs[name] == self._label(name), name
            assert ("COMPLETED", "0:0") == self.containers.accounted_job(jobs[name]), name
        wait_until(lambda: self._is_gone("going"), READY_S, sandbox=self.sandbox)
        assert "CANCELLED" == self.containers.accounted_job(jobs["going"])[0]
        several = f"/apis/batch/v1/namespaces/{self.containers.namespace}/jobs/{self.of('several')}"
        wait_until(
            lambda: self.sandbox.admin.get(several)["status"].get("succeeded") == COMPLETIONS,
            READY_S,
            sandbox=self.sandbox,
        )
        if self.has_jobs:
            self._assert_jobs_end()
        self.known.update(jobs.values(), self._labels())
        wait_until(lambda: not self.sandbox.run("squeue", "-h").strip(), READY_S)
        assert self.known == jobs_of(self.sandbox)

    def _assert_jobs_end(self) -> None:
        (self.sandbox.instance.shared / BATCH_USER.name / self.step).touch()
        for name in _JOBS:
            wait_until(
                lambda name=name: self._job(name).get("phase") in ("Succeeded", "Failed"),  # type: ignore[misc]
                READY_S,
                sandbox=self.sandbox,
            )
            job = self._job(name)
            assert ("Succeeded", 1) == (job["phase"], job["attempt"]), job
            assert ("COMPLETED", "0:0") == self.containers.accounted_job(str(job["jobId"]))
            self.known.add(str(job["jobId"]))
        wait_until(lambda: self._follower() == "Succeeded", READY_S, sandbox=self.sandbox)
        said = ("-n", self.containers.namespace, "logs", f"{self.of('batch')}-job")
        assert "begun\nover\n" == self.sandbox.kubectl(*said)

    def _create(self, name: str, script: str = "", **more: Any) -> None:
        self.containers.create(
            self.of(name),
            script or self._until_told(name),
            host_folder=FLAGS,
            terminationGracePeriodSeconds=LONG_S,
            **{"limits": LIMITS, **more},
        )

    def _until_told(self, name: str) -> str:
        return f"until [ -e /host/{self.of(name)} ]; do sleep 0.2; done"

    def _volumes(self) -> Sequence[dict[str, object]]:
        """The volumes of `Containers.create`, and the claim that only one pod at a time may use."""
        return [
            {"name": "scratch", "emptyDir": {"sizeLimit": "4Mi"}},
            {"name": "host", "hostPath": {"path": FLAGS}},
            {"name": "lent", "persistentVolumeClaim": {"claimName": self.of("lent")}},
        ]

    def _submit(self, name: str, lines: str = "") -> None:
        go = self.sandbox.instance.shared / BATCH_USER.name / self.step
        script = f"echo begun; while ! [ -e {go} ]; do sleep 0.2; done; echo over"
        body = {
            "apiVersion": "slurm-bridge.dev/v1alpha1",
            "kind": "SlurmJob",
            "metadata": {"name": self.of(name)},
            "spec": {
                "script": f"#!/bin/sh\n#SBATCH --mem=16 --time=30\n{lines}{script}\n",
                "output": {"claimName": SCRATCH, "clusterPath": str(self.sandbox.instance.shared)},
            },
        }
        path = f"/apis/slurm-bridge.dev/v1alpha1/namespaces/{self.containers.namespace}/slurmjobs"
        self.sandbox.admin.create(path, body)

    def _job(self, name: str) -> dict[str, Any]:
        """Return a SlurmJob's status."""
        path = f"/apis/slurm-bridge.dev/v1alpha1/namespaces/{self.containers.namespace}/slurmjobs"
        status: dict[str, Any] = self.sandbox.admin.get(f"{path}/{self.of(name)}").get("status", {})
        return status

    def _follower(self) -> str:
        """Return the phase of the pod that prints the output of the job that runs."""
        found = self.sandbox.kubectl(
            *("-n", self.containers.namespace, "get", "pod", f"{self.of('batch')}-job"),
            *("--ignore-not-found", "--output=jsonpath={.status.phase}"),
        )
        return found.strip()

    def _pod(self, name: str) -> str:
        return f"/api/v1/namespaces/{self.containers.namespace}/pods/{self.of(name)}"

    def _label(self, name: str) -> str:
        labels: dict[str, str] = self.containers.get(self.of(name))["metadata"].get("labels", {})
        return labels.get(names.JOB_ID_LABEL, "")

    def _labels(self) -> Iterator[str]:
        """The jobs of all pods that are there."""
        pods = self.sandbox.admin.get(f"/api/v1/namespaces/{self.containers.namespace}/pods")
        for pod in pods["items"]:
            if job := pod["metadata"].get("labels", {}).get(names.JOB_ID_LABEL):
                yield job

    def _is_half_bound(self) -> bool:
        """Check that Slurm has given the second member its node, and kube-scheduler has not."""
        pod = self.containers.get(self.of("right"))
        conditions = {one["type"]: one for one in pod["status"].get("conditions", ())}
        return (
            "nodeName" not in pod["spec"]
            and names.RANK_ANNOTATION in pod["metadata"].get("annotations", {})
            and "ReadWriteOncePod" in conditions.get("PodScheduled", {}).get("message", "")
        )

    def _is_gone(self, name: str) -> bool:
        try:
            self.sandbox.admin.get(self._pod(name))
        except ApiError as error:
            return error.status == _NOT_FOUND
        return False


def jobs_of(sandbox: Sandbox) -> set[str]:
    """Return the ids of all jobs that Slurm has had."""
    every = ("sacct", "-X", "-n", "-P", "-a", "-S", "now-1days", "-o", "JobID")
    return set(sandbox.run(*every).split())


def clear(sandbox: Sandbox) -> set[str]:
    """End what other tests have left in Slurm, and forget the node, whose size differs; return the jobs that there were."""
    if left := sandbox.run("squeue", "-h", "-o", "%i").split():
        sandbox.run("scancel", *left)
    wait_until(lambda: not sandbox.run("squeue", "-h").strip(), READY_S)
    with suppress(SandboxError):  # it is not there
        sandbox.run("scontrol", "delete", f"nodename={FOR_SLURM}")
    return jobs_of(sandbox)


@contextmanager
def claimed(
    containers: Containers, name: str, folder: str, mode: str = "ReadWriteMany"
) -> Iterator[None]:
    """A claim whose volume is a folder of every real node."""
    size, called = {"storage": "1Mi"}, f"{containers.namespace}-{name}"
    common = {"accessModes": [mode], "storageClassName": ""}
    volume = {
        **common,
        "capacity": size,
        "hostPath": {"path": folder},
        "claimRef": {"namespace": containers.namespace, "name": name},
    }
    claim = {**common, "volumeName": called, "resources": {"requests": size}}
    admin = containers.sandbox.admin
    volumes = "/api/v1/persistentvolumes"
    admin.create(volumes, {"metadata": {"name": called}, "spec": volume})
    claims = f"/api/v1/namespaces/{containers.namespace}/persistentvolumeclaims"
    try:
        admin.create(claims, {"metadata": {"name": name}, "spec": claim})
        yield
    finally:
        admin.delete(f"{volumes}/{called}")
