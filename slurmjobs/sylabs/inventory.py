"""Decide what is written on nodes of what `slurm-config` says: labels, and capacities of extended resources.

Nothing is written on a node whose entry names another Slurm, and nothing ever onto its disk. What we have written is
noted in an annotation before it is written, and only that is taken away again. Each decision is one step, made from the
node as it is: whatever is cut off is done at the next look.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from slurmjobs.sylabs.slurm_config import NodeEntry
from slurmruntime.values import quantities
from slurmruntime.values.faults import Fault, told

PREFIX: Final = "slurm.sylabs.io/"


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryNode:
    """A node, as far as it matters here."""

    name: str
    uid: str
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Those with `PREFIX`."""
    capacity: Mapping[str, str] = field(default_factory=dict)
    """Of resources with `PREFIX`."""
    written: str = ""
    """`names.INVENTORY_ANNOTATION`; "" without."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """What stands on a node, or is to stand there."""

    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Label:
    """Set these labels, or remove them (None), and the annotation with them."""

    labels: Mapping[str, str | None]
    written: str | None


@dataclass(frozen=True, slots=True)
class Measure:
    """Set these capacities, or remove them (None)."""

    capacity: Mapping[str, str | None]


def wanted(entry: NodeEntry | None, ours: frozenset[str]) -> Inventory:
    """Return what is to stand on a node; nothing without an entry, or with one for another Slurm."""
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
    """Return what is wrong with an entry, for an Event; "" if nothing."""
    faults = [Fault(f"slurm-config {fault.path}".strip(), fault.message) for fault in entry.faults]
    if entry.address and _host(entry.address) not in ours:
        faults.append(
            Fault(
                "slurm-config",
                f"this node's Slurm is {entry.address}, and slurm-bridge hands jobs to {', '.join(sorted(ours)) or 'none'}: nothing "
                "is written on the node; if it is the same Slurm, add its host to sylabs.addresses",
            )
        )
    return told(faults)


def step(node: InventoryNode, want: Inventory) -> Label | Measure | None:
    """Return the next write, or None if all is as it should be."""
    labels, resources = _written(node.written)
    noted = resources | want.resources.keys()
    labelling = {
        **{name: None for name in labels - want.labels.keys() if name in node.labels},
        **{name: text for name, text in want.labels.items() if node.labels.get(name) != text},
    }
    if labelling or labels != want.labels.keys() or resources != noted:
        return Label(labelling, _note(want.labels, noted))
    measuring = {
        **{name: None for name in resources - want.resources.keys() if name in node.capacity},
        **{
            name: str(amount)
            for name, amount in want.resources.items()
            if not _is(node.capacity.get(name), amount)
        },
    }
    if measuring:
        return Measure(measuring)
    if resources != want.resources.keys():
        return Label({}, _note(want.labels, want.resources))
    return None


def _note(labels: Iterable[str], resources: Iterable[str]) -> str | None:
    found = {"labels": sorted(labels), "resources": sorted(resources)}
    return json.dumps(found, separators=(",", ":")) if any(found.values()) else None


def _written(note: str) -> tuple[frozenset[str], frozenset[str]]:
    """Read the annotation; of one that somebody else has written, only what could be ours."""
    try:
        found = json.loads(note or "{}")
    except (ValueError, RecursionError):
        return frozenset(), frozenset()
    named = found if isinstance(found, dict) else {}
    labels, resources = (_ours(named.get(each)) for each in ("labels", "resources"))
    return labels, resources


def _ours(names: object) -> frozenset[str]:
    listed = names if isinstance(names, list) else []
    return frozenset(each for each in listed if isinstance(each, str) and each.startswith(PREFIX))


def _is(text: str | None, amount: int) -> bool:
    try:
        return text is not None and quantities.parse(text) == amount
    except (ValueError, ArithmeticError):
        return False


def hosts(addresses: Iterable[str]) -> frozenset[str]:
    """Return the hosts of addresses, as they are compared."""
    return frozenset(filter(None, map(_host, addresses)))


def _host(address: str) -> str:
    """Return the host of `host`, `host:port`, `[::1]:22`, `user@host` or a URL, in lower case."""
    rest = address.strip().partition("://")[2] or address.strip()
    rest = rest.partition("/")[0].rpartition("@")[2]
    if rest.startswith("["):
        return rest[1:].partition("]")[0].lower()
    host = rest if rest.count(":") > 1 else rest.partition(":")[0]
    return host.rstrip(".").lower()
