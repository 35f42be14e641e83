"""Every key that slurm-bridge writes to or reads from either system, in one place.

Names that users and administrators of SchedMD's slurm-bridge already know are kept, so that
manifests work unchanged (facts: `docs/architecture.md`, "Keys").
"""

from collections.abc import Mapping
from types import MappingProxyType

SCHEDULER_NAME = "slurm-bridge-scheduler"
"""The kube-scheduler profile that asks our extender."""

_BINDER_SUFFIX = "-binder"

DEFAULT_SCHEDULER_NAME = "default-scheduler"
"""The API server's default for `spec.schedulerName`, set before admission when the user wrote
nothing."""

RELEASE_NAMESPACE = "slurm-bridge-system"
"""Where slurm-bridge itself is installed by default. Not `slurm-bridge`: users of SchedMD's bridge
keep their workloads there."""

ENABLED_LABEL = "slurm-bridge.dev/enabled"
"""Namespace label, set to "true" by an administrator: Slurm places the pods created here."""

REQUEST_PREFIX = "slurmjob.slinky.slurm.net/"
"""Annotations of a pod or its root owner that state the request to Slurm; the fields:
`bridge.domain.request.overrides`."""

JOB_ID_LABEL = "scheduler.slinky.slurm.net/slurm-jobid"
"""Pod label: the placeholder's job id. A cache for people and watches; the truth is in Slurm."""

NODE_ANNOTATION = "slinky.slurm.net/slurm-node"
"""Pod annotation: the Kubernetes node that Slurm chose. Written once, never changed."""

SLUID_ANNOTATION = "slurm-bridge.dev/slurm-sluid"
"""Pod annotation: the placeholder's SLUID, which identifies that job for ever; after a crash of
slurmctld the job id may belong to another job."""

GRANT_ANNOTATION = "slurm-bridge.dev/slurm-grant"
"""Pod annotation: what Slurm granted (`bridge.domain.model.grant`), so that the same can be
requested again if Slurm loses the placeholder."""

WHEN_LOST_ANNOTATION = "slurm-bridge.dev/when-lost"
"""Pod annotation: an operator's decision if it is unknown whether a lost placeholder had ended,
`restore` or `let-go`."""

EVICT_UNTIL_ANNOTATION = "slurm-bridge.dev/evict-until"
"""On our own namespace, set by an operator: until then any number of pods may be evicted at
once."""

CPUS_ANNOTATION = "slurm-bridge.dev/cpus"
"""Pod annotation, written when a pod is pinned and node agents are on: which of its node's CPUs Slurm
gave it, as Slurm numbers them: `0-1,4`."""

GATE = "slurm-bridge.dev/placement"
"""Pod scheduling gate: waits for Slurm. While it is on, the extender's leader owns the pod."""

FINALIZER = "slurm-bridge.dev/placeholder"
"""Pod finalizer: a placeholder may exist."""

BRIDGED_LABEL = "slurm-bridge.dev/bridged"
"""Pod label, "true": handed to Slurm. The policy that guards such pods applies to no others, except where
an older release may have left some."""

SLURM_JOB_FINALIZER = "slurm-bridge.dev/slurm-job"
"""SlurmJob finalizer: a Slurm job of it may exist."""

COMPANION_LABEL = "slurm-bridge.dev/companion"
"""Pod label: what the companion of a SlurmJob is for, `log`. Only we can write it, but it grants nothing: a
companion is recognized by its creator."""

FOLLOWS_ANNOTATION = "slurm-bridge.dev/follows"
"""Annotation of a companion: the Slurm job whose output it prints."""

ENDED_ANNOTATION = "slurm-bridge.dev/ended"
"""Annotation of a companion: the exit code of its job, once that has ended."""

SCHEDMDS_FINALIZER = "scheduler.slinky.slurm.net/finalizer"
"""Pod finalizer of SchedMD's slurm-bridge; ours replaces it when a pod is taken over."""

ALLOCATED_CONDITION = "slurm-bridge.dev/Allocated"
"""Pod condition. False: the reason is Slurm's, in CamelCase. True: the message names job and
node."""

POD_SCHEDULED = "PodScheduled"
"""Kubernetes' own pod condition: the pod has a node, or why not."""

