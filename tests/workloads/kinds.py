"""Objects of the workload kinds as people write them, and what one sees of a gang on both sides."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from slurmruntime.values import names
from tests.integration.worlds import PATIENCE_S, Job, Manifest, Worlds, condition, container, played
from tests.servers import wait_until

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the API server's."""

    api_version: str
    kind: str
    plural: str


JOBSETS = Kind("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")
LEADER_WORKER_SETS = Kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets")
POD_GROUPS = Kind("scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups")
STATEFUL_SETS = Kind("apps/v1", "StatefulSet", "statefulsets")
JOBS = Kind("batch/v1", "Job", "jobs")

JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"

RACK = "topology.kubernetes.io/rack"
LONG_S = 2 * PATIENCE_S
"""For what takes a controller several rounds."""


def template(
    *, cpus: str = "1", labels: Mapping[str, str] | None = None, restart: str = "Never", **play: Any
) -> Manifest:
    """Of pods that KWOK plays as `played` says."""
    return {
        "metadata": {"labels": dict(labels or {}), "annotations": played(**play)},
        "spec": {
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": 2,
            "containers": [container(cpus)],
        },
    }


def replicated_job(name: str, replicas: int, pods: int, pod: Manifest, **more: Any) -> Manifest:
    """A part of a JobSet: so many Jobs of so many pods, none of which may fail."""
    job = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": pod}
    return {"name": name, "replicas": replicas, "template": {"spec": job}, **more}


@dataclass(frozen=True, slots=True)
class Seen:
    """A gang that runs, as kubectl and squeue show it."""

    job: Job
    name: str
    """squeue's."""
    pods: tuple[Manifest, ...]
    """In rank order."""

    @property
    def members(self) -> list[str]:
        """The pods' names without the random end that a Job gives them."""
        return [pod["spec"].get("hostname") or pod["metadata"]["name"] for pod in self.pods]

    @property
    def uids(self) -> set[str]:
        """The pods'."""
        return {pod["metadata"]["uid"] for pod in self.pods}


