"""Compare two sets of files and say, item by item, what it takes for the change to be in force."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from slurmoperator.configuration import lines
from slurmoperator.configuration.parameters import (
    FILES,
    PLAIN,
    REFUSED_LIVE,
    ChangeTakes,
    Parameter,
    ParameterKind,
)
from slurmoperator.configuration.rendering import ConfigurationSet

_FILES = {"slurmdbd.conf": ChangeTakes.RESTART_SLURMDBD, "cgroup.conf": ChangeTakes.RESTART_ALL}
"""Files whose every change takes more than a reconfigure: slurmdbd has none, and slurmd keeps its control groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationChange:
    """One item that differs."""

    file: str
    item: str
    """The parameter, or "" for a file that we do not read."""
    takes: ChangeTakes
    reason: str
    is_in_both: bool = True
    """Both files have it, with different values; otherwise only one of them has it."""


def compare(before: ConfigurationSet, after: ConfigurationSet) -> tuple[ConfigurationChange, ...]:
    """Return the changes, the most expensive first."""
    changes = [
        change
        for file in sorted({*before.files, *after.files})
        if before.files.get(file) != after.files.get(file)
        for change in _changes_in(file, before.files.get(file, ""), after.files.get(file, ""))
    ]
    return tuple(sorted(changes, key=lambda change: (-change.takes, change.file, change.item)))


def takes(changes: tuple[ConfigurationChange, ...]) -> ChangeTakes:
    """Return what all the changes together take."""
    return max((change.takes for change in changes), default=ChangeTakes.NOTHING)


def runs_here(files: ConfigurationSet) -> bool:
    """Check whether these files are for a slurmctld of ours; an external one has its own."""
    slurm_conf = lines.settings(files.files.get("slurm.conf", ""))
    return any(setting.key.lower() == "statesavelocation" for setting in slurm_conf)


def restart_digest(files: Mapping[str, str]) -> str:
    """Return a digest of what slurmctld reads only at its start; nothing that a reconfigure applies changes it."""
    items = [
        (file, item, value)
        for file, known in sorted(FILES.items())
        if file in files
        for item, value in sorted(_items(files[file], known).items())
        if _change(file, known.get(item.partition("=")[0]), item).takes
        >= ChangeTakes.RESTART_SLURMCTLD
    ]
    return hashlib.sha256(msgspec.json.encode(items)).hexdigest()


def _changes_in(file: str, before: str, after: str) -> Iterator[ConfigurationChange]:
    known = FILES.get(file)
    if known is None:
        reason = "slurmctld sends scripts and other files to the workers when it is reconfigured"
        yield ConfigurationChange(file=file, item="", takes=ChangeTakes.RECONFIGURE, reason=reason)
        return
    old, new = _items(before, known), _items(after, known)
    for key in sorted({*old, *new}):
        plain = PLAIN.get(key)
        if old.get(key, plain) != new.get(key, plain):
            change = _change(file, known.get(key.partition("=")[0]), key)
            yield replace(change, is_in_both=key in old and key in new)


def _change(file: str, parameter: Parameter | None, key: str) -> ConfigurationChange:
    name = parameter.name if parameter else key
    needed = _FILES.get(file) or (parameter.takes if parameter else ChangeTakes.RECONFIGURE)
    reason = {
        ChangeTakes.RECONFIGURE: "scontrol reconfigure applies it; running jobs continue",
        ChangeTakes.RESTART_SLURMDBD: "slurmdbd reads it only at its start; slurmctld buffers its records meanwhile",
        ChangeTakes.RESTART_SLURMCTLD: "slurmctld reads it only at its start; running jobs continue",
        ChangeTakes.RESTART_ALL: "all daemons must be restarted: slurmctld first, then each slurmd",
        ChangeTakes.REFUSED: REFUSED_LIVE.get(name, ""),
    }[needed]
    item = name + key.removeprefix(key.partition("=")[0])
    return ConfigurationChange(file=file, item=item, takes=needed, reason=reason)


def _items(text: str, known: Mapping[str, Parameter]) -> Mapping[str, tuple[str, ...]]:
    """Return the values in a file by parameter; lines of a repeatable parameter by parameter and name."""
    items: dict[str, tuple[str, ...]] = {}
    for line in lines.read(text):
        if not line.settings:
            continue
        first = line.settings[0]
        parameter = known.get(first.key.lower())
        if parameter is not None and parameter.kind is ParameterKind.REPEATED and parameter.own:
            key = f"{first.key.lower()}={first.value}"
            items[key] = tuple(f"{setting.key}={setting.value}" for setting in line.settings)
            continue
        for setting in line.settings:
            items[setting.key.lower()] = (*items.get(setting.key.lower(), ()), setting.value)
    return items