UNSCHEDULABLE = "Unschedulable"
"""Reason of that condition, kube-scheduler's word: no node suits the pod."""

SCHEDULER_ERROR = "SchedulerError"
"""Reason of that condition, kube-scheduler's word: something went wrong on the way."""

DISRUPTION_TARGET = "DisruptionTarget"
"""The pod condition that a Job's podFailurePolicy checks, KEP-3329."""

FROZEN_PREFIXES = (
    "slurm-bridge.dev/",
    REQUEST_PREFIX,
    "scheduler.slinky.slurm.net/",
    "slinky.slurm.net/",
    "scheduling.x-k8s.io/",
    "kueue.x-k8s.io/pod-group-",
    "jobset.sigs.k8s.io/jobset-",
    "jobset.sigs.k8s.io/replicatedjob-",
    "jobset.sigs.k8s.io/job-",
    "jobset.sigs.k8s.io/group-",
    "jobset.sigs.k8s.io/global-",
    "leaderworkerset.sigs.k8s.io/",
)
"""Prefixes of the pod labels and annotations that only we may change after CREATE: an admission
policy of the chart.

All our own keys, and those by which workload controllers mark a group: a placeholder's input must not
change."""

REQUESTER_ANNOTATION = "slurm-bridge.dev/requester"
"""Pod annotation: the authenticated user that created it. The webhook writes it at CREATE and
overwrites any value already there."""

RULES_ANNOTATION = "slurm-bridge.dev/policy-rules"
"""Pod annotation, like `REQUESTER_ANNOTATION`: the policy rules that match its requester, separated
by commas."""

OWNER_ANNOTATION = "slurm-bridge.dev/owner"
"""Pod annotation, like `REQUESTER_ANNOTATION`: the uid of the controller that owned the pod at
CREATE. A pod may be released and adopted by another one later."""

CANCEL_ORPHANS_UNTIL_ANNOTATION = "slurm-bridge.dev/cancel-orphans-until"
"""Annotation of slurm-bridge's own namespace: until this moment (RFC 3339), placeholders without
pods are cancelled however many there are."""

MANAGED_NODE_TAINT = "slinky.slurm.net/managed-node"
"""Node taint that keeps other pods off the nodes Slurm allocates."""

SLURM_NODE_NAME_LABEL = "slinky.slurm.net/slurm-nodename"
"""Node label: Slurm's name of this node, where it differs from the Kubernetes name."""

EXTERNAL_NODE_LABEL = "scheduler.slinky.slurm.net/external-node"
"""Node label, "true": register this node in Slurm as an external node."""

HYBRID_NODE_LABEL = "slurm-bridge.dev/hybrid-node"
"""Node label, "true": a slurmd runs on this node too. Slurm's record is its own; we mark it and
share the machine."""

CPU_MANAGER_LABEL = "slurm-bridge.dev/cpu-manager"
"""Node label of a hybrid node: `static` or `none`, as the kubelet's `cpuManagerPolicy`. `none` on an
external one: a node agent may write its cpusets."""

DEVICE_ORDER_LABEL = "slurm-bridge.dev/device-order"
"""Node label of a hybrid node, `by-name`: slurmd's gres.conf lists the devices in the order of their
names in ResourceSlices. Only then may pods claim devices there."""

WEIGHT_ANNOTATION = "slurm-bridge.dev/weight"
"""Node annotation: Slurm fills the nodes of the lowest weight first; 1 if absent."""

THREADS_ANNOTATION = "slurm-bridge.dev/threads-per-core"
"""Node annotation: CPUs that are threads of one core, which Slurm then allocates together; 1 if
absent."""

CORDON_ANNOTATION = "slurm-bridge.dev/cordoned"
"""Node annotation: the cordon is ours, and why. A cordon without it is not ours, and we
never lift it."""

SLURM_STATE_CONDITION = "slurm-bridge.dev/SlurmState"
"""Node condition. True: Slurm starts jobs there. False: it does not; reason and message say why,
who set it and since when."""

PARTITIONS_ANNOTATION = "scheduler.slinky.slurm.net/external-node-partitions"
"""Node annotation: comma-separated partitions; they become Slurm features of the same names."""

