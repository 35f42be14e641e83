"""Controller: slurmctld and its configuration."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from slurmoperator.objects import parts
from slurmoperator.objects.parts import (
    NULLABLE,
    ConditionsOnly,
    ExternalAddress,
    Free,
    JwksKey,
    JwtKey,
    ObjectReference,
    OldJwtKey,
    PodTemplatePart,
    References,
    ServicePart,
    SlurmKey,
    Texts,
    note,
)
from slurmruntime.crd.conditions import Number
from slurmruntime.crd.fields import ObjectStruct, rule, text, unchanged
from slurmruntime.crd.metadata import ObjectMetadata

LONGEST_CLUSTER_NAME: Final = 40

_PERIOD = (
    r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
)
Period = Annotated[str, Meta(max_length=64, pattern=_PERIOD)]
"""A Prometheus duration, such as 30s."""


class HighAvailability(ObjectStruct, frozen=True):
    """Standby slurmctlds, which share the state directory."""

    enabled: Annotated[bool, note("Whether to run standby slurmctlds.")]
    backups: Annotated[Annotated[int, Meta(ge=1, le=9)], note("Number of standbys.")] = 1


class StatePersistence(ObjectStruct, frozen=True):
    """Where slurmctld keeps its state: the specification of a PersistentVolumeClaim, or the name of an existing one."""

    enabled: Annotated[bool, note("If false, all jobs are lost with the pod.")] = True
    existing_claim: Annotated[str, text(253, "Name of an existing claim.")] = ""
    access_modes: Annotated[tuple[str, ...], Meta(max_length=8)] = ()
    resources: Free | None = None
    selector: Free | None = None
    data_source: Free | None = None
    data_source_ref: Free | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None


class MetricsPage(ObjectStruct, frozen=True):
    """One of slurmctld's pages of metrics."""

    path: Annotated[str, Meta(min_length=1, max_length=256, pattern="^/")]
    interval: Period | None = None
    scrape_timeout: Period | None = None


class ScrapeMonitor(ObjectStruct, frozen=True):
    """A ServiceMonitor for the Prometheus operator."""

    enabled: bool = False
    annotations: Annotated[Texts | None, Meta(extra_json_schema=NULLABLE)] = None
    labels: Annotated[Texts | None, Meta(extra_json_schema=NULLABLE)] = None
    interval: Period | None = None
    scrape_timeout: Period | None = None
    endpoints: Annotated[
        Annotated[tuple[MetricsPage, ...], Meta(max_length=16)] | None,
        Meta(extra_json_schema=NULLABLE),
    ] = None


class ControllerMetrics(ObjectStruct, frozen=True):
    """Whether slurmctld serves metrics, and how Prometheus scrapes them."""

    enabled: bool = False
    service_monitor: Annotated[ScrapeMonitor | None, Meta(extra_json_schema=NULLABLE)] = None


