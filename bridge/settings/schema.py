"""Every setting, with its unit, default and meaning; all programs share one YAML file.

The sources, in increasing precedence, are the defaults, the YAML file (`--config`), the environment
(`SLURM_BRIDGE_SECTION__FIELD`), and files named `section__field` with one value each, in a
directory such as a mounted Secret (`--secrets-dir` or `SLURM_BRIDGE_SECRETS_DIR`). An unknown name
is an error in any source, and all faults are reported at once; one that was a setting in the release
before only causes a warning at start. In the environment and in files, lists are comma-separated,
maps are JSON, and `null` means absent.

Tokens and keys are never settings: settings name the files that contain them, and those files are
reread when they change.
"""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from bridge.domain.model.devices import gres
from bridge.domain.request.rules import RESERVED
from bridge.settings import devices as settings_devices
from bridge.settings import policy as settings_policy
from bridge.settings import sylabs as settings_sylabs
from bridge.settings.caps import CapsSection
from bridge.settings.operator import OperatorSection
from bridge.settings.policy import RuleSection
from bridge.settings.servers import EscrowSection, Extender, ServerSection
from bridge.settings.slurm import Slurm
from bridge.settings.slurm_jobs import SlurmJobsSection
from bridge.settings.sylabs import SylabsSection
from slurmruntime.settings import values as settings_values
from slurmruntime.settings.sections import HealthSection, Log
from slurmruntime.settings.values import Amount, Count, Seconds, Section
from slurmruntime.values import names, quantities

ENV_PREFIX = "SLURM_BRIDGE_"


class Kubernetes(Section):
    """How to reach the API server."""

    kubeconfig: str = Field(
        "", description="Path of a kubeconfig file; empty: the pod's service account."
    )
    namespace: str = Field(
        names.RELEASE_NAMESPACE,
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        description="The namespace slurm-bridge itself runs in; it holds the leases.",
    )


class PolicySection(Section):
    """Who may request what from Slurm: docs/identity.md. Reread when the file changes."""

    rules: Annotated[tuple[RuleSection, ...], BeforeValidator(settings_values.parse_json)] = Field(
        (), description="The first that matches applies; without a match the pod is rejected."
    )
    creator_annotation: str = Field(
        "",
        pattern=r"^([A-Za-z0-9][-A-Za-z0-9_./]{0,316})?$",
        description="Annotation in which the cluster records who created an object, and with .owner "
        "appended, the uid of its controller then; empty: none. Anyone who can forge them can "
        "impersonate anyone.",
    )
    reserved_users: Annotated[tuple[str, ...], BeforeValidator(settings_values.split)] = Field(
        RESERVED,
        description="Slurm users and groups that no template may result in, such as SlurmUser; "
        "root is always forbidden; wildcards * and ?.",
    )
    controllers: Annotated[tuple[str, ...], BeforeValidator(settings_values.split)] = Field(
        ("system:serviceaccount:kube-system:*-controller", "system:kube-controller-manager"),
        description="Users that create pods on behalf of others; with creator_annotation, the "
        "creator of the owner counts instead; wildcards * and ?.",
    )


class PlacementSection(Section):
    """How the extender's leader places pods."""

    default_cpus: Amount = Field(1, description="CPUs of a pod that requests none, rounded up.")
    required_limits: Annotated[
        tuple[Literal["cpu", "memory", "ephemeral-storage"], ...],
        BeforeValidator(settings_values.split),
    ] = Field(
        (),
        description="Resources for which every container needs a limit that equals its request; "
        "others may use more than Slurm gave them.",
    )
    bind_deadline_s: Seconds = Field(
        120,
        description="How long kube-scheduler may fail to bind a pod that has its node. While it does not "
        "try, or binds no pod at all, the pod is kept.",
    )
    binder: Literal["kube-scheduler", "extender"] = Field(
        "kube-scheduler",
        description="Who binds pods once Slurm has chosen their node. Pods whose volumes must be bound or attached, and pods in "
        "a group of kube-scheduler's, are always bound by kube-scheduler.",
    )
    priority_classes: Annotated[
        dict[str, dict[str, str]], BeforeValidator(settings_values.parse_json)
    ] = Field(
        default_factory=dict,
        description="What pods of a Kubernetes priority class request from Slurm, by the fields of "
        'docs/annotations.md, such as {"urgent": {"qos": "high"}}; annotations take precedence, '
        "and the policy applies to both.",
    )


