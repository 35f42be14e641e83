"""Any Kubernetes object: as JSON, or reduced to its metadata."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from slurmruntime.values.oddities import About

JsonObject: TypeAlias = Mapping[str, Any]
"""A Kubernetes object, or a part of one, as JSON: what it holds is known only to who reads a field."""
JsonDict: TypeAlias = dict[str, Any]
"""The same while it is being built, or decoded and owned by its reader."""

WHOLE_KINDS = frozenset({"Job", "JobSet", "LeaderWorkerSet", "PodGroup"})
"""Kinds whose spec and status are read too: they say how many pods there will be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The controlling owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeObject:
    """A namespace, a Job, a pod's root owner …: `metadata`, and what else was requested."""

    api_version: str = ""
    kind: str = ""
    """Both are set if the object was read by them."""

    uid: str
    name: str
    namespace: str = ""
    """"" if the object is cluster-scoped."""
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner: Owner | None = None
    is_deleting: bool = False
    spec: JsonObject = field(default_factory=dict)
    """As the API server has it; {} if only the metadata was requested."""
    status: JsonObject = field(default_factory=dict)
    size_bytes: int = 0
    """Size of its JSON as it was read, for caches."""

    @property
    def about(self) -> About:
        """How an Event refers to it, if it was read by its kind."""
        return About(
            api_version=self.api_version,
            kind=self.kind,
            namespace=self.namespace,
            name=self.name,
            uid=self.uid,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An object by its name."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def to(cls, target: KubeObject) -> "Reference":
        """Refer to an object that was read by its kind."""
        return cls(
            api_version=target.api_version,
            kind=target.kind,
            namespace=target.namespace,
            name=target.name,
        )
