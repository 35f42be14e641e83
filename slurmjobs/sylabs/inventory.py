"""Decide what to write on nodes from `slurm-config`: labels, and capacities of extended resources.

Nothing is written on a node whose entry names another Slurm, and nothing ever on its disk. An annotation lists what we
write before we write it, and only that is ever removed. Each decision is one step from the node's present state, so an
interrupted update is completed by the next pass.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from slurmjobs.sylabs.slurm_config import NodeEntry
from slurmruntime.values import quantities
from slurmruntime.values.faults import Fault, one_line

PREFIX: Final = "slurm.sylabs.io/"


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryNode:
    """The parts of a node that matter here."""

    name: str
    uid: str
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels with `PREFIX`."""
    capacity: Mapping[str, str] = field(default_factory=dict)
    """Capacities of resources with `PREFIX`."""
    written: str = ""
    """The value of `names.INVENTORY_ANNOTATION`; "" if it is missing."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The labels and resources of a node."""

    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Label:
    """Set these labels, or remove them (None), together with the annotation."""

    labels: Mapping[str, str | None]
    written: str | None


@dataclass(frozen=True, slots=True)
class Measure:
    """Set these capacities, or remove them (None)."""

    capacity: Mapping[str, str | None]


def desired(entry: NodeEntry | None, ours: frozenset[str]) -> Inventory:
    """Return a node's desired inventory; empty without an entry, or with one for another Slurm."""
    if entry is None or _host(entry.address) not in ours:
        return Inventory()
    always = {"workload-manager": "slurm"}
    if entry.mode:
        always["integration-type"] = entry.mode
    labels = {**entry.labels, **always}
    return Inventory(
        {PREFIX + name: value for name, value in labels.items()},
        {PREFIX + name: amount for name, amount in entry.resources.items()},
    )


def complaint(entry: NodeEntry, ours: frozenset[str]) -> str:
    """Return the faults of an entry, for an Event; "" if there are none."""
    faults = [Fault(f"slurm-config {fault.path}".strip(), fault.message) for fault in entry.faults]
    if entry.address and _host(entry.address) not in ours:
        faults.append(
            Fault(
                "slurm-config",
                f"this node's Slurm is {entry.address}, but slurm-bridge uses {', '.join(sorted(ours)) or 'none'}: the node is left "
                "alone; if it is the same Slurm, add its host to sylabs.addresses",
            )
        )
    return one_line(faults)


def step(node: InventoryNode, desired: Inventory) -> Label | Measure | None:
    """Return the next write, or None if the node is up to date."""
    labels, resources = _parse_note(node.written)
    noted = resources | desired.resources.keys()
    labelling = {
        **{name: None for name in labels - desired.labels.keys() if name in node.labels},
        **{name: text for name, text in desired.labels.items() if node.labels.get(name) != text},
    }
    if labelling or labels != desired.labels.keys() or resources != noted:
        return Label(labelling, _note(desired.labels, noted))
    measuring = {
        **{name: None for name in resources - desired.resources.keys() if name in node.capacity},
        **{
            name: str(amount)
            for name, amount in desired.resources.items()
            if not _is(node.capacity.get(name), amount)
        },
    }
    if measuring:
        return Measure(measuring)
    if resources != desired.resources.keys():
        return Label({}, _note(desired.labels, desired.resources))
    return None


def _note(labels: Iterable[str], resources: Iterable[str]) -> str | None:
    names = {"labels": sorted(labels), "resources": sorted(resources)}
    return json.dumps(names, separators=(",", ":")) if any(names.values()) else None


def _parse_note(note: str) -> tuple[frozenset[str], frozenset[str]]:
    """Parse the annotation, ignoring anything that we cannot have written."""
    try:
        parsed = json.loads(note or "{}")
    except (ValueError, RecursionError):
        return frozenset(), frozenset()
    noted = parsed if isinstance(parsed, dict) else {}
    labels, resources = (_ours(noted.get(key)) for key in ("labels", "resources"))
    return labels, resources


def _ours(value: object) -> frozenset[str]:
    listed = value if isinstance(value, list) else []
    return frozenset(name for name in listed if isinstance(name, str) and name.startswith(PREFIX))


def _is(text: str | None, amount: int) -> bool:
    try:
        return text is not None and quantities.parse(text) == amount
    except (ValueError, ArithmeticError):
        return False


def hosts(addresses: Iterable[str]) -> frozenset[str]:
    """Return the hosts of addresses, normalised for comparison."""
    return frozenset(filter(None, map(_host, addresses)))


def _host(address: str) -> str:
    """Return the host of `host`, `host:port`, `[::1]:22`, `user@host` or a URL, in lower case."""
    rest = address.strip().partition("://")[2] or address.strip()
    rest = rest.partition("/")[0].rpartition("@")[2]
    if rest.startswith("["):
        return rest[1:].partition("]")[0].lower()
    host = rest if rest.count(":") > 1 else rest.partition(":")[0]
    return host.rstrip(".").lower()
