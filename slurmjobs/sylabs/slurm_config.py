"""Read ConfigMap `slurm-config`, in which Sylabs' resource daemon had what lies behind each node.

All scalars stay text as they are written: `cuda: 10.0` is a label's value, and no number.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Literal

import yaml

from slurmruntime.values.faults import Fault, bounded, shortened

LONGEST: Final = 256 * 1024
"""Characters, which take seconds to read."""
MOST_NODES: Final = 5000
MOST_ENTRIES: Final = 64
"""Labels of one node; and resources."""

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_AMOUNT: Final = re.compile(r"[0-9]{1,18}")
_LOADER: Final = yaml.BaseLoader
"""In Python: libyaml's ends the process at deep nesting."""

Mode = Literal["local", "ssh", ""]

_ADDRESSES: Final[Mapping[str, Mode]] = {
    "slurm_local": "local",
    "red_box_addr": "local",
    "slurm_ssh": "ssh",
    "slurm": "",
}
"""Where Slurm is, by the name that each of their versions had for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEntry:
    """What lies behind one node."""

    address: str = ""
    mode: Mode = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    """What of it is left out, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmConfig:
    """All of it."""

    nodes: Mapping[str, NodeEntry] = field(default_factory=dict)
    fault: str = ""
    """Why there is nothing, or not all."""


def read(text: str) -> SlurmConfig:
    """Read the value of the ConfigMap's key `config`; never raises."""
    if len(text) > LONGEST:
        return SlurmConfig(fault=f"expected at most {LONGEST} characters, found {len(text)}")
    try:
        found = yaml.load(text, Loader=_LOADER)  # noqa: S506  # makes texts, lists and maps only
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return SlurmConfig(fault=f"it is not YAML: {shortened(str(error), 512)}")
    if found in (None, ""):
        return SlurmConfig()
    if not isinstance(found, dict):
        return SlurmConfig(fault="expected a map of nodes")
    more = len(found) - MOST_NODES
    return SlurmConfig(
        nodes={
            name: _entry(entry)
            for name, entry in islice(found.items(), MOST_NODES)
            if isinstance(name, str)
        },
        fault=f"expected at most {MOST_NODES} nodes: the last {more} are left out"
        if more > 0
        else "",
    )


def _entry(found: Any) -> NodeEntry:
    if not isinstance(found, dict):
        return NodeEntry(faults=(Fault("", "expected a map: slurm_local, labels, resources"),))
    faults: list[Fault] = []
    address, mode = _address(found, faults)
    labels = dict(_entries(found, "labels", faults))
    resources = dict(_entries(found, "resources", faults))
    return NodeEntry(
        address=address,
        mode=mode,
        labels={name: text for name, text in labels.items() if _is_value(name, text, faults)},
        resources={
            name: int(text) for name, text in resources.items() if _is_amount(name, text, faults)
        },
        faults=bounded(faults),
    )


def _address(found: Mapping[Any, Any], faults: list[Fault]) -> tuple[str, Mode]:
    given = [name for name in _ADDRESSES if name in found]
    if len(given) != 1:
        named = " and ".join(given) or "neither"
        faults.append(Fault("slurm_local", f"expected slurm_local or slurm_ssh, found {named}"))
        return "", ""
    (name,) = given
    address = found[name]
    if not isinstance(address, str) or not address:
        faults.append(Fault(name, "expected the address of Slurm"))
        return "", ""
    return address, _ADDRESSES[name]


def _entries(found: Mapping[Any, Any], what: str, faults: list[Fault]) -> Iterator[tuple[str, Any]]:
    given = found.get(what, "")
    if given == "":
        return
    if not isinstance(given, dict):
        faults.append(Fault(what, "expected a map"))
        return
    if len(given) > MOST_ENTRIES:
        faults.append(Fault(what, f"expected at most {MOST_ENTRIES}, found {len(given)}"))
    for name, value in islice(given.items(), MOST_ENTRIES):
        if isinstance(name, str) and _NAME.fullmatch(name):
            yield name, value
        else:
            where = f"{what}[{shortened(str(name), 64)}]"
            faults.append(Fault(where, "expected up to 63 letters, digits, '-', '_' and '.'"))


def _is_value(name: str, value: Any, faults: list[Fault]) -> bool:
    if isinstance(value, str) and (value == "" or _NAME.fullmatch(value)):
        return True
    faults.append(
        Fault(f"labels[{name}]", "expected up to 63 letters, digits, '-', '_' and '.' as its value")
    )
    return False


def _is_amount(name: str, value: Any, faults: list[Fault]) -> bool:
    if isinstance(value, str) and _AMOUNT.fullmatch(value):
        return True
    faults.append(Fault(f"resources[{name}]", "expected a whole number of at most 18 digits"))
    return False
