"""The objects of the control plane in the API server, and the workloads that we create for them: how we watch, read and write them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from slurmoperator.keys.mounts import MountingSpec
from slurmoperator.nodesets.conf_trials import ConfTrials
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.views import OpensSlurm
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject, ControllerStatus
from slurmoperator.objects.loginset import LoginSetObject, LoginSetStatus
from slurmoperator.objects.parts import API_VERSION, ConditionsOnly
from slurmoperator.objects.pod_status import PodStatus
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.objects.token import TokenObject, TokenStatus
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import paths, resource
from slurmruntime.kube.apply import writes
from slurmruntime.kube.apply.custom import CustomKind, CustomObject
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient

PartObject = ControllerObject | AccountingObject | RestApiObject | LoginSetObject | TokenObject
WatchedPart: TypeAlias = CustomObject[PartObject, ConditionsOnly]
"""Its status has the kind's own type."""

FINALIZER: Final = "slurm-bridge.dev/needed"
"""Keeps a deleted object while another one needs it; see `leaving`."""


def _kind(
    kind: str,
    plural: str,
    object_type: type[PartObject],
    status_type: type[ConditionsOnly] = ConditionsOnly,
    *,
    finalizer: str = "",
) -> CustomKind[PartObject, ConditionsOnly]:
    return CustomKind(
        api_version=API_VERSION,
        kind=kind,
        plural=plural,
        object_type=object_type,
        status_type=status_type,
        finalizer=finalizer,
    )


_ALL: Final = (
    _kind("Controller", "controllers", ControllerObject, ControllerStatus, finalizer=FINALIZER),
    _kind("Accounting", "accountings", AccountingObject, finalizer=FINALIZER),
    _kind("RestApi", "restapis", RestApiObject, finalizer=FINALIZER),
    _kind("LoginSet", "loginsets", LoginSetObject, LoginSetStatus),
    _kind("Token", "tokens", TokenObject, TokenStatus),
)
PART_KINDS: Final = {custom_kind.kind: custom_kind for custom_kind in _ALL}
PARTS: Final = {kind: custom_kind.watched for kind, custom_kind in PART_KINDS.items()}
"""How each kind is watched; the key is the uid."""


WORKLOADS: Final = frozenset({"StatefulSet", "Deployment"})


class _Template(ObjectStruct, frozen=True):
    spec: MountingSpec = MountingSpec()


class _Spec(ObjectStruct, frozen=True):
    replicas: int = 1
    template: _Template = _Template()


class _Status(ObjectStruct, frozen=True):
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0


class DaemonWorkload(ObjectStruct, frozen=True):
    """The fields of a StatefulSet or Deployment that are read."""

    metadata: ObjectMetadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_observed(self) -> bool:
        """Whether its status is about its specification."""
        return self.status.observed_generation >= self.metadata.generation

    @property
    def is_rolled(self) -> bool:
        """Whether it has all its pods, and all are of its template."""
        status = self.status
        return self.is_observed and (
            status.replicas == status.updated_replicas == self.spec.replicas
        )


class DaemonPod(ObjectStruct, frozen=True):
    """The fields of a daemon's pod that are read."""

    metadata: ObjectMetadata
    status: PodStatus = PodStatus()


class WorkloadObject(ObjectStruct, frozen=True):
    """A StatefulSet or Deployment of ours: only its owner, and the fact that it has changed, matter."""

    metadata: ObjectMetadata


WATCHED_WORKLOADS: Final = {
    kind: resource.own_kind(
        paths.collection("apps/v1", writes.PLURALS["apps/v1", kind]), kind, WorkloadObject
    )
    for kind in sorted(WORKLOADS)
}
"""How they are watched, by kind; select them by `labels.MADE_BY_US`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCaches:
    """What is watched for the control plane."""

    parts: Mapping[str, Cache[WatchedPart]]
    """All its objects, by kind and uid."""
    workloads: Collection[Cache[WorkloadObject]]
    node_sets: Cache[WatchedNodeSet]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPeers:
    """Both systems, for the control plane."""

    kube: KubeClient
    slurms: OpensSlurm
    """Opens a client of a Controller's Slurm, to find out which partitions have jobs."""
    tried: ConfTrials
    """Takes slurmctld's verdicts on the nodes that workers will register."""
