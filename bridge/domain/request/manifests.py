"""Find pods in manifests of any kind.

Templates are recognised by their shape, so unknown kinds work too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from slurmruntime.model.objects import WHOLE_KINDS, JsonObject, KubeObject

Manifest = JsonObject

_JOBS_OF = frozenset({"CronJob", "JobSet"})
"""Kinds whose object templates make Jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A pod as a manifest would create it."""

    root: KubeObject
    """The object that contains it; for a pod itself, that pod."""
    path: str
    """The path of the template in the object: `spec.template`; "" for a pod itself."""
    metadata: Manifest
    """Labels and annotations."""
    spec: Manifest
    owners: tuple[KubeObject, ...] = ()
    """The controllers that the pod would have, nearest first, as far as the manifest shows them; ()
    for a pod itself."""
    around: tuple[Manifest, ...] = ()
    """The mappings that enclose the template, nearest first; they determine how many such pods
    there are."""


def templates(manifest: Manifest) -> Iterator[Template]:
    """Find every pod that an object would create."""
    root = read(manifest)
    for path, pod, around in _pods(manifest, "", ()):
        inner = pod.get("metadata") or {}
        yield Template(
            root=root,
            path=path,
            metadata={key: inner[key] for key in ("labels", "annotations") if inner.get(key)},
            spec=pod["spec"],
            owners=(*_objects_between(root, around), root) if path else (),
            around=around,
        )


def read(manifest: Manifest) -> KubeObject:
    """Read an object that is not in the cluster (yet); its uid is made up."""
    kind = str(manifest.get("kind") or "object without kind")
    metadata = manifest.get("metadata") or {}
    spec = manifest.get("spec")
    name = str(metadata.get("name") or metadata.get("generateName") or "(without name)")
    return KubeObject(
        api_version=str(manifest.get("apiVersion") or ""),
        kind=kind,
        uid=f"uid-of-{kind}-{name}",
        name=name,
        namespace=str(metadata.get("namespace") or ""),
        labels=_texts(metadata.get("labels")),
        annotations=_texts(metadata.get("annotations")),
        spec=spec if kind in WHOLE_KINDS and isinstance(spec, Mapping) else {},
    )


def _objects_between(root: KubeObject, around: tuple[Manifest, ...]) -> Iterator[KubeObject]:
    """Read the objects between the root and the pod: a CronJob's or a JobSet's Jobs."""
    kind = "Job" if root.kind in _JOBS_OF else "object without kind"
    for holder in around[:-1]:
        if isinstance(holder.get("spec"), Mapping):
            yield replace(read({**holder, "kind": kind}), name="")  # generated on creation


def _texts(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(key): text for key, text in value.items() if isinstance(text, str)}


def _pods(
    node: object, path: str, around: tuple[Manifest, ...]
) -> Iterator[tuple[str, Manifest, tuple[Manifest, ...]]]:
    """Walk through everything in order; what has `spec.containers` is a pod."""
    match node:
        case Mapping() if _is_pod(node):
            yield path, node, around
        case Mapping():
            for key, value in node.items():
                yield from _pods(value, f"{path}.{key}" if path else str(key), (node, *around))
        case list():
            for n, value in enumerate(node):
                yield from _pods(value, f"{path}[{n}]", around)
        case _:
            pass


def _is_pod(holder: Manifest) -> bool:
    match holder:
        case {"spec": {"containers": [*_]}}:
            return True
        case _:
            return False
