"""Read ConfigMap `slurm-config`, in which Sylabs' resource daemon described the Slurm behind each node.

All scalars stay text as they are written: `cuda: 10.0` is a label's value, not a number.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Final, Literal, TypeGuard

import yaml

from slurmruntime.values.faults import Fault, bounded, shortened

LONGEST: Final = 256 * 1024
"""Characters; so many take seconds to parse."""
MOST_NODES: Final = 5000
DEEPEST: Final = 16
"""Brackets within brackets; the parser's work grows with the square of them."""
MOST_ENTRIES: Final = 64
"""Labels of one node, and also resources of one node."""

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_BRACKET: Final = re.compile(r"[\[\]{}]")
_AMOUNT: Final = re.compile(r"[0-9]{1,18}")
_LOADER: Final = yaml.BaseLoader
"""The loader in Python: libyaml's crashes the process on deep nesting."""

Mode = Literal["local", "ssh", ""]

_ADDRESSES: Final[Mapping[str, Mode]] = {
    "slurm_local": "local",
    "red_box_addr": "local",
    "slurm_ssh": "ssh",
    "slurm": "",
}
"""The keys for Slurm's address in their different versions, with the mode that each implies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEntry:
    """The entry of one node."""

    address: str = ""
    mode: Mode = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    """Which of its parts were left out, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmConfig:
    """The entries of all nodes."""

    nodes: Mapping[str, NodeEntry] = field(default_factory=dict)
    fault: str = ""
    """Why nothing, or not everything, could be read."""


def read(text: str) -> SlurmConfig:
    """Parse the value of the ConfigMap's key `config`; never raises."""
    if len(text) > LONGEST:
        return SlurmConfig(fault=f"expected at most {LONGEST} characters, found {len(text)}")
    if _deepest(text) > DEEPEST:
        return SlurmConfig(fault=f"expected at most {DEEPEST} brackets within brackets, found more")
    try:
        parsed = yaml.load(text, Loader=_LOADER)  # noqa: S506  # makes texts, lists and maps only
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return SlurmConfig(fault=f"it is not YAML: {shortened(str(error), 512)}")
    if parsed in (None, ""):
        return SlurmConfig()
    if not isinstance(parsed, dict):
        return SlurmConfig(fault="expected a map of nodes")
    more = len(parsed) - MOST_NODES
    return SlurmConfig(
        nodes=_nodes(islice(parsed.items(), MOST_NODES)),
        fault=f"expected at most {MOST_NODES} nodes: the last {more} are left out"
        if more > 0
        else "",
    )


def _nodes(entries: Iterable[tuple[object, object]]) -> Mapping[str, NodeEntry]:
    """Read the entry of each node; one that several name by an alias is read once."""
    read: dict[int, NodeEntry] = {}
    nodes: dict[str, NodeEntry] = {}
    for name, entry in entries:
        if isinstance(name, str):
            if id(entry) not in read:
                read[id(entry)] = _entry(entry)
            nodes[name] = read[id(entry)]
    return nodes


def _deepest(text: str) -> int:
    """Return how many brackets are open at once, those in texts included."""
    steps = (1 if bracket[0] in "[{" else -1 for bracket in _BRACKET.finditer(text))
    return max(accumulate(steps), default=0)


def _entry(entry: object) -> NodeEntry:
    if not isinstance(entry, dict):
        return NodeEntry(faults=(Fault("", "expected a map: slurm_local, labels, resources"),))
    faults: list[Fault] = []
    address, mode = _address(entry, faults)
    labels = dict(_entries(entry, "labels", faults))
    resources = dict(_entries(entry, "resources", faults))
    return NodeEntry(
        address=address,
        mode=mode,
        labels={name: text for name, text in labels.items() if _is_value(text, name, faults)},
        resources={
            name: int(text) for name, text in resources.items() if _is_amount(text, name, faults)
        },
        faults=bounded(faults),
    )


def _address(entry: Mapping[object, object], faults: list[Fault]) -> tuple[str, Mode]:
    keys = [name for name in _ADDRESSES if name in entry]
    if len(keys) != 1:
        listed = " and ".join(keys) or "neither"
        faults.append(Fault("slurm_local", f"expected slurm_local or slurm_ssh, found {listed}"))
        return "", ""
    (name,) = keys
    address = entry[name]
    if not isinstance(address, str) or not address:
        faults.append(Fault(name, "expected the address of Slurm"))
        return "", ""
    return address, _ADDRESSES[name]


def _entries(
    entry: Mapping[object, object], key: str, faults: list[Fault]
) -> Iterator[tuple[str, object]]:
    section = entry.get(key, "")
    if section == "":
        return
    if not isinstance(section, dict):
        faults.append(Fault(key, "expected a map"))
        return
    if len(section) > MOST_ENTRIES:
        faults.append(Fault(key, f"expected at most {MOST_ENTRIES}, found {len(section)}"))
    for name, value in islice(section.items(), MOST_ENTRIES):
        if isinstance(name, str) and _NAME.fullmatch(name):
            yield name, value
        else:
            path = f"{key}[{shortened(str(name), 64)}]"
            faults.append(Fault(path, "expected up to 63 letters, digits, '-', '_' and '.'"))


def _is_value(value: object, name: str, faults: list[Fault]) -> TypeGuard[str]:
    if isinstance(value, str) and (value == "" or _NAME.fullmatch(value)):
        return True
    faults.append(
        Fault(f"labels[{name}]", "expected up to 63 letters, digits, '-', '_' and '.' as its value")
    )
    return False


def _is_amount(value: object, name: str, faults: list[Fault]) -> TypeGuard[str]:
    if isinstance(value, str) and _AMOUNT.fullmatch(value):
        return True
    faults.append(Fault(f"resources[{name}]", "expected a whole number of at most 18 digits"))
    return False
