"""Renders the PersistentVolumeClaims of workers: one per template and worker, with the names that a StatefulSet would use."""

from collections.abc import Iterator, Mapping
from typing import Final

from slurmoperator.objects.labels import WORKER_APP, standard
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey, volumes_of
from slurmruntime.model.objects import JsonDict, JsonObject
from slurmruntime.values import numbers
from slurmruntime.values.faults import Fault

NODE_SET_UID_ANNOTATION: Final = "slurm-bridge.dev/node-set-uid"
"""On a claim that we created: uid of the NodeSet."""
UNNEEDED_ANNOTATION: Final = "slurm-bridge.dev/unneeded-since"
"""On a claim that we created: since when no worker with its ordinal has existed or been desired."""
_LONGEST_NAME: Final = 63
"""Maximum length of a template's name, which is also the name of the pod's volume."""


def claim_faults(node_set: NodeSetObject) -> Iterator[Fault]:
    """Yield what is wrong with the volume claim templates."""
    seen = set()
    for index, template in enumerate(node_set.spec.volume_claim_templates or ()):
        path = f"spec.volumeClaimTemplates[{index}]"
        name = _name(template)
        if not name or len(name) > _LONGEST_NAME:
            text = (
                f"expected a name of at most {_LONGEST_NAME} characters: volumeMounts refer to it"
            )
            yield Fault(f"{path}.metadata.name", text)
        elif name in seen:
            text = f"expected a unique name: another template is also called {name}"
            yield Fault(f"{path}.metadata.name", text)
        seen.add(name)
        if not isinstance(template.get("spec"), Mapping):
            yield Fault(f"{path}.spec", "expected the specification of a PersistentVolumeClaim")


def claim_name(template: str, node_set: str, key: WorkerKey) -> str:
    """Return the name of a worker's claim."""
    return f"{_prefix(template, node_set)}{volumes_of(key)}"


def claim_number(node_set: NodeSetObject, claim: str) -> int | None:
    """Return the ordinal of the worker that a claim belongs to; None if it belongs to no numbered worker of this NodeSet."""
    for template in node_set.spec.volume_claim_templates or ():
        text = claim.removeprefix(_prefix(_name(template), node_set.metadata.name))
        number = numbers.integer(text) if text != claim else None
        if number is not None and str(number) == text:
            return number
    return None


def claim_bodies(node_set: NodeSetObject, key: WorkerKey) -> tuple[JsonDict, ...]:
    """Return the claims of one worker. They have no owner: the retention policy is applied when the NodeSet is deleted."""
    return tuple(
        _body(node_set, template, key) for template in node_set.spec.volume_claim_templates or ()
    )


def with_claims(node_set: NodeSetObject, key: WorkerKey, specification: JsonObject) -> JsonDict:
    """Return a pod's specification with the worker's claims in place of other volumes of the same names."""
    names = [_name(template) for template in node_set.spec.volume_claim_templates or ()]
    others = [
        volume for volume in specification.get("volumes") or () if volume.get("name") not in names
    ]
    claimed = [
        {
            "name": name,
            "persistentVolumeClaim": {"claimName": claim_name(name, node_set.metadata.name, key)},
        }
        for name in names
    ]
    return {**specification, "volumes": [*others, *claimed]}


def _body(node_set: NodeSetObject, template: JsonObject, key: WorkerKey) -> JsonDict:
    meta, template_metadata = node_set.metadata, template.get("metadata") or {}
    metadata = {
        "name": claim_name(_name(template), meta.name, key),
        "namespace": meta.namespace,
        "labels": {**(template_metadata.get("labels") or {}), **standard(WORKER_APP, meta.name)},
        "annotations": {
            **(template_metadata.get("annotations") or {}),
            NODE_SET_UID_ANNOTATION: meta.uid,
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": template["spec"],
    }


def _prefix(template: str, node_set: str) -> str:
    return f"{template}-{node_set}-"


def _name(template: JsonObject) -> str:
    return str((template.get("metadata") or {}).get("name") or "")
