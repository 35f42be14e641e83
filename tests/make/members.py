"""Members of groups, as the controllers of each kind make them."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bridge.domain.model.pods import Pod
from slurmruntime.model.affinity import NodeTerm, Requirement
from slurmruntime.model.objects import KubeObject
from slurmruntime.values import names
from slurmruntime.values.ids import PodUid

CREATED = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
JOBSET = "jobset.sigs.k8s.io/"
LWS = "leaderworkerset.sigs.k8s.io/"
INDEX = "batch.kubernetes.io/job-completion-index"


def pod(name: str, *, uid: str = "", namespace: str = "team-a", **given: Any) -> Pod:
    return Pod(
        uid=PodUid(uid or f"uid-{namespace}-{name}"),
        namespace=namespace,
        name=name,
        created_at=CREATED,
        gates=(names.GATE,),
        finalizers=(names.FINALIZER,),
        **given,
    )


def labelled(name: str, group: str, size: str | None = "3", **given: Any) -> Pod:
    notes = {} if size is None else {names.POD_GROUP_SIZE_ANNOTATION: size}
    return pod(name, labels={names.POD_GROUP_LABEL: group}, annotations=notes, **given)


def owner(kind: str, name: str, *, uid: str = "", **given: Any) -> KubeObject:
    versions = {"Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2"}
    return KubeObject(
        api_version=versions.get(kind, "example.test/v1"),
        kind=kind,
        uid=uid or f"uid-{name}",
        name=name,
        namespace="team-a",
        **given,
    )


def job(name: str = "train", *, gang: str | None = "true", **spec: Any) -> KubeObject:
    notes = {} if gang is None else {names.GANG_ANNOTATION: gang}
    return owner("Job", name, annotations=notes, spec={"parallelism": 4, **spec})


def indexed(index: int, job_name: str = "train") -> Pod:
    return pod(f"{job_name}-{index}-x7z", annotations={INDEX: str(index)})


def replicated(
    name: str, *, replicas: int = 1, parallelism: int = 1, **more: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "replicas": replicas,
        "template": {"spec": {"parallelism": parallelism, "completions": parallelism}},
        **more,
    }


def jobset(*jobs: dict[str, Any], **spec: Any) -> KubeObject:
    return owner("JobSet", "set", spec={"replicatedJobs": list(jobs), **spec})


def of_jobset(part: str, job_index: int, index: int, *, attempt: int = 0, **more: str) -> Pod:
    labels = {
        f"{JOBSET}jobset-uid": "uid-set",
        f"{JOBSET}replicatedjob-name": part,
        f"{JOBSET}job-global-index": str(job_index),
        f"{JOBSET}job-index": str(job_index),
        f"{JOBSET}restart-attempt": str(attempt),
        INDEX: str(index),
    }
    return pod(f"set-{part}-{job_index}-{index}", labels=labels, annotations=more)


def lws(policy: str = "LeaderCreated", **template: Any) -> KubeObject:
    return owner(
        "LeaderWorkerSet",
        "serve",
        spec={"startupPolicy": policy, "leaderWorkerTemplate": {"workerTemplate": template}},
    )


def of_lws(group: int, worker: int, *, size: str = "3", **more: str) -> Pod:
    name = f"serve-{group}" + (f"-{worker}" if worker else "")
    labels = {
        f"{LWS}name": "serve",
        f"{LWS}group-index": str(group),
        f"{LWS}worker-index": str(worker),
    }
    return pod(name, labels=labels, annotations={f"{LWS}size": size, **more})


def placed(member: Pod, uid: str, rank: int, *, job_id: int = 7) -> Pod:
    notes = {
        **member.annotations,
        names.WORKLOAD_ANNOTATION: uid,
        names.RANK_ANNOTATION: str(rank),
        names.NODE_ANNOTATION: "k1",
    }
    labels = {**member.labels, names.JOB_ID_LABEL: str(job_id)}
    pin = Requirement(key="metadata.name", operator="In", values=("k1",))
    terms = (NodeTerm(match_fields=(pin,)),)
    return replace(member, gates=(), annotations=notes, labels=labels, node_terms=terms)
