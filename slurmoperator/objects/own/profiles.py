"""Worker profiles: the privileges of workers, from full to the minimum that slurmd can run with."""

import enum
from collections.abc import Iterator
from typing import Final

from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.values.faults import Fault

PROFILE_ANNOTATION: Final = "slurm-bridge.dev/worker-profile"
"""On a NodeSet; without it, workers are privileged, as with SchedMD's operator."""


class WorkerProfile(enum.Enum):
    """The privileges of the slurmd container."""

    PRIVILEGED = "privileged"
    """Full access to its machine: cgroups, devices, mounts."""
    PLAIN = "plain"
    """Only what it takes to start jobs as their users: no cgroups, no devices but those of the pod."""


def profile_of(node_set: NodeSetObject) -> WorkerProfile | None:
    """Return the profile of a NodeSet's workers; None if its annotation names no profile."""
    value = node_set.metadata.annotations.get(PROFILE_ANNOTATION, WorkerProfile.PRIVILEGED.value)
    return next((profile for profile in WorkerProfile if profile.value == value), None)


def profile_faults(node_set: NodeSetObject) -> Iterator[Fault]:
    """Yield what is wrong with a NodeSet's profile, or incompatible with it."""
    at = f"metadata.annotations[{PROFILE_ANNOTATION}]"
    profile = profile_of(node_set)
    if profile is None:
        value = node_set.metadata.annotations[PROFILE_ANNOTATION]
        text = f"expected {' or '.join(known.value for known in WorkerProfile)}, found {value}"
        yield Fault(at, text)
    elif profile is WorkerProfile.PLAIN and node_set.spec.has_ssh:
        text = "leave it out: not supported with the profile plain, because pam_slurm_adopt finds a user's job by its cgroup"
        yield Fault("spec.ssh.enabled", text)
