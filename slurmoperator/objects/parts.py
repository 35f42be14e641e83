"""Types and rules that several kinds share."""

import re
from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from typing import Annotated, Final, Literal

from msgspec import Meta

from slurmoperator.objects.labels import KEY_NUMBER_ANNOTATION
from slurmruntime.crd.conditions import MOST_CONDITIONS, ObjectCondition
from slurmruntime.crd.fields import ObjectName, ObjectStruct, rule, text
from slurmruntime.crd.schema import FREE
from slurmruntime.model.objects import JsonDict
from slurmruntime.values import faults

GROUP: Final = "slinky.slurm.net"
VERSION: Final = "v1beta1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

LONGEST_CONF: Final = 65_536
"""Maximum number of characters in one field with configuration."""
MOST_REFERENCES: Final = 64
MOST_REPLICAS: Final = 65_533
"""The largest MaxNodeCount that Slurm accepts."""

GO_DURATION: Final = r"^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$"
"""A duration as Go writes it, such as 1h30m."""
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)")
_SECONDS: Final = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}


def note(description: str) -> Meta:
    """Return the description of a field without bounds."""
    return Meta(description=description)


def conf(description: str) -> Meta:
    """Return the bounds for a field with lines of configuration."""
    return text(LONGEST_CONF, description)


Truth = Literal["True", "False", "Unknown"]
UntimedCondition = tuple[str, Truth, str, str]
"""Type, status, reason and message."""

NULLABLE: Final = {"nullable": True}
"""Lets the API server accept a null that a chart writes."""

Free = Annotated[JsonDict, Meta(extra_json_schema={FREE: True})]
"""A container or pod specification; the API server validates it where it is used."""

Port = Annotated[int, Meta(ge=1, le=65_535)]
Replicas = Annotated[int, Meta(ge=0, le=MOST_REPLICAS)]
Host = Annotated[
    str, Meta(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9.:]*[A-Za-z0-9])?$")
]
Texts = Annotated[
    dict[str, str], Meta(extra_json_schema={"additionalProperties": {"type": "string"}})
]
DataKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=r"^[-._a-zA-Z0-9]+$",
        description="A key in the object's data.",
    ),
]


class KeyOfObject(ObjectStruct, frozen=True):
    """A key of a Secret or ConfigMap in the same namespace."""

    name: ObjectName
    key: DataKey
    optional: Annotated[bool | None, note("Ignored: the object must exist.")] = None


SlurmKey = Annotated[KeyOfObject | None, note("Secret with the key that Slurm's daemons share.")]
JwtKey = Annotated[KeyOfObject | None, note("Secret with the key that signs tokens.")]
OldJwtKey = Annotated[KeyOfObject | None, note("Older name of jwtKeyRef.")]
JwksKey = Annotated[KeyOfObject | None, note("ConfigMap with the public keys of other issuers.")]
Duration = Annotated[str, Meta(max_length=64, pattern=GO_DURATION)]


class ObjectReference(ObjectStruct, frozen=True):
    """An object in the same namespace."""

    name: ObjectName


References = Annotated[
    Annotated[tuple[ObjectReference, ...], Meta(max_length=MOST_REFERENCES)] | None,
    Meta(extra_json_schema=NULLABLE),
]
"""ConfigMaps; null means none."""


class ExternalAddress(ObjectStruct, frozen=True):
    """Address of a daemon that we do not run."""

    host: Annotated[Host, note("Host name or address.")]
    port: Annotated[Port, note("Port.")]


class ExtraMetadata(ObjectStruct, frozen=True):
    """Labels and annotations to add to the objects that we create."""

    annotations: Annotated[Texts | None, Meta(extra_json_schema=NULLABLE)] = None
    labels: Annotated[Texts | None, Meta(extra_json_schema=NULLABLE)] = None


