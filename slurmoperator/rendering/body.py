"""Bodies for server-side apply: one for each object that Kubernetes should have."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from slurmoperator.configuration.rendering import ConfigurationSet
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


def owner_reference(
    kind: str, metadata: ObjectMetadata, *, api_version: str = API_VERSION, blocks: bool = False
) -> JsonDict:
    """Return the owner reference, by which Kubernetes deletes what belongs to an object after it.

    Args:
        blocks: whether it blocks the owner's deletion in the foreground. Not where a finalizer holds the owner: its objects would be
            deleted again and again.
    """
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": blocks,
    }


def identity(kind: str, namespace: str, name: str, *, api_version: str = API_VERSION) -> JsonDict:
    """Return apiVersion, kind, name and namespace of an object, by default of one of the six kinds."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


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
        "ownerReferences": [owner_reference(owner.kind, owner.metadata)],
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def owned_secret(
    owner: BodyOwner,
    name: str,
    data: Mapping[str, bytes],
    *,
    annotations: Mapping[str, str] | None = None,
    **parts: object,
) -> JsonDict:
    """Return the body of a Secret with an owner, of type Opaque unless `parts` say otherwise."""
    encoded = {key: base64.b64encode(value).decode() for key, value in sorted(data.items())}
    parts = {"type": "Opaque", **parts, "data": encoded}
    return owned_body(owner, "Secret", name, annotations=annotations, parts=parts)


def files_annotations(files: ConfigurationSet, *, is_proven: bool = False) -> dict[str, str]:
    """Return the annotations of an object with Slurm's files; `is_proven` if the daemon has served with them."""
    proven = {PROVEN_ANNOTATION: files.tag} if is_proven else {}
    return {CONFIGURATION_ANNOTATION: files.digest, **proven}


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
