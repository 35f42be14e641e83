"""Types for identifiers that must not be confused: both worlds have nodes, names and numbers."""

from typing import NewType

PodUid = NewType("PodUid", str)
"""A pod's `metadata.uid`. Pods are identified by it, never by name: StatefulSets reuse names."""

JobId = NewType("JobId", int)
"""A Slurm job id. Reused after a hard crash of slurmctld: verify with the `Sluid`."""

Sluid = NewType("Sluid", str)
"""Slurm's own unique job id (`step_id.sluid`, Slurm >= 25.05): never reused."""

KubeNode = NewType("KubeNode", str)
"""A Kubernetes node's `metadata.name`."""

SlurmNode = NewType("SlurmNode", str)
"""A Slurm node's `NodeName`."""

ClusterId = NewType("ClusterId", str)
"""The Kubernetes cluster that a placeholder belongs to; by default the uid of the namespace
kube-system."""

WorkloadKey = NewType("WorkloadKey", str)
"""Identifies a workload and its placeholder: `Identity.uid`. For a single pod it is the pod's uid
(`alone_key`), for a Job the Job's uid; a group without a uid of its own has kind, namespace and
name instead. Never look it up by a pod's uid."""

LONGEST_WORKLOAD_KEY = 1024
"""Characters: kind, API group, namespace, name and a number, each as long as Kubernetes allows."""


def alone_key(pod: PodUid) -> WorkloadKey:
    """Return the key of a pod that is a workload of its own."""
    return WorkloadKey(pod)
