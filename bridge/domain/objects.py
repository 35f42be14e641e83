"""Any Kubernetes object, reduced to its metadata."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.domain.pods import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeObject:
    """A namespace, a Job, a pod's root owner …: `metadata` is all that is read of it."""

    uid: str
    name: str
    namespace: str = ""
    """ "" where the object is cluster-wide."""
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner: Owner | None = None
    is_deleting: bool = False
