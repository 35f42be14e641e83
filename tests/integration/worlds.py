"""Both worlds as people see them: a namespace that Slurm places, and what squeue and sacct say of its pods."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from bridge.domain.model import identities
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.integration import strangers
from tests.servers import wait_until

T = TypeVar("T")
Manifest = dict[str, Any]

SANDBOX = "sandbox.slurm-bridge.dev"
"""Prefix of the annotations by which KWOK plays a pod's life."""
PATIENCE_S = 60.0
"""For whatever should take a second or two, on a machine that has other things to do."""
LIVE = frozenset({"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "STOPPED"})


@dataclass(frozen=True, slots=True)
class Job:
    """One line of squeue or sacct."""

    id: int
    state: str
    """Base state, without what sacct says after it (CANCELLED by 0)."""
    exit_code: str
    nodes: str
    reason: str
    ended_at: datetime | None
    identity: identities.Identity | None
    """Whose placeholder it is; None for a stranger's job."""

    @property
    def uid(self) -> str:
        """The workload's; "" for a stranger's job."""
        return self.identity.key if self.identity else ""

    @property
    def is_live(self) -> bool:
        """Not over."""
        return self.state in LIVE

    @property
    def namespace(self) -> str:
        """The workload's; "" for a stranger's job."""
        return self.identity.namespace if self.identity else ""


def container(cpus: str = "1", memory: str = "64Mi", name: str = "main") -> Manifest:
    """One that asks for so much, and takes no more memory."""
    resources = {"requests": {"cpu": cpus, "memory": memory}, "limits": {"memory": memory}}
    return {"name": name, "image": "example.test/image", "resources": resources}


HOST_PORT = {"ports": [{"containerPort": 8080, "hostPort": 8080}]}
"""Of a container: nothing that Slurm knows, so nothing can hold it back from Slurm."""


def played(
    *,
    seconds: float | None = None,
    exit_code: int = 0,
    reason: str = "",
    stop_seconds: float | None = None,
    stop_exit_code: int | None = None,
) -> dict[str, str]:
    """Annotations that say how KWOK plays a pod; without seconds it runs until it is deleted."""
    notes = {
        "run-seconds": seconds,
        "exit-code": exit_code or None,
        "reason": reason or None,
        "stop-seconds": stop_seconds,
        "stop-exit-code": stop_exit_code,
    }
    return {f"{SANDBOX}/{key}": str(value) for key, value in notes.items() if value is not None}


def job_manifest(name: str, *, annotations: dict[str, str], **spec: object) -> Manifest:
    """A Job for which a disruption does not count as a failure, and which may have none."""
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container()], **spec},
    }
    ignored = {"type": "DisruptionTarget", "status": "True"}
    return {
        "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0,
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [ignored]}]},
            "template": template,
        },
    }


def _first(found: Callable[[], T | None], deadline_s: float, sandbox: Sandbox) -> T:
    """The first answer that is one."""
    answer = wait_until(found, deadline_s, sandbox=sandbox)
    assert answer is not None
    return answer


