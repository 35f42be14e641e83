"""The volumes of workers: a claim for each template and number, named as a StatefulSet names them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from slurmoperator.objects.labels import WORKER_APP, standard
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey, volumes_of
from slurmruntime.values import numbers
from slurmruntime.values.faults import Fault

NODE_SET_UID_ANNOTATION: Final = "slurm-bridge.dev/node-set-uid"
"""On a claim that we made: for which NodeSet."""
UNNEEDED_ANNOTATION: Final = "slurm-bridge.dev/unneeded-since"
"""On a claim that we made: since when there has been no worker of its number, and none was wanted."""
_LONGEST_NAME: Final = 63
"""Of a template: the pod's volume has its name."""


def claim_faults(node_set: NodeSetObject) -> Iterator[Fault]:
    """Find what is wrong with the templates of volumes."""
    seen = set()
    for index, each in enumerate(node_set.spec.volume_claim_templates or ()):
        path = f"spec.volumeClaimTemplates[{index}]"
        name = _name(each)
        if not name or len(name) > _LONGEST_NAME:
            text = (
                f"expected a name of at most {_LONGEST_NAME} characters: volumeMounts refer to it"
            )
            yield Fault(f"{path}.metadata.name", text)
        elif name in seen:
            yield Fault(f"{path}.metadata.name", f"another template is called {name}, too")
        seen.add(name)
        if not isinstance(each.get("spec"), Mapping):
            yield Fault(f"{path}.spec", "expected the specification of a PersistentVolumeClaim")


def claim_name(template: str, node_set: str, key: WorkerKey) -> str:
    """Return the name of a worker's claim."""
    return f"{_prefix(template, node_set)}{volumes_of(key)}"


def claim_number(node_set: NodeSetObject, claim: str) -> int | None:
    """Return of which worker's number a claim is; None if it is none of this NodeSet's with a number."""
    for volume_claim_template in node_set.spec.volume_claim_templates or ():
        text = claim.removeprefix(_prefix(_name(volume_claim_template), node_set.metadata.name))
        number = numbers.whole(text) if text != claim else None
        if number is not None and str(number) == text:
            return number
    return None


def claim_bodies(node_set: NodeSetObject, key: WorkerKey) -> tuple[dict[str, Any], ...]:
    """Return the claims of one worker. They have no owner: what becomes of them is decided when the NodeSet goes."""
    return tuple(
        _body(node_set, volume_claim_template, key)
        for volume_claim_template in node_set.spec.volume_claim_templates or ()
    )


def with_claims(
    node_set: NodeSetObject, key: WorkerKey, specification: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a pod's specification with the worker's claims, instead of other volumes of their names."""
    names = [
        _name(volume_claim_template)
        for volume_claim_template in node_set.spec.volume_claim_templates or ()
    ]
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


def _body(node_set: NodeSetObject, template: Mapping[str, Any], key: WorkerKey) -> dict[str, Any]:
    meta, given = node_set.metadata, template.get("metadata") or {}
    metadata = {
        "name": claim_name(_name(template), meta.name, key),
        "namespace": meta.namespace,
        "labels": {**(given.get("labels") or {}), **standard(WORKER_APP, meta.name)},
        "annotations": {**(given.get("annotations") or {}), NODE_SET_UID_ANNOTATION: meta.uid},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": template["spec"],
    }


def _prefix(template: str, node_set: str) -> str:
    return f"{template}-{node_set}-"


def _name(template: Mapping[str, Any]) -> str:
    return str((template.get("metadata") or {}).get("name") or "")
