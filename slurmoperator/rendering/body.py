"""Bodies for server-side apply: one for each object that Kubernetes should have."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from slurmoperator.objects import labels
from slurmoperator.objects.parts import API_VERSION, ExtraMetadata
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.model.objects import JsonDict, JsonObject

RESTART_ANNOTATION: Final = "slurm-bridge.dev/restarted-for"
"""On a pod template: digest of what the daemon reads only at startup."""
CONFIGURATION_ANNOTATION: Final = "slurm-bridge.dev/configuration"
"""On a ConfigMap with Slurm's files: their digest. On a pod of slurmctld: digest of the files that its kubelet should deliver at once."""
PROVEN_ANNOTATION: Final = "slurm-bridge.dev/seen-in-force"
"""On the ConfigMap with Slurm's files: the tag of the files that slurmctld has served with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyOwner:
    """The object that bodies are rendered for; it owns them."""

    kind: str
    metadata: ObjectMetadata
    app: str
    """The daemon, such as slurmctld."""

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
        """The labels of everything it owns."""
        return labels.standard(self.app, self.name)


def owner_reference(owner: BodyOwner) -> JsonDict:
    """Return the owner reference, by which Kubernetes deletes what belongs to an object after it.

    It does not block the owner's deletion in the foreground: while a finalizer holds the owner, its objects would be deleted again and again.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def owned_body(
    owner: BodyOwner,
    kind: str,
    name: str,
    *,
    api_version: str = "v1",
    added: ExtraMetadata | None = None,
    annotations: Mapping[str, str] | None = None,
    parts: JsonObject,
) -> JsonDict:
    """Return the body of an object with an owner: `parts` are `spec`, `data` and so on. Our annotations win over the user's (`added`)."""
    metadata = {
        "name": name,
        "namespace": owner.metadata.namespace,
        **merge_metadata(added, labels=owner.labels, annotations=annotations or {}),
        "ownerReferences": [owner_reference(owner)],
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def merge_metadata(
    added: ExtraMetadata | None, *, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> JsonDict:
    """Return labels and annotations; ours override the user's."""
    theirs = added or ExtraMetadata()
    metadata = {
        "labels": {**(theirs.labels or {}), **labels},
        "annotations": {**(theirs.annotations or {}), **annotations},
    }
    return {key: value for key, value in metadata.items() if value}


def restart_digest(files: str) -> str:
    """Return the digest of what a daemon reads only at startup.

    The empty part once was a digest of its keys: without it, an upgrade would restart every daemon.
    """
    return digest([files, ""])


def digest(parts: Iterable[object]) -> str:
    """Return the SHA-256 of values, regardless of the order of keys: 64 hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(list(parts), order="deterministic")).hexdigest()