class Worlds:
    """One namespace, and Slurm."""

    def __init__(self, sandbox: Sandbox, namespace: str) -> None:
        self.sandbox = sandbox
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}"
        pods = sandbox.admin.get(f"{self.path}/pods")
        self._since: str = pods["metadata"]["resourceVersion"]

    # -- Kubernetes -------------------------------------------------------------------------------

    def submit(
        self,
        name: str,
        *,
        cpus: str = "1",
        memory: str = "64Mi",
        annotations: Mapping[str, str] | None = None,
        by: Api | None = None,
        **spec: object,
    ) -> str:
        """Create an ordinary pod, as the administrator unless told otherwise; returns its uid."""
        metadata = {"name": name, "annotations": dict(annotations or {})}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {
                "containers": [container(cpus, memory)],
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 5,
                **spec,
            },
        }
        api = by or self.sandbox.admin
        return str(api.create(f"{self.path}/pods", body)["metadata"]["uid"])

    def pod(self, name: str) -> Manifest | None:
        """The pod as it is; None if there is none."""
        try:
            return self.sandbox.admin.get(f"{self.path}/pods/{name}")
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def delete(self, name: str) -> None:
        """As `kubectl delete` does."""
        self.sandbox.admin.delete(f"{self.path}/pods/{name}")

    def clear(self) -> None:
        """Have every pod of the namespace go at once: the next test needs the room."""
        self.sandbox.admin.delete(f"{self.path}/pods", gracePeriodSeconds=1)

    def events(self, name: str) -> dict[str, str]:
        """What was said of a pod: the last note of each reason."""
        return dict(self.notes(name))

    def notes(self, name: str) -> list[tuple[str, str]]:
        """What was said of a pod: reason and note of each Event."""
        listed = self.sandbox.admin.get(
            f"{self.path}/events", fieldSelector=f"involvedObject.name={name}"
        )
        return [(event["reason"], event["message"]) for event in listed["items"]]

    def await_pod(
        self, name: str, is_so: Callable[[Manifest], object], deadline_s: float = PATIENCE_S
    ) -> Manifest:
        """The pod as soon as it is so."""

        def found() -> Manifest | None:
            pod = self.pod(name)
            return pod if pod is not None and is_so(pod) else None

        return _first(found, deadline_s, self.sandbox)

    def await_passing(
        self, selector: str, is_so: Callable[[Manifest], object], deadline_s: float = PATIENCE_S
    ) -> Manifest:
        """The first state that is so of the pods with this field or label selector, even if it lasted but a moment."""
        kind = "fieldSelector" if selector.startswith("metadata.") else "labelSelector"
        chosen, pods = {kind: selector}, f"{self.path}/pods"
        since = self._since

        def found() -> Manifest | None:
            nonlocal since
            try:
                states = self.sandbox.admin.changes(pods, since, chosen)
                seen = [pod["metadata"]["resourceVersion"] for pod in states]
                since = seen[-1] if seen else since
            except ApiError as error:
                if error.status != 410:  # what is too long ago has been forgotten
                    raise
                listed = self.sandbox.admin.get(pods, **chosen)
                states, since = listed["items"], listed["metadata"]["resourceVersion"]
            return next((pod for pod in states if is_so(pod)), None)

        return _first(found, deadline_s, self.sandbox)

    def await_eviction(self, name: str, deadline_s: float = PATIENCE_S) -> Manifest:
        """The pod at the moment when it was first asked to go; its containers may be gone by now."""
        is_deleted = "deletionTimestamp"
        return self.await_passing(
            f"metadata.name={name}", lambda pod: is_deleted in pod["metadata"], deadline_s
        )

    def await_one_pod(
        self,
        selector: str,
        is_so: Callable[[Manifest], object],
        deadline_s: float = PATIENCE_S,
    ) -> Manifest:
        """The first pod with these labels that is so."""

        def found() -> Manifest | None:
            listed = self.sandbox.admin.get(f"{self.path}/pods", labelSelector=selector)
            return next((pod for pod in listed["items"] if is_so(pod)), None)

        return _first(found, deadline_s, self.sandbox)

    def create_job(self, manifest: Manifest) -> None:
        """As `kubectl create` does."""
        self.sandbox.admin.create(f"/apis/batch/v1/namespaces/{self.namespace}/jobs", manifest)

    def await_job(self, name: str, kind: str) -> None:
        """Wait until a Job has this condition."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}"

        def has_it() -> bool:
            job = self.sandbox.admin.get(path)
            return condition(job, kind).get("status") == "True"

        wait_until(has_it, PATIENCE_S, sandbox=self.sandbox)

    def set_status(self, name: str, status: Manifest) -> None:
        """As a kubelet does."""
        self.sandbox.admin.request(
            "PATCH",
            f"{self.path}/pods/{name}/status",
            {"status": status},
            content_type="application/strategic-merge-patch+json",
        )

    def await_phase(self, name: str, *phases: str, deadline_s: float = PATIENCE_S) -> Manifest:
        """The pod in one of these phases, even if it has ended since."""
        reached = {*phases, "Succeeded", "Failed"}
        pod = self.await_pod(name, lambda pod: pod["status"]["phase"] in reached, deadline_s)
        if pod["status"]["phase"] in phases:
            return pod
        uid = pod["metadata"]["uid"]

        def was_in_it(pod: Manifest) -> bool:
            return pod["metadata"]["uid"] == uid and pod["status"]["phase"] in phases

        return self.await_passing(f"metadata.name={name}", was_in_it, deadline_s)

    def await_gone(self, name: str, deadline_s: float = PATIENCE_S) -> None:
        """Wait until the API server does not know the pod any more."""
        wait_until(lambda: self.pod(name) is None, deadline_s, sandbox=self.sandbox)

    def await_event(self, name: str, reason: str, deadline_s: float = PATIENCE_S) -> str:
        """The note of an Event about the pod."""
        return _first(lambda: self.events(name).get(reason), deadline_s, self.sandbox)

    # -- Slurm ------------------------------------------------------------------------------------

    def queue(self) -> list[Job]:
        """What squeue shows, and what Slurm still remembers of jobs that are over."""
        fields = "JobID:|,State:|,NodeList:|,Reason:|,admin_comment:4000"
        lines = self.sandbox.run("squeue", "--noheader", "--states=all", "-O", fields).splitlines()
        return [_queued(line.strip().split("|", 4)) for line in lines]

    def jobs(self, uid: str) -> list[Job]:
        """The workload's placeholders, those that are over too, in no particular order."""
        return [job for job in self.queue() if job.uid == uid]

    def live(self, uid: str) -> list[Job]:
        """The workload's placeholders that are not over."""
        return [job for job in self.jobs(uid) if job.state in LIVE]

    def accounted(self, *uids: str) -> list[Job]:
        """What sacct has of these workloads, oldest first; it keeps quiet about jobs that were held to their end."""
        fields = "JobID,State,ExitCode,NodeList,Reason,End,AdminComment"
        arguments = ("-X", "-P", "-n", "-S", "1970-01-01", "-o", fields)
        lines = self.sandbox.run("sacct", *arguments).splitlines()
        jobs = [_accounted(line.split("|", 6)) for line in lines]
        return [job for job in jobs if job.uid in uids]

    def time_limit(self, job_id: int) -> str:
        """What sacct says of it, [days-]hours:minutes:seconds."""
        limit = ("sacct", "-X", "-P", "-n", "-S", "1970-01-01", "-o", "Timelimit")
        return self.sandbox.run(*limit, "-j", str(job_id)).strip()

    def await_live(
        self,
        uid: str,
        is_so: Callable[[Job], object] = lambda _: True,
        deadline_s: float = PATIENCE_S,
    ) -> Job:
        """The workload's one live placeholder, as soon as it is so."""

        def found() -> Job | None:
            jobs = self.live(uid)
            return jobs[0] if len(jobs) == 1 and is_so(jobs[0]) else None

        return _first(found, deadline_s, self.sandbox)

    def await_accounted(self, uid: str, deadline_s: float = PATIENCE_S) -> Job:
        """The workload's only placeholder ever, once it is over."""

        def found() -> Job | None:
            jobs = self.accounted(uid)
            return jobs[0] if jobs and jobs[0].state not in LIVE else None

        job = _first(found, deadline_s, self.sandbox)
        assert [job] == self.accounted(uid)
        return job

    def scontrol(self, *arguments: str) -> str:
        """As Slurm's administrator."""
        return self.sandbox.run("scontrol", *arguments)

    @contextmanager
    def strangers_on(
        self, *nodes: str, options: Sequence[str] = (), deadline_s: float = PATIENCE_S
    ) -> Iterator[dict[str, int]]:
        """Jobs of Slurm's other users that have these nodes for themselves, by node; those that are left go in the end."""
        with strangers.on(self.sandbox, nodes, options=options, deadline_s=deadline_s) as jobs:
            yield jobs

    def scancel(self, job_id: int) -> None:
        """As Slurm's administrator."""
        self.sandbox.run("scancel", str(job_id))


