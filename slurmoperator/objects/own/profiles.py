"""With which rights workers run: as Slurm likes it best, or with as few as it can do with."""

import enum
from collections.abc import Iterator
from typing import Final

from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.values.faults import Fault

PROFILE_ANNOTATION: Final = "slurm-bridge.dev/worker-profile"
"""On a NodeSet; without it, its workers are privileged, as those of SchedMD's operator."""


class WorkerProfile(enum.Enum):
    """What the container of slurmd may do."""

    PRIVILEGED = "privileged"
    """Anything on its machine: control groups, devices, mounts."""
    PLAIN = "plain"
    """Start jobs as their users, and nothing else: no control groups, no devices but those of the pod."""


def profile_of(node_set: NodeSetObject) -> WorkerProfile | None:
    """Return the profile of its workers; None if it names one that there is not."""
    said = node_set.metadata.annotations.get(PROFILE_ANNOTATION, WorkerProfile.PRIVILEGED.value)
    return next((each for each in WorkerProfile if each.value == said), None)


def profile_faults(node_set: NodeSetObject) -> Iterator[Fault]:
    """Find what is wrong with the profile of a NodeSet, or does not go with it."""
    at = f"metadata.annotations[{PROFILE_ANNOTATION}]"
    profile = profile_of(node_set)
    if profile is None:
        said = node_set.metadata.annotations[PROFILE_ANNOTATION]
        yield Fault(
            at, f"expected {' or '.join(each.value for each in WorkerProfile)}, found {said}"
        )
    elif profile is WorkerProfile.PLAIN and node_set.spec.ssh and node_set.spec.ssh.enabled:
        text = "leave it out with the profile plain: pam_slurm_adopt finds a user's job by its control group"
        yield Fault("spec.ssh.enabled", text)