class ControllerSpec(ObjectStruct, frozen=True):
    """A Slurm cluster's slurmctld."""

    cluster_name: Annotated[
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=LONGEST_CLUSTER_NAME,
                pattern=r"^[A-Za-z0-9][-_A-Za-z0-9]*$",
            ),
        ]
        | None,
        note("Slurm's ClusterName; defaults to <namespace>_<name>."),
    ] = None
    slurm_key_ref: SlurmKey = None
    jwt_key_ref: JwtKey = None
    jwt_hs256_key_ref: OldJwtKey = msgspec.field(default=None, name="jwtHs256KeyRef")
    jwks_key_ref: JwksKey = None
    accounting_ref: Annotated[
        ObjectReference | None, note("The Accounting that records this cluster's jobs.")
    ] = None
    external: Annotated[
        bool, note("Whether slurmctld runs outside Kubernetes or is managed elsewhere.")
    ] = False
    external_config: Annotated[
        ExternalAddress | None, note("Address of an external slurmctld.")
    ] = None
    ha: Annotated[HighAvailability | None, note("Standby slurmctlds.")] = None
    slurmctld: Annotated[Free | None, note("Overrides for the slurmctld container.")] = None
    reconfigure: Annotated[
        Free | None, note("Overrides for the container that reconfigures slurmctld.")
    ] = None
    logfile: Annotated[Free | None, note("Overrides for the container that prints the log.")] = None
    inplace_reconfigure: Annotated[
        bool, note("Whether a change reconfigures slurmctld instead of restarting it.")
    ] = False
    template: Annotated[PodTemplatePart | None, note("Overrides for slurmctld's pods.")] = None
    extra_conf: Annotated[str, parts.conf("Extra lines for slurm.conf.")] = ""
    config_file_refs: Annotated[References, note("Other configuration files of Slurm.")] = None
    prolog_script_refs: Annotated[References, note("Prolog scripts that run on the workers.")] = (
        None
    )
    epilog_script_refs: Annotated[References, note("Epilog scripts that run on the workers.")] = (
        None
    )
    prolog_slurmctld_script_refs: Annotated[
        References, note("Prolog scripts that slurmctld runs.")
    ] = None
    epilog_slurmctld_script_refs: Annotated[
        References, note("Epilog scripts that slurmctld runs.")
    ] = None
    persistence: Annotated[StatePersistence | None, note("Where slurmctld keeps its state.")] = None
    service: Annotated[ServicePart | None, note("Overrides for the Service.")] = None
    metrics: Annotated[ControllerMetrics | None, note("Metrics of slurmctld.")] = None


_SHARED_STATE = (
    "!has(self.ha) || !self.ha.enabled || (has(self.persistence) && self.persistence.enabled"
    " && has(self.persistence.existingClaim) && self.persistence.existingClaim != '')"
)
_ENABLED = "(!has({0}.persistence) || {0}.persistence.enabled)"
_CLAIM = "(has({0}.persistence) && has({0}.persistence.existingClaim) ? {0}.persistence.existingClaim : '')"
_STATE_STAYS = (
    "cannot be changed: slurmctld would start without its state and lose all running jobs"
)

CONTROLLER_RULES: Final = (
    parts.HAS_ADDRESS,
    parts.HAS_SLURM_KEY,
    parts.HAS_JWT_KEY,
    rule(
        _SHARED_STATE,
        "expected the name of a ReadWriteMany claim, because standby slurmctlds share the state",
        path=".persistence",
        reason="FieldValueRequired",
    ),
    rule(
        unchanged("clusterName"),
        "cannot be changed: slurmctld does not start with the state of a cluster of another name",
        path=".clusterName",
    ),
    rule(unchanged("slurmKeyRef"), parts.SLURM_KEY_STAYS, path=".slurmKeyRef"),
    parts.JWT_KEY_STAYS,
    rule(
        f"{_ENABLED.format('self')} == {_ENABLED.format('oldSelf')}",
        _STATE_STAYS,
        path=".persistence",
    ),
    rule(
        f"{_CLAIM.format('self')} == {_CLAIM.format('oldSelf')}", _STATE_STAYS, path=".persistence"
    ),
)


class ControllerStatus(ConditionsOnly, frozen=True):
    """Status of slurmctld; only slurm-operator writes it."""

    slurm_key_step: Annotated[
        Number, note("Key rotation step for new daemons; 0 means the key of slurmKeyRef.")
    ] = 0


class ControllerObject(ObjectStruct, frozen=True):
    """A Slurm cluster's slurmctld and its configuration."""

    metadata: ObjectMetadata
    spec: ControllerSpec
    status: ControllerStatus = ControllerStatus()

    @property
    def cluster_name(self) -> str:
        """Slurm's ClusterName."""
        return self.spec.cluster_name or f"{self.metadata.namespace}_{self.metadata.name}"

    @property
    def replicas(self) -> int:
        """The number of slurmctlds, standbys included."""
        return 1 + (self.spec.ha.backups if self.spec.ha and self.spec.ha.enabled else 0)