def condition(pod: Manifest, kind: str = names.ALLOCATED_CONDITION) -> Manifest:
    """A pod's condition; {} if it has none of that kind."""
    found: Sequence[Manifest] = pod["status"].get("conditions", [])
    return next((one for one in found if one["type"] == kind), {})


def job_id(pod: Manifest) -> int | None:
    """The label; None if it has none."""
    label = pod["metadata"].get("labels", {}).get(names.JOB_ID_LABEL)
    return int(label) if label else None


def is_gated(pod: Manifest) -> bool:
    """Our gate is on."""
    return {"name": names.GATE} in pod["spec"].get("schedulingGates", [])


def is_released(pod: Manifest) -> bool:
    """Our finalizer is off."""
    return names.FINALIZER not in pod["metadata"].get("finalizers", [])


def moment(text: str) -> datetime:
    """A time of the API server's."""
    return datetime.fromisoformat(text)


def _queued(fields: Sequence[str]) -> Job:
    id_, state, nodes, reason, comment = fields
    return Job(int(id_), state, "", nodes, reason, None, identities.decode(comment.strip()))


def _accounted(fields: Sequence[str]) -> Job:
    id_, state, exit_code, nodes, reason, end, comment = fields
    base = re.split(r"[ +]", state)[0]
    leader, _, offset = id_.partition("+")  # a component of a heterogeneous job
    number = int(leader) + int(offset or 0)
    return Job(
        number, base, exit_code, nodes, reason, _end(end), identities.decode(comment.strip())
    )


def _end(text: str) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text[:1].isdigit() else None