class Controllers(Section):
    """Pods that have a node, and Slurm's view of the nodes."""

    start_deadline_s: Seconds = Field(
        1800,
        description="How long a bound pod's first container may take to start, image included.",
    )
    kept_slots_deadline_s: Annotated[Seconds | None, BeforeValidator(settings_values.null)] = Field(
        3600,
        description="How long a started gang keeps slots for pods that its controller has not "
        "created yet (LeaderReady, exclusive topology) before it is evicted; null: no limit.",
    )
    eviction_always: Count = Field(
        20,
        description="Number of pods that may be evicted at once because Slurm lost their jobs; more only if they are less than a third of the running pods.",
    )
    suspended: Literal["keep", "evict"] = Field(
        "evict",
        description="What happens to the pods of a suspended placeholder. A job's own user may suspend it: with keep, its pods "
        "go on computing without being charged, and their time limit is paused.",
    )
    node_features: Annotated[tuple[str, ...], BeforeValidator(settings_values.split)] = Field(
        (), description="Node label keys published as Slurm features; wildcards * and ?."
    )
    gpu_resources: Annotated[dict[str, str], BeforeValidator(settings_values.parse_json)] = Field(
        default_factory=lambda: dict(gres.USUAL),
        description="Extended resource names and their Slurm GRES.",
    )
    device_profiles: settings_devices.Profiles = Field(
        default_factory=dict,
        description="GRES of the devices in resource claims: the selector of a DeviceClass, such as "
        "device.driver == 'gpu.nvidia.com', and its GRES with or without a type; empty: pods with claims are refused.",
    )
    device_resources: settings_devices.ClassNames = Field({}, description=settings_devices.CLASSES)
    gpu_type_labels: Annotated[tuple[str, ...], BeforeValidator(settings_values.split)] = Field(
        ("nvidia.com/gpu.product", "amd.com/gpu.product-name"),
        description="Node labels with the type of a GRES that has none; the first present counts.",
    )
    drain_conditions: Annotated[tuple[str, ...], BeforeValidator(settings_values.split)] = Field(
        ("DiskPressure", "MemoryPressure", "NetworkUnavailable", "PIDPressure"),
        description="Types of node conditions that drain the node in Slurm while they are True.",
    )
    cordon_drained_nodes: bool = Field(
        default=False,
        description="Cordon nodes that someone else has drained, downed or failed in Slurm.",
    )
    taint_effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = Field(
        "NoSchedule", description="Effect of the managed-node taint; empty: no taint."
    )


class AgentSection(Section):
    """The agent of each external node: docs/agent.md."""

    pin_cores: bool = Field(
        default=False,
        description="Run the agents, which give each container exactly the cores that Slurm gave its pod; "
        "needs slurm.milli_cpu_per_cpu 1000.",
    )


class NodesSection(Section):
    """How both systems share nodes."""

    hybrid: Literal["escrow", "alternate", "acceptOverlap", ""] = Field(
        "",
        description="What keeps native jobs of hybrid nodes off containers of ended jobs that still stop: escrow, slurmctld's script "
        "(docs/escrow.md); alternate, native jobs and pods take turns; acceptOverlap, nothing. Empty: no pod is placed on a hybrid "
        "node (docs/nodes.md).",
    )


class Settings(Section):
    """All settings. Constructing them reads nothing; `load` does."""

    cluster_id: str = Field(
        "",
        pattern=r"^[A-Za-z0-9]?[-A-Za-z0-9_.]{0,62}$",
        description="Marks our jobs in Slurm; empty: the uid of the namespace kube-system.",
    )
    scheduler_name: str = Field(
        names.SCHEDULER_NAME,
        pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
        description="The kube-scheduler profile that calls our extender. No other scheduler may use this name "
        "with -binder appended: it marks pods that the extender binds itself.",
    )
    log: Log = Log()
    kubernetes: Kubernetes = Kubernetes()
    slurm: Slurm = Slurm()
    policy: PolicySection = PolicySection()
    placement: PlacementSection = PlacementSection()
    caps: CapsSection = CapsSection()
    server: ServerSection = ServerSection()
    extender: Extender = Extender()
    nodes: NodesSection = NodesSection()
    escrow: EscrowSection = EscrowSection()
    controllers: Controllers = Controllers()
    agent: AgentSection = AgentSection()
    slurm_jobs: SlurmJobsSection = SlurmJobsSection()
    sylabs: SylabsSection = SylabsSection()
    operator: OperatorSection = OperatorSection()
    health: HealthSection = HealthSection()

    @model_validator(mode="after")
    def _binder_names_are_distinct(self) -> Self:
        if names.is_binder(self.scheduler_name):
            raise ValueError(
                f"scheduler_name must not end in {names.binder('')}, found {self.scheduler_name}: "
                "this suffix marks pods that the extender binds itself"
            )
        return self

    @model_validator(mode="after")
    def _agents_pin_whole_cpus(self) -> Self:
        if self.agent.pin_cores and self.slurm.milli_cpu_per_cpu != quantities.MILLI:
            raise ValueError(
                f"agent.pin_cores needs slurm.milli_cpu_per_cpu {quantities.MILLI}, found {self.slurm.milli_cpu_per_cpu}: "
                "a container cannot be pinned to part of a CPU"
            )
        return self

    @model_validator(mode="after")
    def _rules_go_together(self) -> Self:
        problems = settings_policy.problems(
            self.policy.rules, default_partition=self.slurm.partition
        )
        if problems:
            raise ValueError("; ".join(f"policy.{problem}" for problem in problems))
        return self

    @model_validator(mode="after")
    def _old_manifests_can_become_jobs(self) -> Self:
        rules = (rule.name for rule in self.policy.rules)
        served = self.slurm_jobs.enabled
        if problems := [*settings_sylabs.problems(self.sylabs, served=served, rules=rules)]:
            raise ValueError("; ".join(problems))
        return self
