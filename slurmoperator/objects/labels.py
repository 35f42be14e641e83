"""Labels and annotations of the objects of a cluster; SchedMD's slurm-operator uses the same labels."""

from typing import Final

from slurmruntime.crd.metadata import ObjectMetadata

APP_LABEL: Final = "app.kubernetes.io/name"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
CLUSTER_LABEL: Final = "slinky.slurm.net/cluster"
"""On a worker: its Controller."""
PROTECTED_LABEL: Final = "nodeset.slinky.slurm.net/pod-protect"
"""On a worker's pod, with the value "true": the pod must not be evicted."""

MADE_BY_US: Final = "app.kubernetes.io/managed-by=slurm-bridge"
"""Label selector for the objects that we created."""
MANAGER: Final = "slurm-bridge-operator"
"""Our field manager."""
TAKE_OVER_ANNOTATION: Final = "slurm-bridge.dev/take-over"
"""On an object, with the value "true": take over what another program created for it."""
KEY_NUMBER_ANNOTATION: Final = "slurm-bridge.dev/slurm-key-number"
"""On a Controller: the number of the key that its daemons should share. The key of `slurmKeyRef` is 1."""
LOST_JOBS_ANNOTATION: Final = "slurm-bridge.dev/may-have-lost-jobs"
"""On a worker's pod: why its slurmd waits until slurmctld has noticed that the previous pod's jobs are gone."""

WORKER_APP: Final = "slurmd"

_COMPONENTS: Final = {
    "slurmctld": "controller",
    "slurmdbd": "accounting",
    "slurmrestd": "restapi",
    "login": "login",
    "token": "token",
    WORKER_APP: "worker",
}


def takes_over(metadata: ObjectMetadata) -> bool:
    """Check whether we take over what another program created for an object."""
    return metadata.annotations.get(TAKE_OVER_ANNOTATION) == "true"


def selecting(app: str, instance: str) -> dict[str, str]:
    """Return the labels that select the pods of a daemon (`app`) of one object; they never change."""
    return {INSTANCE_LABEL: instance, APP_LABEL: app}


def selector(app: str, instance: str) -> str:
    """Return the label selector of these pods."""
    return ",".join(f"{key}={value}" for key, value in selecting(app, instance).items())


def standard(app: str, instance: str) -> dict[str, str]:
    """Return all standard labels for what belongs to one object."""
    return {
        **selecting(app, instance),
        "app.kubernetes.io/component": _COMPONENTS[app],
        "app.kubernetes.io/part-of": "slurm",
        "app.kubernetes.io/managed-by": "slurm-bridge",
    }
