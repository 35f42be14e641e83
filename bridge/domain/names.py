"""Every key slurm-bridge writes to or reads from either system, in one place.

Names that users and administrators of SchedMD's slurm-bridge already know are kept, so that manifests move over
unchanged (facts: `docs/architecture.md`, "Keys").
"""

SCHEDULER_NAME = "slurm-bridge-scheduler"
"""The kube-scheduler profile that asks our extender."""

DEFAULT_SCHEDULER_NAME = "default-scheduler"
"""What the API server writes into `spec.schedulerName` before admission when the user wrote nothing."""

ENABLED_LABEL = "slurm-bridge.dev/enabled"
"""Namespace label, set to "true" by an administrator: the pods created here are Slurm's to place."""

REQUEST_PREFIX = "slurmjob.slinky.slurm.net/"
"""Annotations of a pod or its root owner that say what to ask of Slurm; the fields: `bridge.domain.request.overrides`."""

JOB_ID_LABEL = "scheduler.slinky.slurm.net/slurm-jobid"
"""Pod label: the placeholder's job id. A cache for people and watches; the truth is in Slurm."""

NODE_ANNOTATION = "slinky.slurm.net/slurm-node"
"""Pod annotation: the Kubernetes node that Slurm chose. Written once, never changed."""

SLUID_ANNOTATION = "slurm-bridge.dev/slurm-sluid"
"""Pod annotation: the placeholder's SLUID, which names that job for ever; a job id may be another job's after a crash of slurmctld."""

GRANT_ANNOTATION = "slurm-bridge.dev/slurm-grant"
"""Pod annotation: what Slurm granted (`bridge.domain.model.grant`), to ask for the same again should Slurm lose the placeholder."""

WHEN_LOST_ANNOTATION = "slurm-bridge.dev/when-lost"
"""Pod annotation, an operator's word where nobody knows whether a lost placeholder had ended: `restore` or `let-go`."""

EVICT_UNTIL_ANNOTATION = "slurm-bridge.dev/evict-until"
"""On our own namespace, by an operator: until then any number of pods may be evicted at once."""

GATE = "slurm-bridge.dev/placement"
"""Pod scheduling gate: waits for Slurm. As long as it is on, the extender's leader owns the pod."""

FINALIZER = "slurm-bridge.dev/placeholder"
"""Pod finalizer: a placeholder may exist."""

ALLOCATED_CONDITION = "slurm-bridge.dev/Allocated"
"""Pod condition. False: the reason is Slurm's, in CamelCase. True: the message names job and node."""

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
"""Beginnings of the pod labels and annotations that nobody but us changes after CREATE: an admission policy of the chart.

All keys of ours, and those by which workload controllers mark a group: what went into a placeholder stays what it was.
"""

REQUESTER_ANNOTATION = "slurm-bridge.dev/requester"
"""Pod annotation: the authenticated user that created it. Written by the webhook at CREATE, over whatever stands there."""

RULES_ANNOTATION = "slurm-bridge.dev/policy-rules"
"""Pod annotation, like `REQUESTER_ANNOTATION`: the policy rules that match its requester, with commas between them."""

MANAGED_NODE_TAINT = "slinky.slurm.net/managed-node"
"""Node taint that keeps other pods off the nodes Slurm hands out."""

SLURM_NODE_NAME_LABEL = "slinky.slurm.net/slurm-nodename"
"""Node label: Slurm's name of this node, where it differs from the Kubernetes name."""

EXTERNAL_NODE_LABEL = "scheduler.slinky.slurm.net/external-node"
"""Node label, "true": register this node in Slurm as an external node."""

HYBRID_NODE_LABEL = "slurm-bridge.dev/hybrid-node"
"""Node label, "true": a slurmd runs on this node too; the record in Slurm is its own, we mark it and share the machine."""

