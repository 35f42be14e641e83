"""Which of Kubernetes' own tests are run, and why a bridged namespace may fail some of them."""

from collections.abc import Mapping
from dataclasses import dataclass

QUICK = {
    "jobs": r"\[sig-apps\] (Job|TTL)",
    "deployments": r"\[sig-apps\] (Deployment|Replica)",
    "pods": r"\[sig-node\] (Pod|Container|Init|Ephemeral|Privileged)",
    "contents": r"\[sig-node\] (Config|Downward|Image|Kubelet|Lifecycle|Secret|Security|Variable)",
}
"""Most of these take seconds. Run at the same time, each by a process of its own."""
PATIENT = {
    "crons": r"\[sig-apps\] CronJob",
    "sets": r"\[sig-apps\] (StatefulSet|Disruption)",
    "probes": r"\[sig-node\] Prob",
}
"""These wait for minutes, on purpose: run when the others are done, in the time that is left."""
LEFT_OUT: Mapping[str, str] = {
    r"\[Serial\]|\[Disruptive\]": "they want the cluster for themselves",
    r"\[Slow\]|\[Flaky\]": "they take minutes each, or fail now and then by Kubernetes' own account",
    r"\[Feature:|\[FeatureGate:|\[Alpha\]|\[Beta\]": "they want a cluster with features switched on, or an add-on",
    r"DaemonSet|Daemon set|ControllerRevision|PodOSRejection": "their pods are placed by hand, past any scheduler",
    r"Container Lifecycle Hook|pod failure policy|are not locally restarted|evicted statefulset": "their pods ask for a"
    " node by its name, any of the cluster's; Slurm has not all of them here",
    r"RuntimeClass|Sysctl|AppArmor|SELinux|seccomp": "they want a node prepared for them",
    r"private registry|pull (from|image)|image pull|unrecognized image|image-pull": "they want a registry",
    r"Lease|NodeLease|node lease|PodTemplates|PodTemplate": "they create no pod",
}
"""A pattern of names -> why those are run in neither namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """Why a test that passes in a plain namespace does not in a bridged one."""

    pattern: str
    """Of the test's name."""
    reason: str


EXCUSED: tuple[Excuse, ...] = (
    Excuse(
        pattern="release (no longer|non-?)\\s?matching",
        reason="the test writes a pod's labels anew, without its job's id: an admission policy lets nobody remove that",
    ),
    Excuse(
        pattern="start an ephemeral container in an existing pod",
        reason="the test wants the pod's metadata.generation to be 1: lifting the scheduling gate makes it 2",
    ),
    Excuse(
        pattern="Pod InPlace Resize",
        reason="a pod placed by Slurm is not resized: its job holds what the pod asked for when it was created",
    ),
)


SETS_LEFT_OUT: Mapping[str, str] = {
    "metrics endpoint": "it wants the controller's own Service, and an image with curl",
    "gang scheduling": "it wants Volcano, another scheduler",
    "multiple retention policies": "it wants a StorageClass that makes volumes",
}
"""The same for JobSet's and LeaderWorkerSet's tests."""
SETS_EXCUSED: tuple[Excuse, ...] = (
    Excuse(
        pattern="add schedulingGates to PodTemplate while resuming",
        reason="the test wants its own scheduling gate to be the pod's only one: ours is there, too",
    ),
)
