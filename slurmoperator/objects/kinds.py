"""The six kinds and SlurmCluster: their names, types, rules and columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from slurmoperator.objects.accounting import ACCOUNTING_RULES, AccountingObject
from slurmoperator.objects.controller import CONTROLLER_RULES, ControllerObject
from slurmoperator.objects.loginset import LOGIN_SET_RULES, LoginSetObject
from slurmoperator.objects.nodeset import NODE_SET_RULES, NodeSetObject
from slurmoperator.objects.own import slurm_cluster
from slurmoperator.objects.own.slurm_cluster import SLURM_CLUSTER_RULES, SlurmClusterObject
from slurmoperator.objects.parts import GROUP, VERSION
from slurmoperator.objects.restapi import REST_API_RULES, RestApiObject
from slurmoperator.objects.token import TOKEN_RULES, TokenObject
from slurmruntime.crd.fields import ObjectStruct

Column = tuple[str, str, str, int]
"""Name, type, path, and 1 for those that only `-o wide` shows."""

_AGE: Column = ("Age", "date", ".metadata.creationTimestamp", 0)
_READY: Column = ("State", "string", ".status.conditions[?(@.type=='Ready')].reason", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterKind:
    """One of the kinds."""

    kind: str
    short_names: tuple[str, ...]
    object_type: type[ObjectStruct]
    rules: Sequence[Mapping[str, str]]
    columns: tuple[Column, ...]
    is_scaled: bool = False
    group: str = GROUP
    version: str = VERSION

    @property
    def plural(self) -> str:
        """Its name in paths of the API."""
        return f"{self.kind.lower()}s"

    def type_of(self, part: Literal["spec", "status"]) -> type[ObjectStruct]:
        """Return the type of its specification or of its status."""
        fields = msgspec.structs.fields(self.object_type)
        part_type: type[ObjectStruct] = next(field.type for field in fields if field.name == part)
        return part_type

    @property
    def definition_name(self) -> str:
        """The name of its CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"


KINDS: Final = (
    ClusterKind(
        kind="Controller",
        short_names=("slurmctld",),
        object_type=ControllerObject,
        rules=CONTROLLER_RULES,
        columns=(_READY, _AGE),
    ),
    ClusterKind(
        kind="NodeSet",
        short_names=("nss", "slurmd"),
        object_type=NodeSetObject,
        rules=NODE_SET_RULES,
        columns=(
            ("Desired", "integer", ".status.desired", 0),
            ("Replicas", "integer", ".status.replicas", 0),
            ("Updated", "integer", ".status.updatedReplicas", 0),
            ("Ready", "integer", ".status.readyReplicas", 0),
            ("Idle", "integer", ".status.slurmIdle", 1),
            ("Allocated", "integer", ".status.slurmAllocated", 1),
            ("Down", "integer", ".status.slurmDown", 1),
            ("Drain", "integer", ".status.slurmDrain", 1),
            _AGE,
        ),
        is_scaled=True,
    ),
    ClusterKind(
        kind="LoginSet",
        short_names=("lss", "sackd"),
        object_type=LoginSetObject,
        rules=LOGIN_SET_RULES,
        columns=(("Replicas", "integer", ".status.replicas", 0), _READY, _AGE),
        is_scaled=True,
    ),
    ClusterKind(
        kind="RestApi",
        short_names=("slurmrestd",),
        object_type=RestApiObject,
        rules=REST_API_RULES,
        columns=(_READY, _AGE),
    ),
    ClusterKind(
        kind="Accounting",
        short_names=("slurmdbd",),
        object_type=AccountingObject,
        rules=ACCOUNTING_RULES,
        columns=(_READY, _AGE),
    ),
    ClusterKind(
        kind="Token",
        short_names=("jwt",),
        object_type=TokenObject,
        rules=TOKEN_RULES,
        columns=(
            ("User", "string", ".spec.username", 0),
            ("Iat", "date", ".status.issuedAt", 0),
            _AGE,
        ),
    ),
)

SLURM_CLUSTER: Final = ClusterKind(
    kind=slurm_cluster.KIND,
    short_names=("sc",),
    object_type=SlurmClusterObject,
    rules=SLURM_CLUSTER_RULES,
    columns=(
        _READY,
        ("Workers", "integer", ".status.workers", 0),
        ("Ready", "integer", ".status.readyWorkers", 0),
        ("Idle", "integer", ".status.idle", 1),
        ("Allocated", "integer", ".status.allocated", 1),
        _AGE,
    ),
    group=slurm_cluster.GROUP,
    version=slurm_cluster.VERSION,
)
"""Our own kind; slurm-operator creates objects of the other six from it."""