class Kinds:
    """Workloads of real controllers in one namespace."""

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds
        self.api = worlds.sandbox.admin

    def create(
        self,
        kind: Kind,
        name: str,
        spec: Manifest,
        *,
        annotations: Mapping[str, str] | None = None,
    ) -> str:
        """Create an object; its uid."""
        metadata = {"name": name, "annotations": dict(annotations or {})}
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": metadata,
            "spec": spec,
        }
        return str(self.api.create(self._path(kind), body)["metadata"]["uid"])

    def get(self, kind: Kind, name: str) -> Manifest:
        """The object as it is."""
        return self.api.get(self._path(kind, name))

    def patch(self, kind: Kind, name: str, spec: Manifest) -> None:
        """Change the object's spec."""
        self.api.patch(self._path(kind, name), {"spec": spec})

    def delete(self, kind: Kind, name: str) -> None:
        """As `kubectl delete` does, with everything that is the object's."""
        self.api.delete(self._path(kind, name), propagationPolicy="Background")

    def await_condition(self, kind: Kind, name: str, what: str) -> None:
        """Wait until the object has this condition."""

        def has_it() -> bool:
            found = self.get(kind, name)
            return "status" in found and condition(found, what).get("status") == "True"

        self.until(has_it)

    def pods(self, selector: str) -> list[Manifest]:
        """Those with these labels, by name."""
        listed = self.api.get(f"{self.worlds.path}/pods", labelSelector=selector)["items"]
        return sorted(listed, key=lambda pod: str(pod["metadata"]["name"]))

    def uids(self, selector: str) -> set[str]:
        """Of all pods with these labels."""
        return {pod["metadata"]["uid"] for pod in self.pods(selector)}

    def running(self, selector: str) -> list[Manifest]:
        """Those of them that run and are to go on."""
        return [
            pod
            for pod in self.pods(selector)
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]

    def await_running(self, selector: str, count: int) -> list[Manifest]:
        """Wait until exactly so many run."""

        def found() -> list[Manifest]:
            pods = self.running(selector)
            return pods if len(pods) == count else []

        return self.until(found)

    def await_none(self, selector: str) -> None:
        """Wait until no pod has these labels."""
        self.until(lambda: not self.pods(selector))

    def await_gang(self, selector: str, count: int, uid: str) -> Seen:
        """The gang as soon as all of it runs: one job, perhaps of several components, in whose order of nodes the members stand."""
        pods = self.await_running(selector, count)
        ids = {pod["metadata"]["labels"][names.JOB_ID_LABEL] for pod in pods}
        job = min(self.worlds.live(uid), key=lambda job: job.id)
        assert {str(job.id)} == ids
        pods.sort(key=_rank)
        assert list(range(count)) == [_rank(pod) for pod in pods]
        assert {str(count)} == {_note(pod, names.WORLD_SIZE_ANNOTATION) for pod in pods}
        order = self._nodes(job)
        nodes = [pod["spec"]["nodeName"] for pod in pods]
        assert order == list(dict.fromkeys(nodes))
        assert sorted(nodes, key=order.index) == nodes
        assert {",".join(order)} == {_note(pod, names.NODELIST_ANNOTATION) for pod in pods}
        return Seen(job, self.name(job), tuple(pods))

    def _nodes(self, job: Job) -> list[str]:
        """In Slurm's own order, that of ranks where no node is in a topology: squeue and scontrol sort by name."""
        sandbox = self.worlds.sandbox
        answer = httpx.get(
            f"{sandbox.slurmrestd_url}/slurm/v0.0.44/job/{job.id}",
            headers={"X-SLURM-USER-TOKEN": sandbox.token()},
            trust_env=False,
        )
        return [
            node["name"]
            for component in answer.json()["jobs"]
            for node in component["job_resources"]["nodes"]["allocation"]
        ]

    def racks(self, gang: Seen) -> set[str]:
        """Those of the gang's nodes."""
        nodes = {pod["spec"]["nodeName"] for pod in gang.pods}
        return {self.api.get(f"/api/v1/nodes/{n}")["metadata"]["labels"][RACK] for n in nodes}

    def name(self, job: Job) -> str:
        """What squeue calls it."""
        options = ("--noheader", "--states=all", "--format=%j")
        components = self.worlds.sandbox.run("squeue", *options, f"--jobs={job.id}").split()
        (name,) = set(components)
        return name

    def ended(self, uid: str, count: int = 1) -> list[Job]:
        """The workload's placeholders, oldest first, once there were so many and all are over."""

        def found() -> list[Job]:
            jobs = self.worlds.accounted(uid)
            return jobs if len(jobs) == count and not any(job.is_live for job in jobs) else []

        return self.until(found)

    def end(self, pod: Manifest, exit_code: int) -> None:
        """End a pod's only container, as a kubelet reports it."""
        name, now = pod["spec"]["containers"][0]["name"], pod["status"]["startTime"]
        terminated = {"exitCode": exit_code, "startedAt": now, "finishedAt": now}
        status = {
            "phase": "Failed" if exit_code else "Succeeded",
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [
                {
                    "name": name,
                    "image": "example.test/image",
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"running": None, "terminated": terminated},
                }
            ],
        }
        self.worlds.set_status(pod["metadata"]["name"], status)

    def restart(self, pod: Manifest) -> None:
        """Say that the pod's only container was started again, as a kubelet does with restartPolicy Always."""
        (container,) = pod["status"]["containerStatuses"]
        again = {"containerStatuses": [{**container, "restartCount": 1}]}
        self.worlds.set_status(pod["metadata"]["name"], again)

    def until(self, found: Callable[[], T]) -> T:
        """Its first true answer."""
        return wait_until(found, LONG_S, sandbox=self.worlds.sandbox)

    def _path(self, kind: Kind, name: str = "") -> str:
        path = f"/apis/{kind.api_version}/namespaces/{self.worlds.namespace}/{kind.plural}"
        return f"{path}/{name}" if name else path


def outcomes(jobs: Sequence[Job]) -> list[tuple[str, str]]:
    """What sacct says of their ends."""
    return [(job.state, job.exit_code) for job in jobs]


def _rank(pod: Manifest) -> int:
    return int(_note(pod, names.RANK_ANNOTATION))


def _note(pod: Manifest, key: str) -> str:
    return str(pod["metadata"]["annotations"][key])
