"""NodeSet: a set of identical workers."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from slurmoperator.objects import parts
from slurmoperator.objects.parts import (
    NULLABLE,
    ConditionsOnly,
    Duration,
    ExtraMetadata,
    Free,
    KeyOfObject,
    ObjectReference,
    Replicas,
    note,
)
from slurmruntime.crd.conditions import Number
from slurmruntime.crd.fields import RULES, Moment, ObjectStruct, rule, text, unchanged
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.crd.schema import FREE, INT_OR_STRING
from slurmruntime.model.objects import JsonDict

ScalingMode = Literal["StatefulSet", "DaemonSet"]
UpdateKind = Literal["RollingUpdate", "OnDelete", "ScheduledUpdate"]
ClaimPolicy = Literal["Retain", "Delete"]

_MAX_UNAVAILABLE = rule(
    r"type(self) == int ? int(self) >= 1 : string(self).matches('^0*[1-9][0-9]*%$')",
    "expected a number or a percentage above 0: with 0, an update would never begin",
)

HOSTNAME: Final = {
    "type": "string",
    "maxLength": 58,
    "pattern": "^[a-z0-9][-a-z0-9]*$",
    "description": "Prefix of the Slurm node names; defaults to the NodeSet's name and a hyphen.",
}


class WorkerSsh(ObjectStruct, frozen=True):
    """SSH access to workers, for users with a job there."""

    enabled: bool
    sssd_conf_ref: Annotated[
        KeyOfObject | None, note("Secret with sssd.conf, which defines the users.")
    ] = None
    extra_sshd_config: Annotated[str, parts.conf("Extra lines for sshd_config.")] = ""


class OwnPartition(ObjectStruct, frozen=True):
    """A partition that contains only these workers."""

    enabled: bool
    config: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"^[^\n]+$")] | None,
        note("Options of its line in slurm.conf, such as MaxTime=1-0."),
    ] = None


class RollingUpdate(ObjectStruct, frozen=True):
    """Limits of a rolling update."""

    max_unavailable: Annotated[
        int | str,
        Meta(
            description="How many workers may be unavailable at once.",
            extra_json_schema={INT_OR_STRING: True, "maxLength": 16, RULES: [_MAX_UNAVAILABLE]},
        ),
    ] = "25%"


class UpdateWindow(ObjectStruct, frozen=True):
    """A Slurm reservation during which the update takes place."""

    start_time: Annotated[Moment | None, note("Start of the reservation.")] = None
    duration: Annotated[Duration, note("Length of the reservation, such as 30m.")] = "30m"
    flags: Annotated[
        Annotated[
            tuple[Annotated[str, text(64, "A flag of Slurm reservations.")], ...],
            Meta(max_length=32),
        ]
        | None,
        Meta(extra_json_schema=NULLABLE),
    ] = None


class UpdateStrategy(ObjectStruct, frozen=True):
    """How workers are updated to a new template."""

    type: UpdateKind = "RollingUpdate"
    rolling_update: RollingUpdate | None = None
    scheduled_update: UpdateWindow | None = None


UPDATE_RULES: Final = (
    rule(
        "self.type != 'ScheduledUpdate' || (has(self.scheduledUpdate) && has(self.scheduledUpdate.startTime))",
        "expected the start time of the update",
        path=".scheduledUpdate",
        reason="FieldValueRequired",
    ),
    rule(
        "self.type != 'ScheduledUpdate' || !has(self.scheduledUpdate) || !has(self.scheduledUpdate.duration)"
        " || duration(self.scheduledUpdate.duration) >= duration('1m')",
        "expected 1m or longer, the minimum of Slurm reservations",
        path=".scheduledUpdate.duration",
    ),
)


class ClaimRetention(ObjectStruct, frozen=True):
    """What happens to the workers' volumes."""

    when_deleted: ClaimPolicy = "Retain"
    when_scaled: ClaimPolicy = "Retain"


class WorkerTemplate(ObjectStruct, frozen=True):
    """Overrides for the workers' pods."""

    metadata: Annotated[ExtraMetadata | None, note("Labels and annotations for the pods.")] = None
    spec: Annotated[
        JsonDict | None,
        Meta(
            description="Merged into the pods' specification.",
            extra_json_schema={FREE: True, "properties": {"hostname": HOSTNAME}},
        ),
    ] = None


