"""What Slurm granted a placeholder: enough to request the very same again if Slurm ever loses it.

It is written on each pod when the pod gets its node (`names.GRANT_ANNOTATION`), because nothing
else keeps it: slurmctld's state is what was lost, `admin_comment` reaches slurmdbd only when a job
ends, and an owner may ask for something else by then. The pods that an identity names are left out
of the text: the reader finds the members by what they carry.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import lru_cache

from bridge.domain.model import identities
from bridge.domain.model.identities import Identity, UnreadableIdentityError
from bridge.domain.model.placeholder import Terms
from slurmruntime.values.ids import SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant(Terms):
    """A running placeholder's size, owner and time limit. "" means Slurm's default or nothing."""

    nodes: int = 1
    tasks: int = 1
    cpus_per_task: int = 1
    """On a single node as many as Slurm gave, which is all of them if the job has the node for
    itself."""
    memory_mib_per_node: int = 0
    """Either this or the next field is set: this one for a single task, the next one for a gang."""
    memory_mib_per_cpu: int = 0
    gres_per_node: str = ""
    gres_per_task: str = ""
    layout: str = ""
    """For a gang: the number of tasks on each node, in the order of its slots: `n1*4,n2`."""
    also: tuple["Grant", ...] = ()
    """For a heterogeneous job: its further components, each with a layout, like the first."""
    started_s: int
    """Unix time."""
    time_limit_min: int | None = None
    """None is unlimited."""

    @property
    def tasks_on(self) -> Mapping[SlurmNode, int]:
        """The number of tasks on each node, from `layout`."""
        parts = (part.rpartition("*") for part in self.layout.split(",") if part)
        return {SlurmNode(node or count): int(count) if node else 1 for node, _, count in parts}

    @property
    def started_at(self) -> datetime:
        """When Slurm started the job."""
        return datetime.fromtimestamp(self.started_s, UTC)


def layout(slots: Iterable[SlurmNode]) -> str:
    """Write the node of each slot; slots of one node are adjacent."""
    counts = Counter(slots)
    return ",".join(node if count == 1 else f"{node}*{count}" for node, count in counts.items())


def encode(identity: Identity, grant: Grant) -> str:
    """Write both as a pod annotation: compact ASCII JSON.

    It takes about 500 bytes, however many pods the workload has, and 200 more for each further
    size.
    """
    whose = json.loads(identities.encode(replace(identity, pods=())))
    return json.dumps({"identity": whose, "grant": _document(grant)}, separators=(",", ":"))


def decode(text: str) -> tuple[Identity, Grant] | None:
    """Read a pod's annotation; None: there is none, or this version cannot read it."""
    if not text:
        return None
    return _read_once(text) if len(text) <= _CACHED_CHARS else _read(text)


def _read(text: str) -> tuple[Identity, Grant] | None:
    try:
        document = json.loads(text)
        identity = identities.decode(json.dumps(document["identity"]))
        grant = _grant(document["grant"])
    except (ValueError, TypeError, KeyError, RecursionError, UnreadableIdentityError):
        return None
    return None if identity is None else (identity, grant)


_CACHED_CHARS = 4096
"""Longer texts are parsed each time: a few of them would fill the memory."""

_read_once = lru_cache(maxsize=1024)(_read)
"""A pass asks for a pod's grant several times, and a gang's pods carry the same text."""


def _document(grant: Grant) -> Mapping[str, object]:
    values = {field.name: getattr(grant, field.name) for field in fields(Grant)}
    values["also"] = tuple(map(_document, grant.also))
    return {key: value for key, value in values.items() if value != _DEFAULTS[key]}


def _grant(document: object) -> Grant:
    """Read what `encode` wrote; ignore fields that a later version added.

    Raises:
        TypeError: something is missing or has the wrong type.
        ValueError: the layout is not valid.
    """
    if not isinstance(document, dict):
        raise TypeError(f"no grant: {document!r}")
    known = {field.name for field in fields(Grant)}
    values = {key: value for key, value in document.items() if key in known}
    also = values.pop("also", [])
    if not isinstance(also, list):
        raise TypeError(f"also is {also!r}")
    for key, value in values.items():
        if type(value) is not (int if key in _NUMBERS else str):
            raise TypeError(f"{key} is {value!r}")
    grant = Grant(**values, also=tuple(map(_grant, also)))
    if not (grant.memory_mib_per_node or grant.memory_mib_per_cpu):
        raise TypeError("no memory")
    if not all(count > 0 for count in grant.tasks_on.values()):
        raise ValueError(f"layout is {grant.layout!r}")
    if grant.also and not all(component.layout for component in (grant, *grant.also)):
        raise ValueError("a component has no layout")
    return grant


_DEFAULTS = {field.name: field.default for field in fields(Grant)}
_NUMBERS = frozenset(field.name for field in fields(Grant) if field.type in (int, int | None))