class PodTemplatePart(ObjectStruct, frozen=True):
    """Overrides for the pods that we create."""

    metadata: Annotated[ExtraMetadata | None, note("Labels and annotations for the pods.")] = None
    spec: Annotated[Free | None, note("Merged into the pods' specification.")] = None


class ServicePart(ObjectStruct, frozen=True):
    """Overrides for the Service that we create."""

    metadata: Annotated[ExtraMetadata | None, note("Labels and annotations for the Service.")] = (
        None
    )
    spec: Annotated[Free | None, note("Merged into the Service's specification.")] = None
    port: Annotated[Port | None, note("Port of the Service.")] = None
    node_port: Annotated[Port | None, note("Port on every node.")] = None


class ConditionsOnly(ObjectStruct, frozen=True):
    """A status; only slurm-operator writes it."""

    conditions: Annotated[
        tuple[ObjectCondition, ...],
        Meta(
            max_length=MOST_CONDITIONS,
            description="Conditions of the object.",
            extra_json_schema={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        ),
    ] = ()


def condition_of(conditions: Iterable[ObjectCondition], kind: str) -> ObjectCondition | None:
    """Return the condition of a type; None if there is none."""
    return next((condition for condition in conditions if condition.type == kind), None)


def with_time(
    before: Iterable[ObjectCondition],
    condition: UntimedCondition,
    *,
    generation: int,
    now: datetime,
    longest: int = 2048,
) -> ObjectCondition:
    """Return a condition with the time since which it has held, and a message of at most `longest` bytes."""
    kind, truth, reason, message = condition
    old = condition_of(before, kind)
    return ObjectCondition(
        type=kind,
        status=truth,
        reason=reason,
        message=faults.published(message, longest),
        observed_generation=generation,
        last_transition_time=old.last_transition_time
        if old and old.status == truth
        else now.replace(microsecond=0),
    )


HAS_ADDRESS: Final = rule(
    "!(has(self.external) && self.external) || has(self.externalConfig)",
    "expected the host and port of the daemon, because external is true",
    path=".externalConfig",
    reason="FieldValueRequired",
)
HAS_SLURM_KEY: Final = rule(
    "(has(self.external) && self.external) || has(self.slurmKeyRef)",
    "expected the Secret with Slurm's key, unless external is true",
    path=".slurmKeyRef",
    reason="FieldValueRequired",
)
HAS_JWT_KEY: Final = rule(
    "(has(self.external) && self.external) || has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)",
    "expected the Secret with the key that signs tokens, unless external is true",
    path=".jwtKeyRef",
    reason="FieldValueRequired",
)

KEYS_STAY: Final = (
    "cannot be changed, because the daemons would have different keys: replace the key in the Secret of this"
    " name, and restart all daemons"
)
SLURM_KEY_STAYS: Final = (
    "cannot be changed, because the daemons would have different keys: to replace the key, set annotation"
    f" {KEY_NUMBER_ANNOTATION} of the Controller"
)


def seconds_of(duration: str) -> Fraction:
    """Return the seconds of a duration in Go's notation."""
    seconds = (Fraction(number) * _SECONDS[unit] for number, unit in _PART.findall(duration))
    return sum(seconds, Fraction())


def jwt_key(of: str) -> str:
    """Return a CEL expression for the key that signs tokens, under either field name; '' without one."""
    return (
        f"(has({of}.jwtKeyRef) ? {of}.jwtKeyRef.name + '/' + {of}.jwtKeyRef.key : "
        f"has({of}.jwtHs256KeyRef) ? {of}.jwtHs256KeyRef.name + '/' + {of}.jwtHs256KeyRef.key : '')"
    )


JWT_KEY_STAYS: Final = rule(
    f"{jwt_key('self')} == {jwt_key('oldSelf')}", KEYS_STAY, path=".jwtKeyRef"
)
CONTROLLER_STAYS: Final = rule(
    "self.controllerRef.name == oldSelf.controllerRef.name",
    "cannot be changed: create another object for another Controller",
    path=".controllerRef.name",
)
