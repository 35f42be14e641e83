"""What operators make of their own objects, recorded from the operators themselves.

Each file beside this one tells which operator made it, and from what. The operator was compiled from its Go module (with
Kubernetes' modules at 0.34.2) and ran against a sandbox whose API server wrote an audit log. What stands here are the
bodies of the requests that created the objects, its own and those of the controllers that work for it (the Job
controller, JobSet's): nothing of the bridge is in them. Left out is what places no pod: Services, ConfigMaps, Secrets,
and of pods the programs, environments, volumes and probes of their containers.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bridge.domain.model.pods import Pod
from bridge.kube import decode
from slurmruntime.kube import resource
from slurmruntime.model.objects import KubeObject
from slurmruntime.values import names

Manifest = dict[str, Any]

NAMES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.yaml")))
NAMESPACE = "team-a"
"""Of the pods and owners that are read for tests without servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One operator's answer to one object."""

    objects: tuple[Manifest, ...]
    """As they were sent, in that order, each with the uid that it was given. The first is the user's."""
    admission: Manifest
    """Kueue's merge patch of each pod, once it lets the group go on; {} of all others."""
    made_later: tuple[str, ...]
    """Names of Jobs that were made only when all other pods ran."""

    @property
    def root(self) -> Manifest:
        """The user's object."""
        return self.objects[0]

    def of_kind(self, kind: str) -> list[Manifest]:
        """All objects of that kind, in the order they were made."""
        return [manifest for manifest in self.objects if manifest["kind"] == kind]

    def owner_of(self, manifest: Mapping[str, Any]) -> Manifest | None:
        """The object's controller, if that was recorded."""
        references: Sequence[Mapping[str, Any]] = manifest["metadata"].get("ownerReferences", [])
        uids = [reference["uid"] for reference in references if reference.get("controller")]
        return next((owner for owner in self.objects if owner["metadata"]["uid"] in uids), None)

    def members(self) -> Iterator[tuple[Pod, list[KubeObject]]]:
        """Every pod as the extender sees it while it is gated, with the controllers above it, the nearest first."""
        for manifest in self.of_kind("Pod"):
            yield _pod(manifest), list(self._owners(manifest))

    def read(self, kind: str) -> Iterator[KubeObject]:
        """All objects of that kind as the extender reads them."""
        yield from map(_object, self.of_kind(kind))

    def _owners(self, manifest: Manifest) -> Iterator[KubeObject]:
        above = self.owner_of(manifest)
        if above is not None:
            yield _object(above)
            yield from self._owners(above)


def load(name: str) -> Recording:
    """Read the recording of that name."""
    text = Path(__file__).with_name(f"{name}.yaml").read_text()
    head, *objects = yaml.safe_load_all(text)
    return Recording(
        objects=tuple(objects),
        admission=head.get("admission", {}),
        made_later=tuple(head.get("made_later", ())),
    )


def _object(manifest: Manifest) -> KubeObject:
    return resource.kube_object(_json(manifest), manifest["apiVersion"], manifest["kind"])


def _pod(manifest: Manifest) -> Pod:
    """As our webhook leaves it."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    ours = {
        "metadata": {
            **metadata,
            "finalizers": [*metadata.get("finalizers", []), names.FINALIZER],
        },
        "spec": {
            **spec,
            "schedulerName": names.SCHEDULER_NAME,
            "schedulingGates": [*spec.get("schedulingGates", []), {"name": names.GATE}],
        },
        "status": {"phase": "Pending"},
    }
    return decode.pod(_json(ours))


def _json(manifest: Manifest) -> bytes:
    given = {
        "namespace": NAMESPACE,
        "resourceVersion": "1",
        "creationTimestamp": "2026-05-04T12:00:00Z",
    }
    return json.dumps({**manifest, "metadata": {**manifest["metadata"], **given}}).encode()
