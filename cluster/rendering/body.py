"""What Kubernetes is to have, as bodies for server-side apply."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bridge.crd.metadata import ObjectMetadata
from cluster.objects import labels
from cluster.objects.parts import API_VERSION, AddedMetadata

RESTART_ANNOTATION: Final = "slurm-bridge.dev/restarted-for"
"""On a pod template: a digest of what its daemon reads only at its start."""
CONFIGURATION_ANNOTATION: Final = "slurm-bridge.dev/configuration"
"""On a ConfigMap with Slurm's files: the digest of the set. On a pod of slurmctld: of the set that its kubelet is to bring at once."""
PROVEN_ANNOTATION: Final = "slurm-bridge.dev/seen-in-force"
"""On the ConfigMap with Slurm's files: the tag of the set that slurmctld was seen to serve with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """One object, as server-side apply takes it."""

    api_version: str
    kind: str
    name: str
    namespace: str
    body: Mapping[str, Any]
    """The whole of it, `apiVersion`, `kind` and `metadata` included; without nulls of ours."""

    @property
    def digest(self) -> str:
        """Return what only this body has: 64 hexadecimal digits."""
        return digest([self.body])


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyOwner:
    """The object that others are made for."""

    kind: str
    metadata: ObjectMetadata
    app: str
    """What runs for it, such as slurmctld."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def selecting(self) -> dict[str, str]:
        """The labels that select its pods."""
        return labels.selecting(self.app, self.name)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all that is made for it."""
        return labels.standard(self.app, self.name)


def owned_by(owner: BodyOwner) -> dict[str, Any]:
    """Return the reference by which Kubernetes deletes what is made for an object after it.

    It does not block the owner's deletion in the foreground: an object that is held would have what is made for it deleted again and again.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def made(
    owner: BodyOwner,
    kind: str,
    name: str,
    *,
    api_version: str = "v1",
    added: AddedMetadata | None = None,
    annotations: Mapping[str, str] | None = None,
    parts: Mapping[str, Any],
) -> Body:
    """Return an object that belongs to another one.

    Args:
        owner: the other one.
        kind: its kind.
        name: its name.
        api_version: of its kind.
        added: labels and annotations that the user wants on it.
        annotations: ours; they win.
        parts: `spec`, `data` and so on.
    """
    metadata = {
        "name": name,
        "namespace": owner.metadata.namespace,
        **marked(added, labels=owner.labels, annotations=annotations or {}),
        "ownerReferences": [owned_by(owner)],
    }
    return Body(
        api_version=api_version,
        kind=kind,
        name=name,
        namespace=owner.metadata.namespace,
        body={"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts},
    )


def marked(
    added: AddedMetadata | None, *, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> dict[str, Any]:
    """Return labels and annotations: ours over the user's."""
    theirs = added or AddedMetadata()
    found = {
        "labels": {**(theirs.labels or {}), **labels},
        "annotations": {**(theirs.annotations or {}), **annotations},
    }
    return {key: value for key, value in found.items() if value}


def digest(parts: Iterable[object]) -> str:
    """Return a digest of values that does not depend on the order of their keys: 64 hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(list(parts), order="deterministic")).hexdigest()