class NodeSetSpec(ObjectStruct, frozen=True):
    """Identical workers, each with a slurmd."""

    controller_ref: Annotated[ObjectReference, note("The Controller of these workers.")]
    replicas: Annotated[
        Replicas, note("Number of workers; ignored if scalingMode is DaemonSet.")
    ] = 1
    scaling_mode: Annotated[
        ScalingMode, note("A fixed number of workers, or one on each matching Kubernetes node.")
    ] = "StatefulSet"
    slurmd: Annotated[Free | None, note("Overrides for the slurmd container.")] = None
    logfile: Annotated[Free | None, note("Overrides for the container that prints the log.")] = None
    ssh: Annotated[WorkerSsh | None, note("SSH access for users with a job.")] = None
    template: Annotated[WorkerTemplate | None, note("Overrides for the workers' pods.")] = None
    extra_conf: Annotated[
        str,
        Meta(
            max_length=4096,
            pattern=r"^\s*([A-Za-z0-9_]+=\S+(\s+|$))*$",
            description="Node options that slurmd registers with, such as Gres=gpu:4 Weight=10.",
        ),
    ] = ""
    partition: Annotated[OwnPartition | None, note("A partition for this NodeSet alone.")] = None
    volume_claim_templates: Annotated[
        Annotated[tuple[Free, ...], Meta(max_length=16)] | None,
        Meta(description="Volumes that each worker gets for itself.", extra_json_schema=NULLABLE),
    ] = None
    update_strategy: Annotated[
        UpdateStrategy | None,
        Meta(
            description="How workers are updated to a new template.",
            extra_json_schema={RULES: list(UPDATE_RULES)},
        ),
    ] = None
    revision_history_limit: Annotated[
        Annotated[int, Meta(ge=0, le=1000)], note("How many old templates to keep.")
    ] = 0
    persistent_volume_claim_retention_policy: Annotated[
        ClaimRetention | None, note("What happens to the workers' volumes.")
    ] = None
    min_ready_seconds: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)],
        note("How long a worker must be ready to count as available."),
    ] = 0
    ordinal_padding: Annotated[
        Annotated[int, Meta(ge=0, le=10)], note("Minimum digits of a worker's ordinal.")
    ] = 0
    pin_to_node: Annotated[
        bool, note("Whether a recreated worker returns to its Kubernetes node.")
    ] = False
    workload_disruption_protection: Annotated[
        bool, note("Whether workers with jobs are protected from eviction.")
    ] = True
    prune_slurm_node_records: Annotated[
        Literal["Never", "NodeNotFound"],
        note("Whether to delete Slurm nodes whose Kubernetes node is gone."),
    ] = "Never"
    oversubscribe_node: Annotated[
        bool, note("Whether several workers may share a Kubernetes node.")
    ] = False

    @property
    def pod_spec(self) -> JsonDict:
        """The user's part of the pods' specification."""
        return (self.template.spec if self.template else None) or {}

    @property
    def has_ssh(self) -> bool:
        """Whether users with a job may log in."""
        return self.ssh is not None and self.ssh.enabled


NODE_SET_RULES: Final = (
    parts.CONTROLLER_STAYS,
    rule(
        unchanged("volumeClaimTemplates"),
        "cannot be changed, because existing volumes keep their specification: create another NodeSet",
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
    """Status of the workers; only slurm-operator writes it."""

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
        note("The last extraConf that slurmctld accepted; new workers get it."),
    ] = None


class NodeSetObject(ObjectStruct, frozen=True):
    """Identical workers, each with a slurmd."""

    metadata: ObjectMetadata
    spec: NodeSetSpec
    status: NodeSetStatus = NodeSetStatus()

    @property
    def controller(self) -> str:
        """Its Controller, as `namespace/name`."""
        return f"{self.metadata.namespace}/{self.spec.controller_ref.name}"

    @property
    def slurm_name(self) -> str:
        """The name of the NodeSet, its feature and its partition in Slurm."""
        return self._hostname.rstrip("-") or self.metadata.name

    @property
    def node_prefix(self) -> str:
        """The prefix of its Slurm node names, if they are numbered."""
        return self._hostname or f"{self.metadata.name}-"

    @property
    def has_new_conf(self) -> bool:
        """Whether slurmctld has to try its node options, because it has not accepted them yet."""
        conf = self.spec.extra_conf
        return bool(conf.strip()) and conf != self.status.accepted_conf

    @property
    def node_conf(self) -> str:
        """The node options for slurmd, on one line; the feature puts the node into the NodeSet's partitions."""
        options = self.spec.extra_conf.split()
        own = [
            option for option in options if not option.lower().startswith(("feature=", "features="))
        ]
        features = [option.partition("=")[2] for option in options if option not in own]
        return " ".join([f"Features={','.join([self.slurm_name, *features])}", *own])

    def numbered(self, number: int) -> str:
        """Return a worker's ordinal as it appears in names."""
        return str(number).zfill(self.spec.ordinal_padding)

    @property
    def _hostname(self) -> str:
        return str(self.spec.pod_spec.get("hostname") or "")
