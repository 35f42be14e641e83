"""Identifiers that must not be mixed up: both worlds have nodes, names and numbers."""

from typing import NewType

PodUid = NewType("PodUid", str)
"""A pod's `metadata.uid`. Pods are known by this and never by name: StatefulSets re-use names."""

JobId = NewType("JobId", int)
"""A Slurm job id. Re-used after a hard crash of slurmctld: verify with the `Sluid`."""

Sluid = NewType("Sluid", str)
"""Slurm's own unique job id (`step_id.sluid`, Slurm >= 25.05): never re-used."""

KubeNode = NewType("KubeNode", str)
"""A Kubernetes node's `metadata.name`."""

SlurmNode = NewType("SlurmNode", str)
"""A Slurm node's `NodeName`."""

ClusterId = NewType("ClusterId", str)
"""Which Kubernetes cluster a placeholder belongs to; by default the uid of the namespace kube-system."""

WorkloadKey = NewType("WorkloadKey", str)
"""What a workload and its placeholder are known by: `Identity.uid`. A single pod's is its uid (`alone_key`), a Job's the
Job's uid; a group without a uid of its own has kind, namespace and name instead. Never look it up by a pod's uid."""


def alone_key(pod: PodUid) -> WorkloadKey:
    """Return the key of a pod that is a workload of its own."""
    return WorkloadKey(pod)
