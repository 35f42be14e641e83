"""Every setting, with its unit, default and meaning; all programs share one YAML file.

The sources, in increasing precedence, are the defaults, the YAML file (`--config`), the environment
(`SLURM_BRIDGE_SECTION__FIELD`), and files named `section__field` with one value each, in a
directory such as a mounted Secret (`--secrets-dir` or `SLURM_BRIDGE_SECRETS_DIR`). An unknown name
is an error in any source, and all faults are reported at once. In the environment and in files,
lists are comma-separated, maps are JSON, and `null` means absent.

Tokens and keys are never settings: settings name the files that contain them, and those files are
reread when they change.
"""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from bridge.domain.model.devices import gres
from bridge.domain.request.rules import RESERVED
from bridge.settings import agent as settings_agent
from bridge.settings import devices as settings_devices
from bridge.settings import policy as settings_policy
from bridge.settings import sylabs as settings_sylabs
from bridge.settings.agent import AgentSection
from bridge.settings.caps import CapsSection
from bridge.settings.operator import OperatorSection
from bridge.settings.policy import OptionalField, RuleSection
from bridge.settings.servers import EscrowSection, Extender, Webhook
from bridge.settings.slurm import Slurm
from bridge.settings.slurm_jobs import SlurmJobsSection
from bridge.settings.sylabs import SylabsSection
from slurmruntime.settings import values as settings_values
from slurmruntime.settings.sections import HealthSection, LeaderElection, Log
from slurmruntime.settings.values import Amount, Count, Seconds, Section
from slurmruntime.values import names

ENV_PREFIX = "SLURM_BRIDGE_"


