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
    KeyOfObject,
    NamedObject,
    PodTemplatePart,
    References,
    ServicePart,
    Texts,
)
from slurmruntime.crd.conditions import Number
from slurmruntime.crd.fields import ObjectStruct, rule, text, unchanged
from slurmruntime.crd.metadata import ObjectMetadata

LONGEST_CLUSTER_NAME: Final = 40

_PERIOD = (
    r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
)
Period = Annotated[str, Meta(max_length=64, pattern=_PERIOD)]
"""As Prometheus writes it, such as 30s."""


class HighAvailability(ObjectStruct, frozen=True):
    """Standby slurmctlds, which share the state."""

    enabled: Annotated[bool, Meta(description="Whether there are any.")]
    backups: Annotated[Annotated[int, Meta(ge=1, le=9)], Meta(description="How many stand by.")] = 1


class StatePersistence(ObjectStruct, frozen=True):
    """Where slurmctld keeps its state: the specification of a PersistentVolumeClaim, or the name of one."""

    enabled: Annotated[bool, Meta(description="If false, a lost pod loses all jobs.")] = True
    existing_claim: Annotated[str, text(253, "Name of a claim that is there already.")] = ""
    access_modes: Annotated[tuple[str, ...], Meta(max_length=8)] = ()
    resources: Free | None = None
    selector: Free | None = None
    data_source: Free | None = None
    data_source_ref: Free | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None


class ScrapedPath(ObjectStruct, frozen=True):
    """One of slurmctld's pages of metrics."""

    path: Annotated[str, Meta(min_length=1, max_length=256, pattern="^/")]
    interval: Period | None = None
    scrape_timeout: Period | None = None


class ScrapeMonitor(ObjectStruct, frozen=True):
    """A ServiceMonitor for Prometheus' operator."""

    enabled: bool = False
    annotations: Annotated[Texts | None, Meta(extra_json_schema=NULLABLE)] = None
    labels: Annotated[Texts | None, Meta(extra_json_schema=NULLABLE)] = None
    interval: Period | None = None
    scrape_timeout: Period | None = None
    endpoints: Annotated[
        Annotated[tuple[ScrapedPath, ...], Meta(max_length=16)] | None,
        Meta(extra_json_schema=NULLABLE),
    ] = None


class ControllerMetrics(ObjectStruct, frozen=True):
    """Whether slurmctld serves metrics, and who reads them."""

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
        Meta(description="Slurm's ClusterName; by default namespace and name, joined by _."),
    ] = None
    slurm_key_ref: Annotated[
        KeyOfObject | None, Meta(description="Secret with the key that Slurm's daemons share.")
    ] = None
    jwt_key_ref: Annotated[
        KeyOfObject | None, Meta(description="Secret with the key that signs tokens.")
    ] = None
    jwt_hs256_key_ref: Annotated[
        KeyOfObject | None,
        Meta(description="The same as jwtKeyRef, by its older name."),
    ] = msgspec.field(default=None, name="jwtHs256KeyRef")
    jwks_key_ref: Annotated[
        KeyOfObject | None, Meta(description="ConfigMap with the public keys of other issuers.")
    ] = None
    accounting_ref: Annotated[
        NamedObject | None, Meta(description="The Accounting that records its jobs.")
    ] = None
    external: Annotated[bool, Meta(description="Whether slurmctld runs elsewhere.")] = False
    external_config: Annotated[
        ExternalAddress | None, Meta(description="Where, if it runs elsewhere.")
    ] = None
    ha: Annotated[HighAvailability | None, Meta(description="Standby slurmctlds.")] = None
    slurmctld: Annotated[Free | None, Meta(description="The container.")] = None
    reconfigure: Annotated[Free | None, Meta(description="The container that reconfigures.")] = None
    logfile: Annotated[Free | None, Meta(description="The container that prints the log.")] = None
    inplace_reconfigure: Annotated[
        bool, Meta(description="Whether a change reconfigures slurmctld instead of restarting it.")
    ] = False
    template: Annotated[PodTemplatePart | None, Meta(description="Of slurmctld's pods.")] = None
    extra_conf: Annotated[str, parts.conf("Lines of slurm.conf.")] = ""
    config_file_refs: Annotated[
        References, Meta(description="Other files of Slurm's configuration.")
    ] = None
    prolog_script_refs: Annotated[References, Meta(description="Prologs on the workers.")] = None
    epilog_script_refs: Annotated[References, Meta(description="Epilogs on the workers.")] = None
    prolog_slurmctld_script_refs: Annotated[
        References, Meta(description="Prologs beside slurmctld.")
    ] = None
    epilog_slurmctld_script_refs: Annotated[
        References, Meta(description="Epilogs beside slurmctld.")
    ] = None
    persistence: Annotated[
        StatePersistence | None, Meta(description="Where its state is kept.")
    ] = None
    service: Annotated[ServicePart | None, Meta(description="Of slurmctld.")] = None
    metrics: Annotated[ControllerMetrics | None, Meta(description="Its metrics.")] = None


_SHARED_STATE = (
    "!has(self.ha) || !self.ha.enabled || (has(self.persistence) && self.persistence.enabled"
    " && has(self.persistence.existingClaim) && self.persistence.existingClaim != '')"
)
_ENABLED = "(!has({0}.persistence) || {0}.persistence.enabled)"
_CLAIM = "(has({0}.persistence) && has({0}.persistence.existingClaim) ? {0}.persistence.existingClaim : '')"
_STATE_STAYS = "slurmctld would start without its state, and all running jobs would be lost"

CONTROLLER_RULES: Final = (
    parts.HAS_ADDRESS,
    parts.HAS_SLURM_KEY,
    parts.HAS_JWT_KEY,
    rule(
        _SHARED_STATE,
        "expected the name of a claim that is ReadWriteMany, because standby slurmctlds share its state",
        path=".persistence",
        reason="FieldValueRequired",
    ),
    rule(
        unchanged("clusterName"),
        "slurmctld does not start with the state of a cluster of another name",
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
    """How slurmctld stands; written by slurm-operator only."""

    slurm_key_step: Annotated[
        Number,
        Meta(
            description="The step on the way from key to key that new daemons get; 0 is slurmKeyRef's own."
        ),
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
        """How many slurmctlds there are, those that stand by included."""
        return 1 + (self.spec.ha.backups if self.spec.ha and self.spec.ha.enabled else 0)
