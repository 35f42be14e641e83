"""What the objects of several kinds have in common."""

import re
from fractions import Fraction
from typing import Annotated, Any, Final

from msgspec import Meta

from slurmoperator.objects.labels import KEY_NUMBER_ANNOTATION
from slurmruntime.crd.conditions import MOST_CONDITIONS, ObjectCondition
from slurmruntime.crd.fields import ObjectName, ObjectStruct, rule, text
from slurmruntime.crd.schema import FREE

GROUP: Final = "slinky.slurm.net"
VERSION: Final = "v1beta1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

LONGEST_CONF: Final = 65_536
"""Characters of configuration in one field."""
MOST_REFERENCES: Final = 64
MOST_REPLICAS: Final = 65_533
"""The largest MaxNodeCount that Slurm takes."""

GO_DURATION: Final = r"^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$"
"""Such as 1h30m."""
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)")
_SECONDS: Final = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}

NULLABLE: Final = {"nullable": True}
"""The API server keeps a null that a chart has written."""

Free = Annotated[dict[str, Any], Meta(extra_json_schema={FREE: True})]
"""A container or pod specification: the API server judges it where it is used."""

Port = Annotated[int, Meta(ge=1, le=65_535)]
Replicas = Annotated[int, Meta(ge=0, le=MOST_REPLICAS)]
Host = Annotated[
    str, Meta(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9.:]*[A-Za-z0-9])?$")
]
"""A name or an address."""
Texts = Annotated[
    dict[str, str], Meta(extra_json_schema={"additionalProperties": {"type": "string"}})
]
DataKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=r"^[-._a-zA-Z0-9]+$",
        description="A key of its data.",
    ),
]


class KeyOfObject(ObjectStruct, frozen=True):
    """A key of a Secret or ConfigMap in the same namespace."""

    name: ObjectName
    key: DataKey
    optional: Annotated[
        bool | None, Meta(description="Not used: whatever is named must exist.")
    ] = None


class NamedObject(ObjectStruct, frozen=True):
    """An object in the same namespace."""

    name: ObjectName


References = Annotated[
    Annotated[tuple[NamedObject, ...], Meta(max_length=MOST_REFERENCES)] | None,
    Meta(extra_json_schema=NULLABLE),
]
"""ConfigMaps; null means the same as none."""


class ExternalAddress(ObjectStruct, frozen=True):
    """Where a daemon listens that is not ours."""

    host: Annotated[Host, Meta(description="Its name or address.")]
    port: Annotated[Port, Meta(description="Its port.")]


class AddedMetadata(ObjectStruct, frozen=True):
    """Labels and annotations of the objects that are made."""

    annotations: Annotated[Texts | None, Meta(extra_json_schema=NULLABLE)] = None
    labels: Annotated[Texts | None, Meta(extra_json_schema=NULLABLE)] = None


class PodTemplatePart(ObjectStruct, frozen=True):
    """What is laid over the pods that are made."""

    metadata: Annotated[AddedMetadata | None, Meta(description="Of the pods.")] = None
    spec: Annotated[Free | None, Meta(description="Laid over the pods' own specification.")] = None


class ServicePart(ObjectStruct, frozen=True):
    """What is laid over the Service that is made."""

    metadata: Annotated[AddedMetadata | None, Meta(description="Of the Service.")] = None
    spec: Annotated[Free | None, Meta(description="Laid over the Service's own.")] = None
    port: Annotated[Port | None, Meta(description="Port of the Service.")] = None
    node_port: Annotated[Port | None, Meta(description="Port on every node.")] = None


class ConditionsOnly(ObjectStruct, frozen=True):
    """A status; written by slurm-operator only."""

    conditions: Annotated[
        tuple[ObjectCondition, ...],
        Meta(
            max_length=MOST_CONDITIONS,
            description="What holds of it, and why.",
            extra_json_schema={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        ),
    ] = ()


def conf(description: str) -> Meta:
    """Return the bounds of lines of configuration."""
    return text(LONGEST_CONF, description)


HAS_ADDRESS: Final = rule(
    "!(has(self.external) && self.external) || has(self.externalConfig)",
    "expected host and port of the daemon, because external is true",
    path=".externalConfig",
    reason="FieldValueRequired",
)
HAS_SLURM_KEY: Final = rule(
    "(has(self.external) && self.external) || has(self.slurmKeyRef)",
    "expected the Secret with Slurm's own key, unless external is true",
    path=".slurmKeyRef",
    reason="FieldValueRequired",
)
HAS_JWT_KEY: Final = rule(
    "(has(self.external) && self.external) || has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)",
    "expected the Secret with the key of tokens, unless external is true",
    path=".jwtKeyRef",
    reason="FieldValueRequired",
)

KEYS_STAY: Final = "the daemons would have different keys: create a Secret of this name with the new key, and restart all of them"
SLURM_KEY_STAYS: Final = f"the daemons would have different keys: annotation {KEY_NUMBER_ANNOTATION} of a Controller replaces theirs"


def seconds_of(duration: str) -> Fraction:
    """Return the seconds of a duration that Go would read."""
    found = (Fraction(number) * _SECONDS[unit] for number, unit in _PART.findall(duration))
    return sum(found, Fraction())


def jwt_key(of: str) -> str:
    """Return the expression of the key of tokens, by either of its names; null without one."""
    return (
        f"(has({of}.jwtKeyRef) ? {of}.jwtKeyRef.name + '/' + {of}.jwtKeyRef.key : "
        f"has({of}.jwtHs256KeyRef) ? {of}.jwtHs256KeyRef.name + '/' + {of}.jwtHs256KeyRef.key : '')"
    )


JWT_KEY_STAYS: Final = rule(
    f"{jwt_key('self')} == {jwt_key('oldSelf')}", KEYS_STAY, path=".jwtKeyRef"
)
CONTROLLER_STAYS: Final = rule(
    "self.controllerRef.name == oldSelf.controllerRef.name",
    "it belongs to that Controller for good: create another object for another one",
    path=".controllerRef.name",
)
