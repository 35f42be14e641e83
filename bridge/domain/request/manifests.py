"""Pods in manifests of any kind: a workload's templates are found by their shape, so kinds nobody has heard of work too."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.domain.request import overrides

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A pod as a manifest would make it."""

    kind: str
    """Of the object it stands in."""
    name: str
    """The object's."""
    namespace: str
    """"" where the manifest names none."""
    path: str
    """Of the template in the object: `spec.template`; "" for a pod itself."""
    metadata: Manifest
    """Labels and annotations."""
    spec: Manifest
    owner_requests: Mapping[str, str] = field(default_factory=dict)
    """What the object's own annotations ask of Slurm; the template's outweigh them."""


def templates(manifest: Manifest) -> Iterator[Template]:
    """Find every pod that an object would make."""
    metadata = manifest.get("metadata") or {}
    kind = str(manifest.get("kind") or "object without kind")
    asked = {} if kind == "Pod" else overrides.requests(metadata.get("annotations") or {})
    for path, holder in _holders(manifest, ""):
        inner = holder.get("metadata") or {}
        yield Template(
            kind=kind,
            name=str(metadata.get("name") or metadata.get("generateName") or "(without name)"),
            namespace=str(metadata.get("namespace") or ""),
            path=path,
            metadata={key: inner[key] for key in ("labels", "annotations") if inner.get(key)},
            spec=holder["spec"],
            owner_requests=asked,
        )


def _holders(node: object, path: str) -> Iterator[tuple[str, Manifest]]:
    """Go through everything in order; what has `spec.containers` is a pod."""
    match node:
        case Mapping() if _is_pod(node):
            yield path, node
        case Mapping():
            for key, value in node.items():
                yield from _holders(value, f"{path}.{key}" if path else str(key))
        case list():
            for n, value in enumerate(node):
                yield from _holders(value, f"{path}[{n}]")
        case _:
            pass


def _is_pod(holder: Manifest) -> bool:
    match holder:
        case {"spec": {"containers": [*_]}}:
            return True
        case _:
            return False
