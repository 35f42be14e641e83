"""NodeSet: workers that are alike."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from slurmoperator.objects import parts
from slurmoperator.objects.parts import (
    NULLABLE,
    AddedMetadata,
    ConditionsOnly,
    Free,
    KeyOfObject,
    NamedObject,
    Replicas,
)
from slurmruntime.crd.conditions import Number
from slurmruntime.crd.fields import RULES, Moment, ObjectStruct, rule, text, unchanged
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.crd.schema import FREE, INT_OR_STRING

ScalingMode = Literal["StatefulSet", "DaemonSet"]
UpdateKind = Literal["RollingUpdate", "OnDelete", "ScheduledUpdate"]
ClaimFate = Literal["Retain", "Delete"]

_MAX_UNAVAILABLE = rule(
    r"type(self) == int ? int(self) >= 1 : string(self).matches('^0*[1-9][0-9]*%$')",
    "expected a number from 1 or a percentage from 1%: with none, an update would never begin",
)

HOSTNAME: Final = {
    "type": "string",
    "maxLength": 58,
    "pattern": "^[a-z0-9][-a-z0-9]*$",
    "description": "What the names of its Slurm nodes begin with; by default its own name and a hyphen.",
}


class WorkerSsh(ObjectStruct, frozen=True):
    """Whether users with a job on a worker may log in there."""

    enabled: bool
    sssd_conf_ref: Annotated[
        KeyOfObject | None, Meta(description="Secret with sssd.conf, which knows the users.")
    ] = None
    extra_sshd_config: Annotated[str, parts.conf("Lines of sshd_config.")] = ""


class OwnPartition(ObjectStruct, frozen=True):
    """A partition of these workers alone."""

    enabled: bool
    config: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"^[^\n]+$")] | None,
        Meta(description="What stands on its line in slurm.conf, such as MaxTime=1-0."),
    ] = None


class RollingSteps(ObjectStruct, frozen=True):
    """How a rolling update goes."""

    max_unavailable: Annotated[
        int | str,
        Meta(
            description="How many workers may be away at once.",
            extra_json_schema={INT_OR_STRING: True, "maxLength": 16, RULES: [_MAX_UNAVAILABLE]},
        ),
    ] = "25%"


class UpdateWindow(ObjectStruct, frozen=True):
    """A reservation in which an update takes place."""

    start_time: Annotated[Moment | None, Meta(description="When it begins.")] = None
    duration: Annotated[
        Annotated[str, Meta(max_length=64, pattern=parts.GO_DURATION)],
        Meta(description="How long it lasts, such as 30m."),
    ] = "30m"
    flags: Annotated[
        Annotated[
            tuple[Annotated[str, text(64, "A flag of Slurm's reservations.")], ...],
            Meta(max_length=32),
        ]
        | None,
        Meta(extra_json_schema=NULLABLE),
    ] = None


class UpdateStrategy(ObjectStruct, frozen=True):
    """How workers come to a new template."""

    type: UpdateKind = "RollingUpdate"
    rolling_update: RollingSteps | None = None
    scheduled_update: UpdateWindow | None = None


UPDATE_RULES: Final = (
    rule(
        "self.type != 'ScheduledUpdate' || (has(self.scheduledUpdate) && has(self.scheduledUpdate.startTime))",
        "expected the time at which the update begins",
        path=".scheduledUpdate",
        reason="FieldValueRequired",
    ),
    rule(
        "self.type != 'ScheduledUpdate' || !has(self.scheduledUpdate) || !has(self.scheduledUpdate.duration)"
        " || duration(self.scheduledUpdate.duration) >= duration('1m')",
        "expected a minute or longer, as Slurm's reservations have it",
        path=".scheduledUpdate.duration",
    ),
)


class ClaimRetention(ObjectStruct, frozen=True):
    """What becomes of the workers' volumes."""

    when_deleted: ClaimFate = "Retain"
    when_scaled: ClaimFate = "Retain"


class WorkerTemplate(ObjectStruct, frozen=True):
    """What is laid over the workers' pods."""

    metadata: Annotated[AddedMetadata | None, Meta(description="Of the pods.")] = None
    spec: Annotated[
        dict[str, Any] | None,
        Meta(
            description="Laid over the pods' own specification.",
            extra_json_schema={FREE: True, "properties": {"hostname": HOSTNAME}},
        ),
    ] = None