TOPOLOGY_ANNOTATION = "topology.slinky.slurm.net/spec"
"""Node annotation: Slurm's topology string, such as `topo-switch:s1`."""

BRIDGED_FEATURE = "slurm-bridge"
"""Slurm node feature of every node we registered, so that slurm.conf can say `NodeSet=bridge
Feature=slurm-bridge`."""

CLUSTER_FEATURE = "slurm-bridge.dev/cluster"
"""Slurm node feature `<this>=<cluster id>`: our mark on a node. Features are set when the node is
created and survive restarts of slurmctld."""

TAINTS_FEATURE = "slurm-bridge.dev/taints"
"""Slurm node feature `<this>=<digest>`: the same on nodes with the same lasting taints, `none`
without any. So a job names no nodes because of taints, and a new node is right for the jobs that
wait."""

PARKED_FEATURE = "slurm-bridge.dev/parked"
"""Slurm node feature of a node that must not be allocated yet: see
`bridge.domain.nodes.parking`."""

SPARE_NODE = "slurm-bridge-spare"
"""`<this>-<cluster id>`: a Slurm node that is deleted as soon as it is created, which makes Slurm
rebuild its partitions."""

GANG_ANNOTATION = "slurm-bridge.dev/gang"
"""Annotation of a Job, a JobSet or their pod template. "true": one placeholder for all pods;
"false": one for each."""

ON_FAILURE_ANNOTATION = "slurm-bridge.dev/on-member-failure"
"""Annotation of a gang's pods. "end": when one of them fails, all others are evicted; otherwise
they keep running and wait for a replacement."""

WHEN_FULL_ANNOTATION = "slurm-bridge.dev/when-full"
"""Annotation of a gang's pods: what happens to one that finds no free slot while the gang runs
(`WhenFull`)."""

POD_GROUP_LABEL = "slurm-bridge.dev/pod-group"
"""Pod label: the pods of a namespace with the same value are one gang; no controller or CRD is
needed."""

POD_GROUP_SIZE_ANNOTATION = "slurm-bridge.dev/pod-group-size"
"""Annotation of such pods, or of a root owner of any kind, which makes all its pods one gang: how
many pods it has."""

WORKLOAD_ANNOTATION = "slurm-bridge.dev/workload"
"""Pod annotation, written when a gang's member is pinned: the workload's uid, as in its
placeholder's identity."""

RANK_ANNOTATION = "slurm-bridge.dev/rank"
"""Pod annotation, written when a gang's member is pinned: its slot in the allocation, 0 … world
size - 1."""

WORLD_SIZE_ANNOTATION = "slurm-bridge.dev/world-size"
"""Pod annotation, written when a gang's member is pinned: how many slots the placeholder has."""

NODELIST_ANNOTATION = "slurm-bridge.dev/nodelist"
"""Pod annotation, written when a gang's member is pinned: the Kubernetes nodes of all slots, each
once, in the order of their ranks."""

AUTOSCALERS: Mapping[str, str] = MappingProxyType(
    {
        "karpenter.sh/do-not-disrupt": "true",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    }
)
"""Pod annotations that keep Karpenter and Cluster Autoscaler from ending a pod to save a node; existing
values are kept."""

WRITTEN_AT_THE_PIN = (
    NODE_ANNOTATION,
    SLUID_ANNOTATION,
    GRANT_ANNOTATION,
    WORKLOAD_ANNOTATION,
    RANK_ANNOTATION,
    WORLD_SIZE_ANNOTATION,
    NODELIST_ANNOTATION,
    CPUS_ANNOTATION,
)
"""Pod annotations that state where Slurm placed a pod: only we write them."""


def binder(scheduler_name: str) -> str:
    """Return the scheduler name of pods that the extender binds itself; no kube-scheduler serves it."""
    return f"{scheduler_name}{_BINDER_SUFFIX}"


def is_binder(scheduler_name: str) -> bool:
    """Check whether a name may come from `binder`."""
    return scheduler_name.endswith(_BINDER_SUFFIX)


def schedulers(scheduler_name: str) -> tuple[str, str]:
    """Return both scheduler names by which a pod asks for us."""
    return scheduler_name, binder(scheduler_name)