class Kubernetes(Section):
    """How to reach the API server."""

    kubeconfig: str = Field(
        "", description="Path of a kubeconfig file; empty: the pod's service account."
    )
    request_timeout_s: Seconds = Field(10, description="Time-out of one request, except watches.")
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
    default_memory_mib: Count = Field(256, description="Memory of a pod that requests none.")
    default_time_limit_min: Annotated[Count | None, BeforeValidator(settings_values.null)] = Field(
        None, description="Time limit of a pod that sets none; null: the partition's."
    )
    required_limits: Annotated[
        tuple[Literal["cpu", "memory", "ephemeral-storage"], ...],
        BeforeValidator(settings_values.split),
    ] = Field(
        (),
        description="Resources for which every container needs a limit that equals its request; "
        "others may use more than Slurm gave them.",
    )
    allowed_fields: Annotated[tuple[OptionalField, ...], BeforeValidator(settings_values.split)] = (
        Field(
            (),
            description="Request fields that users may set in addition to the unrestricted ones, "
            "without policy.rules.",
        )
    )
    submit_concurrency: Count = Field(
        8, description="Maximum number of concurrent submissions; at most slurm.connections."
    )
    poll_interval_s: Seconds = Field(
        0.5,
        description="Interval between readings of job states while pods wait; it grows to "
        "idle_poll_interval_s while nothing happens.",
    )
    idle_poll_interval_s: Seconds = Field(
        2,
        description="The same interval otherwise; at least poll_interval_s. Where Slurm has very many jobs, it grows to 10 s while nothing of ours happens: docs/scale.md.",
    )
    quiet_period_s: Seconds = Field(
        10, description="How long a placeholder must be missing before it counts as gone."
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
    tell_after_s: Seconds = Field(
        2, description="How long a pod waits before its status explains why."
    )
    incomplete_after_s: Seconds = Field(
        60, description="How long a gang may be incomplete before its pods report what is missing."
    )
    when_full: Literal["own-job", "wait"] = Field(
        "own-job",
        description="What happens to a pod for which its running gang has no slot: it gets its own Slurm job, "
        f"or waits for a slot; annotation {names.WHEN_FULL_ANNOTATION} takes precedence.",
    )
    priority_classes: Annotated[
        dict[str, dict[str, str]], BeforeValidator(settings_values.parse_json)
    ] = Field(
        default_factory=dict,
        description="What pods of a Kubernetes priority class request from Slurm, by the fields of "
        'docs/annotations.md, such as {"urgent": {"qos": "high"}}; annotations take precedence, '
        "and the policy applies to both.",
    )
    tells_per_second: Amount = Field(
        20, description="Rate limit of status updates of waiting pods, for all of them together."
    )
    avoid_node_s: Seconds = Field(
        300, description="How long a node that Kubernetes could not use is avoided."
    )
    workers: Count = Field(16, description="Maximum number of pods processed concurrently.")

    @model_validator(mode="after")
    def _idle_is_no_faster(self) -> Self:
        if self.idle_poll_interval_s < self.poll_interval_s:
            raise ValueError(
                f"idle_poll_interval_s must be at least poll_interval_s, "
                f"found {self.idle_poll_interval_s:g} and {self.poll_interval_s:g}"
            )
        return self


class Controllers(Section):
    """Pods that have a node, and Slurm's view of the nodes."""

    self_test_namespace: str = Field(
        "",
        pattern=r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$",
        description="Namespace in which the webhook is tested by a dry run; empty: no test.",
    )
    self_test_interval_s: Seconds = Field(
        60, description="Interval between tests of the webhook while it works."
    )
    workers: Count = Field(16, description="Maximum number of pods processed concurrently.")
    poll_interval_s: Seconds = Field(
        1,
        description="Interval between readings of job states; with very many jobs in Slurm up to 10 s: docs/scale.md.",
    )
    orphan_interval_s: Seconds = Field(
        30, description="Interval between searches for placeholders without pods."
    )
    start_deadline_s: Seconds = Field(
        1800,
        description="How long a bound pod's first container may take to start, image included.",
    )
    kept_slots_deadline_s: Annotated[Seconds | None, BeforeValidator(settings_values.null)] = Field(
        3600,
        description="How long a started gang keeps slots for pods that its controller has not "
        "created yet (LeaderReady, exclusive topology) before it is evicted; null: no limit.",
    )
    restore_deadline_s: Seconds = Field(
        600, description="How long a lost placeholder may wait to get its nodes back."
    )
    eviction_share: Annotated[float, Field(gt=0, le=1)] = Field(
        0.3,
        description="Share of running pods that may be evicted at once because Slurm lost their jobs.",
    )
    eviction_always: Count = Field(
        20, description="Number of pods that may be evicted at once regardless of that share."
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
    node_interval_s: Seconds = Field(
        5, description="Interval between readings of Slurm's nodes while nothing changes."
    )
    drain_conditions: Annotated[tuple[str, ...], BeforeValidator(settings_values.split)] = Field(
        ("DiskPressure", "MemoryPressure", "NetworkUnavailable", "PIDPressure"),
        description="Types of node conditions that drain the node in Slurm while they are True.",
    )
    device_patience_s: Seconds = Field(
        300,
        description="Grace period before a node with fewer devices than its GRES in Slurm is registered again; until then it is drained.",
    )
    cordon_drained_nodes: bool = Field(
        default=False,
        description="Cordon nodes that someone else has drained, downed or failed in Slurm.",
    )
    taint_effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = Field(
        "NoSchedule", description="Effect of the managed-node taint; empty: no taint."
    )


class NodesSection(Section):
    """How both systems share nodes."""

    hybrid: Literal["escrow", "alternate", "acceptOverlap", ""] = Field(
        "",
        description="What keeps native jobs of hybrid nodes off containers of ended jobs that still stop: escrow, slurmctld's script "
        "(docs/escrow.md); alternate, native jobs and pods take turns; acceptOverlap, nothing. Empty: no pod is placed on a hybrid "
        "node (docs/nodes.md).",
    )


class CertificatesSection(Section):
    """Certificates that the controllers' leader signs for webhook, extender and kube-scheduler."""

    release: str = Field(
        "",
        pattern=r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$",
        description="Name prefix of its Secrets and webhook configurations; empty: not signed here.",
    )
    hosts: Annotated[dict[str, tuple[str, ...]], BeforeValidator(settings_values.parse_json)] = (
        Field(
            default_factory=dict,
            description="Names and addresses of each component; without any: a client certificate.",
        )
    )
    lifetime_s: Count = Field(
        90 * 86400, description="Lifetime of a certificate; it is renewed after two thirds."
    )
    authority_lifetime_s: Count = Field(
        3650 * 86400,
        description="Lifetime of the CA; its successor is published after half of it and signs "
        "after two thirds.",
    )

    @model_validator(mode="after")
    def _certificates_fit_in_the_rest_of_a_ca(self) -> Self:
        if self.authority_lifetime_s < 3 * self.lifetime_s:
            raise ValueError(
                f"authority_lifetime_s must be at least three times lifetime_s, "
                f"found {self.authority_lifetime_s} and {self.lifetime_s}"
            )
        return self


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
    webhook: Webhook = Webhook()
    extender: Extender = Extender()
    nodes: NodesSection = NodesSection()
    escrow: EscrowSection = EscrowSection()
    controllers: Controllers = Controllers()
    agent: AgentSection = AgentSection()
    slurm_jobs: SlurmJobsSection = SlurmJobsSection()
    sylabs: SylabsSection = SylabsSection()
    operator: OperatorSection = OperatorSection()
    certificates: CertificatesSection = CertificatesSection()
    leader_election: LeaderElection = LeaderElection()
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
    def _submits_have_connections(self) -> Self:
        if self.placement.submit_concurrency > self.slurm.connections:
            raise ValueError(
                f"placement.submit_concurrency must be at most slurm.connections, "
                f"found {self.placement.submit_concurrency} and {self.slurm.connections}"
            )
        return self

    @model_validator(mode="after")
    def _agents_pin_whole_cpus(self) -> Self:
        settings_agent.check(self.agent, self.slurm.milli_cpu_per_cpu)
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
