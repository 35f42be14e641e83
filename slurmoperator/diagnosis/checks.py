"""The doctor's questions about slurm-operator and the Slurms in pods."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bridge.domain.diagnosis.doctor.findings import Check, Said, fault, not_checked, ok, warning
from slurmoperator.diagnosis import parts
from slurmoperator.diagnosis.parts import NamespaceObjects
from slurmruntime.crd.schema import Schema

_MOST_NAMED: Final = 3
_NONE: Final = "there is no Slurm in pods"
_INSTALL: Final = "helm upgrade --install slurm-operator deploy/operator/chart (docs/operator.md)"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSeen:
    """What was found; None for what may not be read."""

    release: str
    """The namespace of our own programs."""
    definitions: Mapping[str, Sequence[str]] | None
    """How each definition that is installed differs from ours, by name; empty if none is installed."""
    lease_age_s: float | None = None
    """For how long slurm-operator's leader has been silent, beyond what it may be; None if nobody leads."""
    is_lease_read: bool = True
    rival: str | None = ""
    """Which other operator serves the kinds; "" if none does."""
    objects: NamespaceObjects | None = None
    label: str | None = ""
    """By which an administrator says in which namespaces there may be one; "" if no policy asks for it."""
    labelled: Sequence[str] | None = None
    """The namespaces that have it."""


def differing(installed: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    """Yield how a definition that is installed differs from ours, in words.

    Args:
        installed: the CustomResourceDefinition that the API server has.
        ours: the one of this version.
    """
    (wanted,) = ours["spec"]["versions"]
    version = wanted["name"]
    found = [each for each in installed["spec"]["versions"] if each["name"] == version]
    if not found or not found[0].get("served"):
        yield f"it does not serve {version}"
        return
    schema, own = (
        found[0].get("schema", {}).get("openAPIV3Schema", {}),
        wanted["schema"]["openAPIV3Schema"],
    )
    if schema == own:
        return
    there, expected = set(_fields(schema)), set(_fields(own))
    if missing := sorted(expected - there):
        yield f"it lacks {_some(missing)}"
    if unknown := sorted(there - expected):
        yield f"it has {_some(unknown)}, which this version does not know"
    if not missing and not unknown:
        yield "its fields have other bounds, rules or descriptions"


def _fields(schema: Schema, at: str = "") -> Iterator[str]:
    for name, of in (schema.get("properties") or {}).items():
        path = f"{at}.{name}".removeprefix(".")
        yield path
        yield from _fields(of, path)
    if isinstance(items := schema.get("items"), dict):
        yield from _fields(items, f"{at}[]")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _leader(seen: OperatorSeen) -> Said:
    if (unasked := _not_there(seen)) is not None:
        return unasked
    logs = f"kubectl -n {seen.release} get pods; kubectl -n {seen.release} logs deploy/slurm-bridge-operator"
    if not seen.is_lease_read:
        return not_checked(f"the lease in namespace {seen.release} may not be read")
    if seen.lease_age_s is None:
        return fault(
            f"no slurm-operator runs in namespace {seen.release}: daemons and jobs go on, and nobody sees to them",
            f"{_INSTALL}, or name its namespace: --release-namespace",
        )
    if seen.lease_age_s > 0:
        return fault(f"slurm-operator's leader has been silent for {seen.lease_age_s:.0f} s", logs)
    return ok("slurm-operator has a leader")


def _rival(seen: OperatorSeen) -> Said:
    if (unasked := _not_there(seen)) is not None:
        return unasked
    if seen.rival is None:
        return not_checked("webhook configurations or leases may not be read")
    if seen.rival:
        return fault(
            f"slurm-operator does nothing while another one serves these kinds: {seen.rival}",
            "let one of them serve these kinds: docs/operator.md",
        )
    return ok("no other operator serves these kinds")


def _definitions(seen: OperatorSeen) -> Said:
    if (unasked := _not_there(seen)) is not None:
        return unasked
    bad = {name: said for name, said in (seen.definitions or {}).items() if said}
    if not bad:
        return ok("the definitions are those of this version")
    words = "; ".join(f"{name}: {', '.join(said)}" for name, said in bad.items())
    step = f"let slurm-operator and kubectl slurm be of one version: {_INSTALL}"
    if any(each.startswith("it does not serve") for said in bad.values() for each in said):
        return fault(words, step)
    return warning(f"definitions are not those of this version of kubectl slurm: {words}", step)


def _namespaces(seen: OperatorSeen) -> Said:
    if (unasked := _not_there(seen)) is not None:
        return unasked
    if seen.label == "":
        return ok("no policy says where there may be a Slurm in pods")
    if seen.objects is None or seen.labelled is None:
        return not_checked("namespaces or the objects of Slurms in pods may not be listed")
    there = {part.metadata.namespace for part in seen.objects.parts}
    there |= {each.metadata.namespace for each in seen.objects.node_sets}
    there |= {cluster.metadata.namespace for cluster in seen.objects.clusters}
    if without := sorted(there - {*seen.labelled}):
        return warning(
            f"there is a Slurm in pods where no administrator has allowed one: {', '.join(without)}",
            f"if it is meant: kubectl label namespace {without[0]} {seen.label}=true",
        )
    return ok("Slurms in pods are only where an administrator allows them" if there else _NONE)


def _readable(seen: OperatorSeen) -> Said:
    if (unasked := _not_there(seen)) is not None:
        return unasked
    if seen.objects is None:
        return not_checked("the objects of Slurms in pods may not be listed")
    found = parts.controllers(seen.objects)
    troubles = [
        f"{meta.namespace}/{meta.name}: {why}"
        for meta in found
        if (why := _trouble(seen.objects, meta.namespace, meta.name))
    ]
    if troubles:
        return fault(
            f"slurm-operator cannot ask a Slurm, so none of its workers is drained or deleted: {'; '.join(troubles)}",
            "kubectl slurm why restapi/NAME, and kubectl slurm cluster NAME",
        )
    return ok(f"every Slurm in pods with workers can be asked: {len(found)}" if found else _NONE)


def _trouble(objects: NamespaceObjects, namespace: str, name: str) -> str:
    """Return why a Slurm with workers cannot be asked, by what these were told."""
    own = parts.belonging(objects, namespace, name)
    told = [
        condition
        for node_set in own.node_sets
        for condition in node_set.status.conditions
        if condition.type == "SlurmKnown" and condition.status == "Unknown"
    ]
    if own.node_sets and not any(part.kind == "RestApi" for part in own.parts):
        return "it has no RestApi"
    return told[0].message or told[0].reason if told else ""


def _not_there(seen: OperatorSeen) -> Said | None:
    """Return what every check says where the kinds are not installed, or nobody may look."""
    if seen.definitions is None:
        return not_checked("the definitions of the kinds may not be read")
    return None if seen.definitions else ok("slurm-operator is not installed")


CHECKS: Sequence[Check[OperatorSeen]] = (
    Check("slurm-operator", _leader),
    Check("other operators", _rival),
    Check("definitions of Slurm in pods", _definitions),
    Check("namespaces of Slurm in pods", _namespaces),
    Check("Slurms in pods", _readable),
)