WEIGHT_ANNOTATION = "slurm-bridge.dev/weight"
"""Node annotation: Slurm fills the nodes of the lowest weight first; 1 where there is none."""

THREADS_ANNOTATION = "slurm-bridge.dev/threads-per-core"
"""Node annotation: CPUs that are threads of one core, which Slurm then gives out together; 1 where there is none."""

CORDON_ANNOTATION = "slurm-bridge.dev/cordoned"
"""Node annotation: the cordon is ours, and why. Somebody else's cordon has none, and is never lifted by us."""

SLURM_STATE_CONDITION = "slurm-bridge.dev/SlurmState"
"""Node condition. True: Slurm starts jobs there. False: it does not; reason and message say why, who and since when."""

PARTITIONS_ANNOTATION = "scheduler.slinky.slurm.net/external-node-partitions"
"""Node annotation: comma-separated partitions; they become Slurm features of the same names."""

TOPOLOGY_ANNOTATION = "topology.slinky.slurm.net/spec"
"""Node annotation: Slurm's topology string, such as `topo-switch:s1`."""

BRIDGED_FEATURE = "slurm-bridge"
"""Slurm node feature of every node we registered, so that slurm.conf can say `NodeSet=bridge Feature=slurm-bridge`."""

CLUSTER_FEATURE = "slurm-bridge.dev/cluster"
"""Slurm node feature `<this>=<cluster id>`: our mark on a node. Features come with its creation and outlive slurmctld's restarts."""

PARKED_FEATURE = "slurm-bridge.dev/parked"
"""Slurm node feature of a node that is not to be handed out yet: see `bridge.domain.nodes.parking`."""

SPARE_NODE = "slurm-bridge-spare"
"""`<this>-<cluster id>`: a Slurm node that is deleted as soon as it is created, so that partitions are made anew."""

GANG_ANNOTATION = "slurm-bridge.dev/gang"
"""Annotation of a Job, a JobSet or their pod template. "true": one placeholder for all pods; "false": one for each."""

ON_FAILURE_ANNOTATION = "slurm-bridge.dev/on-member-failure"
"""Annotation of a gang's pods. "end": when one of them fails, all others go; otherwise they run on and wait for a replacement."""

WHEN_FULL_ANNOTATION = "slurm-bridge.dev/when-full"
"""Annotation of a gang's pods: what becomes of one that finds no slot free while the gang runs (`WhenFull`)."""

POD_GROUP_LABEL = "slurm-bridge.dev/pod-group"
"""Pod label: the pods of a namespace with the same value are one gang; no controller or CRD is needed."""

POD_GROUP_SIZE_ANNOTATION = "slurm-bridge.dev/pod-group-size"
"""Annotation of such pods, or of the root owner of any kind, all of whose pods are one gang then: how many pods it has."""

WORKLOAD_ANNOTATION = "slurm-bridge.dev/workload"
"""Pod annotation, written at the pin of a gang's member: the workload's uid, as its placeholder's identity has it."""

RANK_ANNOTATION = "slurm-bridge.dev/rank"
"""Pod annotation, written at the pin of a gang's member: its slot in the allocation, 0 … world size - 1."""

WORLD_SIZE_ANNOTATION = "slurm-bridge.dev/world-size"
"""Pod annotation, written at the pin of a gang's member: how many slots the placeholder has."""

NODELIST_ANNOTATION = "slurm-bridge.dev/nodelist"
"""Pod annotation, written at the pin of a gang's member: the Kubernetes nodes of all slots, each once, in Slurm's order."""

WRITTEN_AT_THE_PIN = (
    NODE_ANNOTATION,
    SLUID_ANNOTATION,
    GRANT_ANNOTATION,
    WORKLOAD_ANNOTATION,
    RANK_ANNOTATION,
    WORLD_SIZE_ANNOTATION,
    NODELIST_ANNOTATION,
)
"""Pod annotations that say where Slurm has placed a pod: nobody but us writes them."""
