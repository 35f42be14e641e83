"""Write companions as pods with few rights; admission policy `companions` prevents us from creating any with more."""

import json
from typing import Final

from slurmjobs.companions import collecting, due
from slurmjobs.companions.due import Account
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmruntime.model.objects import JsonDict
from slurmruntime.values import names

VOLUME: Final = "/volume"
_END: Final = "/told"
_RESULTS: Final = "/results"
_FOLLOWER: Final = ("python3", "-m", "slurmjobs.companions.follower")
_COLLECTOR: Final = ("python3", "-m", "slurmjobs.companions.collector")
LOG, COLLECT = "log", "collect"
"""The values of the companion label: the two kinds of companions."""
_BRIDGED: Final = (names.EXTERNAL_NODE_LABEL, names.HYBRID_NODE_LABEL)


def name_of(job: SlurmJobObject) -> str:
    """Return the log companion's name, the same as in Sylabs' operator."""
    return f"{job.metadata.name}-job"


def manifest(job: SlurmJobObject, account: Account, image: str) -> JsonDict:
    """Return the pod that follows a job's output; the image has Python and this package.

    Raises:
        ValueError: The user is root, or there is nothing to follow.
    """
    files = due.files(job)
    if account.uid <= 0 or account.gid < 0 or not files or job.spec.output is None:
        raise ValueError(f"{job.full_name} can have no companion: {account}, {files}")
    volumes = [
        {
            "name": "output",
            "persistentVolumeClaim": {"claimName": job.spec.output.claim_name, "readOnly": True},
        },
        {
            "name": "told",
            "downwardAPI": {
                "items": [
                    {
                        "path": "ended",
                        "fieldRef": {
                            "fieldPath": f"metadata.annotations['{names.ENDED_ANNOTATION}']"
                        },
                    }
                ]
            },
        },
    ]
    return _pod(
        job,
        account,
        name=name_of(job),
        kind=LOG,
        follows=str(job.status.job_id),
        spec={
            "containers": [_follower(name, path, image) for name, path in files.items()],
            "volumes": volumes,
        },
    )


def collector(
    job: SlurmJobObject, account: Account, image: str, *, number: int, seconds: int
) -> JsonDict:
    """Return the pod that copies a job's results, for a try of this number and a time limit in seconds.

    Raises:
        ValueError: The user is root, or a result is not on the output's volume.
    """
    output = job.spec.output
    if account.uid <= 0 or account.gid < 0 or output is None:
        raise ValueError(f"{job.full_name} can have no collector: {account}")
    claims = list(dict.fromkeys(result.to.claim_name for result in job.spec.results))
    order = []
    for result in job.spec.results:
        path = collecting.source(job, result)
        if path is None:
            raise ValueError(f"{job.full_name}: {result.source} is not on the output's volume")
        claim = f"{_RESULTS}/{claims.index(result.to.claim_name)}"
        order.append([f"{VOLUME}/{path}", f"{claim}/{collecting.target(job, result)}"])
    # A claim that is source and target is one volume: some drivers mount a claim only once.
    volumes = {claim: f"results-{index}" for index, claim in enumerate(claims)}
    if output.claim_name not in volumes:
        volumes[output.claim_name] = "output"
    container = _container(
        "collect",
        image,
        # The kubelet expands $(…) in commands, and $$ is its $.
        [*_COLLECTOR, f".slurm-bridge-{job.metadata.uid}", json.dumps(order).replace("$", "$$")],
        memory="256Mi",
        mounts=[
            {"name": volumes[output.claim_name], "mountPath": VOLUME, "readOnly": True},
            *(
                {"name": volumes[claim], "mountPath": f"{_RESULTS}/{index}"}
                for index, claim in enumerate(claims)
            ),
        ],
    )
    return _pod(
        job,
        account,
        name=collecting.name_of(job, number),
        kind=COLLECT,
        follows=collecting.run_of(job),
        spec={
            "activeDeadlineSeconds": seconds,
            "containers": [{**container, "terminationMessagePolicy": "FallbackToLogsOnError"}],
            "volumes": [
                {
                    "name": name,
                    "persistentVolumeClaim": {
                        "claimName": claim,
                        **({"readOnly": True} if name == "output" else {}),
                    },
                }
                for claim, name in volumes.items()
            ],
        },
    )


def _pod(
    job: SlurmJobObject,
    account: Account,
    *,
    name: str,
    kind: str,
    follows: str,
    spec: JsonDict,
) -> JsonDict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "labels": {names.COMPANION_LABEL: kind},
            "annotations": {names.FOLLOWS_ANNOTATION: follows},
            "ownerReferences": [
                {
                    "apiVersion": job.resource.api_version,
                    "kind": job.resource.kind,
                    "name": job.metadata.name,
                    "uid": job.metadata.uid,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 5,
            "affinity": _avoid_slurm_nodes(),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": account.uid,
                "runAsGroup": account.gid,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            **spec,
        },
    }


def _follower(name: str, path: str, image: str) -> JsonDict:
    return _container(
        name,
        image,
        # The kubelet expands $(…) in commands, and $$ is its $.
        [*_FOLLOWER, f"{VOLUME}/{path}".replace("$", "$$"), f"{_END}/ended"],
        memory="64Mi",
        mounts=[
            {"name": "output", "mountPath": VOLUME, "readOnly": True},
            {"name": "told", "mountPath": _END, "readOnly": True},
        ],
    )


def _container(
    name: str, image: str, command: list[str], *, memory: str, mounts: list[JsonDict]
) -> JsonDict:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"cpu": "500m", "memory": memory},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }


def _avoid_slurm_nodes() -> JsonDict:
    away = [{"key": key, "operator": "NotIn", "values": ["true"]} for key in _BRIDGED]
    terms = {"nodeSelectorTerms": [{"matchExpressions": away}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