class NodeSetSpec(ObjectStruct, frozen=True):
    """Workers that are alike, each with a slurmd."""

    controller_ref: Annotated[NamedObject, Meta(description="The Controller they belong to.")]
    replicas: Annotated[
        Replicas, Meta(description="How many there are, unless scalingMode is DaemonSet.")
    ] = 1
    scaling_mode: Annotated[
        ScalingMode,
        Meta(description="A number of workers, or one on each Kubernetes node that fits."),
    ] = "StatefulSet"
    slurmd: Annotated[Free | None, Meta(description="The container.")] = None
    logfile: Annotated[Free | None, Meta(description="The container that prints the log.")] = None
    ssh: Annotated[WorkerSsh | None, Meta(description="Whether users may log in.")] = None
    template: Annotated[WorkerTemplate | None, Meta(description="Of the workers.")] = None
    extra_conf: Annotated[
        str,
        Meta(
            max_length=4096,
            pattern=r"^\s*([A-Za-z0-9_]+=\S+(\s+|$))*$",
            description="What slurmd says of its node, such as Gres=gpu:4 Weight=10.",
        ),
    ] = ""
    partition: Annotated[OwnPartition | None, Meta(description="A partition of its own.")] = None
    volume_claim_templates: Annotated[
        Annotated[tuple[Free, ...], Meta(max_length=16)] | None,
        Meta(
            description="A volume of its own for each worker.",
            extra_json_schema=NULLABLE,
        ),
    ] = None
    update_strategy: Annotated[
        UpdateStrategy | None,
        Meta(
            description="How workers come to a new template.",
            extra_json_schema={RULES: list(UPDATE_RULES)},
        ),
    ] = None
    revision_history_limit: Annotated[
        Annotated[int, Meta(ge=0, le=1000)], Meta(description="How many old templates are kept.")
    ] = 0
    persistent_volume_claim_retention_policy: Annotated[
        ClaimRetention | None, Meta(description="What becomes of the workers' volumes.")
    ] = None
    min_ready_seconds: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)],
        Meta(description="How long a worker must be ready to count as available."),
    ] = 0
    ordinal_padding: Annotated[
        Annotated[int, Meta(ge=0, le=10)], Meta(description="Digits of a worker's number.")
    ] = 0
    pin_to_node: Annotated[
        bool, Meta(description="Whether a worker returns to its Kubernetes node.")
    ] = False
    workload_disruption_protection: Annotated[
        bool, Meta(description="Whether evictions wait for jobs.")
    ] = True
    prune_slurm_node_records: Annotated[
        Literal["Never", "NodeNotFound"],
        Meta(description="Whether Slurm forgets workers whose Kubernetes node is gone."),
    ] = "Never"
    oversubscribe_node: Annotated[
        bool, Meta(description="Whether several workers may share a Kubernetes node.")
    ] = False


NODE_SET_RULES: Final = (
    parts.CONTROLLER_STAYS,
    rule(
        unchanged("volumeClaimTemplates"),
        "volumes that are there keep their shape: create another NodeSet",
        path=".volumeClaimTemplates",
    ),
    rule(
        "!has(self.ssh) || !self.ssh.enabled || has(self.ssh.sssdConfRef)",
        "expected the Secret with sssd.conf, because ssh.enabled is true",
        path=".ssh",
        reason="FieldValueRequired",
    ),
)


class NodeSetStatus(ConditionsOnly, frozen=True):
    """How the workers stand; written by slurm-operator only."""

    replicas: Number = 0
    updated_replicas: Number = 0
    ready_replicas: Number = 0
    available_replicas: Number = 0
    unavailable_replicas: Number = 0
    desired: Number = 0
    slurm_idle: Number = 0
    slurm_allocated: Number = 0
    slurm_down: Number = 0
    slurm_drain: Number = 0
    observed_generation: Number = 0
    node_set_hash: str = ""
    collision_count: Number = 0
    ordinal_to_node: Annotated[
        Annotated[dict[str, str], Meta(max_length=parts.MOST_REPLICAS)] | None,
        Meta(extra_json_schema=NULLABLE),
    ] = None
    selector: str = ""
    accepted_conf: Annotated[
        Annotated[str, Meta(max_length=4096)] | None,
        Meta(
            description="The extraConf that slurmctld would take, as it was seen last: what new workers get.",
        ),
    ] = None


class NodeSetObject(ObjectStruct, frozen=True):
    """Workers that are alike, each with a slurmd."""

    metadata: ObjectMetadata
    spec: NodeSetSpec
    status: NodeSetStatus = NodeSetStatus()

    @property
    def controller(self) -> str:
        """Its Controller, as `namespace/name`."""
        return f"{self.metadata.namespace}/{self.spec.controller_ref.name}"

    @property
    def slurm_name(self) -> str:
        """What the NodeSet, its feature and its partition are called in Slurm."""
        return self._hostname.rstrip("-") or self.metadata.name

    @property
    def node_prefix(self) -> str:
        """What the names of its Slurm nodes begin with, if they have numbers."""
        return self._hostname or f"{self.metadata.name}-"

    @property
    def node_conf(self) -> str:
        """What slurmd says of its node, on one line; the feature puts it into the NodeSet's partitions."""
        said = self.spec.extra_conf.split()
        own = [each for each in said if not each.lower().startswith(("feature=", "features="))]
        features = [each.partition("=")[2] for each in said if each not in own]
        return " ".join([f"Features={','.join([self.slurm_name, *features])}", *own])

    def numbered(self, number: int) -> str:
        """Return a worker's number as it stands in names."""
        return str(number).zfill(self.spec.ordinal_padding)

    @property
    def _hostname(self) -> str:
        spec = self.spec.template.spec if self.spec.template else None
        return str((spec or {}).get("hostname") or "")
