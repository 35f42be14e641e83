"""The doctor's questions about slurm-operator and the Slurms in pods."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slurmoperator.diagnosis import parts
from slurmoperator.diagnosis.parts import NamespaceObjects
from slurmoperator.objects.names import listed
from slurmruntime.crd.schema import Schema
from slurmruntime.model.objects import JsonObject
from slurmruntime.values.findings import Check, Result, fault, not_checked, ok, warning

_MOST_FIELDS: Final = 3
_NONE: Final = "there is no Slurm in pods"
_INSTALL: Final = "helm upgrade --install slurm-operator deploy/operator/chart (docs/operator.md)"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFacts:
    """The facts that the checks need; None for what may not be read."""

    release: str
    """The namespace of our own programs."""
    definitions: Mapping[str, Sequence[str]] | None
    """The differences of each installed definition from ours, by name; empty if none is installed."""
    lease_age_s: float | None = None
    """Seconds by which slurm-operator's leader is late to renew its lease; None without a leader."""
    is_lease_read: bool = True
    rival: str | None = ""
    """The other operator that serves the kinds; "" if there is none."""
    objects: NamespaceObjects | None = None
    label: str | None = ""
    """The label by which administrators allow a Slurm in a namespace; "" if no policy requires one."""
    labelled: Sequence[str] | None = None
    """The namespaces with the label; None if they may not be listed, or if there is no label."""


def differences(installed: JsonObject, ours: JsonObject) -> Iterator[str]:
    """Yield the differences of an installed definition from that of this version, as text."""
    (our_version,) = ours["spec"]["versions"]
    name = our_version["name"]
    version = next((item for item in installed["spec"]["versions"] if item["name"] == name), None)
    if version is None or not version.get("served"):
        yield f"it does not serve {name}"
        return
    schema = version.get("schema", {}).get("openAPIV3Schema", {})
    our_schema = our_version["schema"]["openAPIV3Schema"]
    if schema == our_schema:
        return
    actual, expected = set(_fields(schema)), set(_fields(our_schema))
    if missing := sorted(expected - actual):
        yield f"it lacks {listed(missing, _MOST_FIELDS)}"
    if unknown := sorted(actual - expected):
        yield f"it has {listed(unknown, _MOST_FIELDS)}, which this version does not know"
    if not missing and not unknown:
        yield "its fields have other bounds, rules or descriptions"


def _fields(schema: Schema, at: str = "") -> Iterator[str]:
    for name, field in (schema.get("properties") or {}).items():
        path = f"{at}.{name}".removeprefix(".")
        yield path
        yield from _fields(field, path)
    if isinstance(items := schema.get("items"), dict):
        yield from _fields(items, f"{at}[]")


def _leader(facts: OperatorFacts) -> Result:
    logs = f"kubectl -n {facts.release} get pods; kubectl -n {facts.release} logs deploy/slurm-bridge-operator"
    if not facts.is_lease_read:
        return not_checked(f"the lease in namespace {facts.release} may not be read")
    if facts.lease_age_s is None:
        return fault(
            f"no slurm-operator runs in namespace {facts.release}: daemons and jobs continue, but unmanaged",
            f"{_INSTALL}, or give its namespace with --release-namespace",
        )
    if facts.lease_age_s > 0:
        return fault(f"slurm-operator's leader has been silent for {facts.lease_age_s:.0f} s", logs)
    return ok("slurm-operator has a leader")


def _rival(facts: OperatorFacts) -> Result:
    if facts.rival is None:
        return not_checked("webhook configurations or leases may not be read")
    if facts.rival:
        return fault(
            f"slurm-operator is idle while another operator serves these kinds: {facts.rival}",
            "let only one operator serve these kinds: docs/operator.md",
        )
    return ok("no other operator serves these kinds")


def _definitions(facts: OperatorFacts) -> Result:
    differing = {name: texts for name, texts in (facts.definitions or {}).items() if texts}
    if not differing:
        return ok("the definitions match this version")
    message = "; ".join(f"{name}: {', '.join(texts)}" for name, texts in differing.items())
    step = f"use the same version of slurm-operator and kubectl slurm: {_INSTALL}"
    if any(text.startswith("it does not serve") for texts in differing.values() for text in texts):
        return fault(message, step)
    return warning(f"definitions do not match this version of kubectl slurm: {message}", step)


def _namespaces(facts: OperatorFacts) -> Result:
    if facts.label == "":
        return ok("no policy restricts the namespaces of Slurms in pods")
    if facts.objects is None or facts.labelled is None:
        return not_checked("namespaces or the objects of Slurms in pods may not be listed")
    used = {part.metadata.namespace for part in facts.objects.parts}
    used |= {node_set.metadata.namespace for node_set in facts.objects.node_sets}
    used |= {cluster.metadata.namespace for cluster in facts.objects.clusters}
    if unlabelled := sorted(used - {*facts.labelled}):
        return warning(
            f"Slurms in pods run where no administrator has allowed them: {', '.join(unlabelled)}",
            f"if this is intended: kubectl label namespace {unlabelled[0]} {facts.label}=true",
        )
    return ok("Slurms in pods run only where an administrator allows them" if used else _NONE)


def _readable(facts: OperatorFacts) -> Result:
    if facts.objects is None:
        return not_checked("the objects of Slurms in pods may not be listed")
    controllers = parts.controllers(facts.objects)
    problems = [
        f"{meta.namespace}/{meta.name}: {why}"
        for meta in controllers
        if (why := _problem(facts.objects, meta.namespace, meta.name))
    ]
    if problems:
        return fault(
            f"slurm-operator cannot query a Slurm, so it drains and deletes none of its workers: {'; '.join(problems)}",
            "kubectl slurm why restapi/NAME, and kubectl slurm cluster NAME",
        )
    return ok(
        f"every Slurm in pods with workers can be queried: {len(controllers)}"
        if controllers
        else _NONE
    )


def _problem(objects: NamespaceObjects, namespace: str, name: str) -> str:
    """Return why a Slurm with workers cannot be queried, from the conditions of its NodeSets; "" if it can."""
    own = parts.select(objects, namespace, name)
    unknown = [
        condition
        for node_set in own.node_sets
        for condition in node_set.status.conditions
        if condition.type == "SlurmKnown" and condition.status == "Unknown"
    ]
    if own.node_sets and not any(part.kind == "RestApi" for part in own.parts):
        return "it has no RestApi"
    return unknown[0].message or unknown[0].reason if unknown else ""


def _if_installed(ask: Callable[[OperatorFacts], Result]) -> Callable[[OperatorFacts], Result]:
    """Skip a question if the kinds are not installed, or may not be read."""

    def check(facts: OperatorFacts) -> Result:
        if facts.definitions is None:
            return not_checked("the definitions of the kinds may not be read")
        return ask(facts) if facts.definitions else ok("slurm-operator is not installed")

    return check


CHECKS: Mapping[str, Check[OperatorFacts]] = {
    "slurm-operator": _if_installed(_leader),
    "other operators": _if_installed(_rival),
    "definitions of Slurm in pods": _if_installed(_definitions),
    "namespaces of Slurm in pods": _if_installed(_namespaces),
    "Slurms in pods": _if_installed(_readable),
}
