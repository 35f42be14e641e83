"""Labels and names that tell the parts of a cluster from each other: those of SchedMD's slurm-operator."""

from typing import Final

APP_LABEL: Final = "app.kubernetes.io/name"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
CLUSTER_LABEL: Final = "slinky.slurm.net/cluster"
"""On a worker: which Controller it belongs to."""
PROTECTED_LABEL: Final = "nodeset.slinky.slurm.net/pod-protect"
"""On a worker's pod, with the value "true": evictions are refused."""

MADE_BY_US: Final = "app.kubernetes.io/managed-by=slurm-bridge"
"""Selects what we have made."""
MANAGER: Final = "slurm-bridge-operator"
"""Our field manager."""
TAKE_OVER_ANNOTATION: Final = "slurm-bridge.dev/take-over"
"""On an object, with the value "true": what another program has made for it becomes ours."""
KEY_NUMBER_ANNOTATION: Final = "slurm-bridge.dev/slurm-key-number"
"""On a Controller: the number of the key that its daemons are to share. That of `slurmKeyRef` is 1."""
LOST_JOBS_ANNOTATION: Final = "slurm-bridge.dev/may-have-lost-jobs"
"""On a worker's pod: why its slurmd starts only when slurmctld misses what has ended with the pod before it."""

WORKER_APP: Final = "slurmd"

_COMPONENTS: Final = {
    "slurmctld": "controller",
    "slurmdbd": "accounting",
    "slurmrestd": "restapi",
    "login": "login",
    "token": "token",
    WORKER_APP: "worker",
}


def selecting(app: str, instance: str) -> dict[str, str]:
    """Return the labels by which the pods of one object are selected; they never change.

    Args:
        app: what runs there, such as slurmctld.
        instance: the name of the object.
    """
    return {INSTANCE_LABEL: instance, APP_LABEL: app}


def standard(app: str, instance: str) -> dict[str, str]:
    """Return all labels of what belongs to one object."""
    return {
        **selecting(app, instance),
        "app.kubernetes.io/component": _COMPONENTS[app],
        "app.kubernetes.io/part-of": "slurm",
        "app.kubernetes.io/managed-by": "slurm-bridge",
    }
