"""Schema of the API server's JSON: the fields we use, under the API's names; others are skipped.

Source: the OpenAPI of Kubernetes 1.36, <https://kubernetes.io/docs/reference/kubernetes-api/>.
Private to `bridge.kube`; `bridge.kube.decode` turns it into domain values. The garbage collector
does not track the structs: they form no cycles and are short-lived.
"""

from datetime import datetime

import msgspec

from bridge.domain.model.pods import Phase
from slurmruntime.kube.meta import Condition, Metadata, Struct


class NameRef(Struct):
    """A reference by name, such as a scheduling gate."""

    name: str


class Resources(Struct):
    """`core/v1 ResourceRequirements`."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class ContainerPort(Struct):
    """`core/v1 ContainerPort`."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class Container(Struct):
    """`core/v1 Container`."""

    name: str
    resources: Resources = msgspec.field(default_factory=Resources)
    ports: list[ContainerPort] = []
    restart_policy: str = ""


class Requirement(Struct):
    """`core/v1 NodeSelectorRequirement`."""

    key: str
    operator: str
    values: list[str] = []


class NodeSelectorTerm(Struct):
    """`core/v1 NodeSelectorTerm`."""

    match_expressions: list[Requirement] = []
    match_fields: list[Requirement] = []


class NodeSelector(Struct):
    """`core/v1 NodeSelector`."""

    node_selector_terms: list[NodeSelectorTerm] = []


class NodeAffinity(Struct):
    """`core/v1 NodeAffinity`; we do not evaluate preferences."""

    required_during_scheduling_ignored_during_execution: NodeSelector = msgspec.field(
        default_factory=NodeSelector
    )


class Affinity(Struct):
    """`core/v1 Affinity`."""

    node_affinity: msgspec.Raw = msgspec.Raw()
    """A `NodeAffinity`; see `bridge.kube.bounds`."""


class Toleration(Struct):
    """`core/v1 Toleration`."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class SchedulingGroup(Struct):
    """`core/v1 PodSchedulingGroup`, with the feature gate GenericWorkload."""

    pod_group_name: str = ""


class ClaimReference(Struct):
    """`core/v1 PersistentVolumeClaimVolumeSource`."""

    claim_name: str = ""


class Volume(Struct):
    """`core/v1 Volume`: claims only."""

    persistent_volume_claim: ClaimReference | None = None


class PodResourceClaim(Struct):
    """`core/v1 PodResourceClaim`."""

    name: str
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class ResourceClaimStatus(Struct):
    """`core/v1 PodResourceClaimStatus`: the claim that was made from a template."""

    name: str
    resource_claim_name: str = ""


class PodSpec(Struct):
    """`core/v1 PodSpec`."""

    containers: list[Container]
    init_containers: list[Container] = []
    scheduler_name: str = ""
    scheduling_gates: list[NameRef] = []
    priority_class_name: str = ""
    scheduling_group: SchedulingGroup | None = None
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: msgspec.Raw = msgspec.Raw()
    """A list of `Toleration`; see `bridge.kube.bounds`."""
    volumes: list[Volume] = []
    resource_claims: list[PodResourceClaim] = []
    overhead: dict[str, str] = {}
    resources: Resources | None = None
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int = 30


class ContainerStateWaiting(Struct):
    """`core/v1 ContainerStateWaiting`."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(Struct):
    """`core/v1 ContainerStateRunning`."""


class ContainerStateTerminated(Struct):
    """`core/v1 ContainerStateTerminated`."""

    exit_code: int
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Struct):
    """`core/v1 ContainerState`: at most one is set."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Struct):
    """`core/v1 ContainerStatus`."""

    name: str
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    restart_count: int = 0


class PodStatus(Struct):
    """`core/v1 PodStatus`."""

    phase: Phase = Phase.PENDING
    reason: str = ""
    start_time: datetime | None = None
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    conditions: list[Condition] = []
    resource_claim_statuses: list[ResourceClaimStatus] = []


class PodBody(Struct):
    """`core/v1 Pod`."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class BoundPodSpec(Struct):
    """The part of `core/v1 PodSpec` that the accounting of a node needs."""

    containers: list[Container]
    init_containers: list[Container] = []
    node_name: str = ""
    overhead: dict[str, str] = {}
    resources: Resources | None = None


class BoundPodStatus(Struct):
    """The part of `core/v1 PodStatus` that the accounting of a node needs."""

    phase: Phase = Phase.PENDING


class BoundPod(Struct):
    """`core/v1 Pod`, with fewer fields."""

    metadata: Metadata
    spec: BoundPodSpec
    status: BoundPodStatus = msgspec.field(default_factory=BoundPodStatus)
