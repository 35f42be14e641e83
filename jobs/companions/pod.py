"""A companion as a pod: what it may do is little, and admission policy `companions` lets us make none that may do more."""

from typing import Any, Final

from bridge.domain import names
from jobs.companions import due
from jobs.companions.due import Account
from jobs.objects.slurmjob import SlurmJobObject

VOLUME: Final = "/volume"
_TOLD: Final = "/told"
_PROGRAM: Final = ("python3", "-m", "jobs.companions.follower")
_BRIDGED: Final = (names.EXTERNAL_NODE_LABEL, names.HYBRID_NODE_LABEL)


def name_of(job: SlurmJobObject) -> str:
    """Return the companion's name: Sylabs' name for it."""
    return f"{job.metadata.name}-job"


def manifest(job: SlurmJobObject, account: Account, image: str) -> dict[str, Any]:
    """Return the pod that follows a job's output.

    Args:
        job: With an output that can be followed.
        account: Whose the job is; never root.
        image: One with Python and this package.

    Raises:
        ValueError: It is root's, or there is nothing to follow.
    """
    files = due.files(job)
    if account.uid <= 0 or account.gid < 0 or not files or job.spec.output is None:
        raise ValueError(f"{job.full_name} can have no companion: {account}, {files}")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(job),
            "namespace": job.metadata.namespace,
            "labels": {names.COMPANION_LABEL: "log"},
            "annotations": {names.FOLLOWS_ANNOTATION: str(job.status.job_id)},
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
            "affinity": _not_on_slurms_nodes(),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": account.uid,
                "runAsGroup": account.gid,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(name, path, image) for name, path in files.items()],
            "volumes": [
                {
                    "name": "output",
                    "persistentVolumeClaim": {
                        "claimName": job.spec.output.claim_name,
                        "readOnly": True,
                    },
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
            ],
        },
    }


def _container(name: str, path: str, image: str) -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        # The kubelet expands $(…) in commands, and $$ is its $.
        "command": [*_PROGRAM, f"{VOLUME}/{path}".replace("$", "$$"), f"{_TOLD}/ended"],
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"cpu": "500m", "memory": "64Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "output", "mountPath": VOLUME, "readOnly": True},
            {"name": "told", "mountPath": _TOLD, "readOnly": True},
        ],
    }


def _not_on_slurms_nodes() -> dict[str, Any]:
    away = [{"key": key, "operator": "NotIn", "values": ["true"]} for key in _BRIDGED]
    terms = {"nodeSelectorTerms": [{"matchExpressions": away}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
