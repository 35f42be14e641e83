"""What a change from one set of files to another takes, item by item."""

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
"""Where a file as a whole takes more than a reconfigure: slurmdbd has none, and a slurmd holds its control groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationChange:
    """One item that differs."""

    file: str
    item: str
    """The parameter, or "" for a file that we do not read."""
    takes: ChangeTakes
    reason: str
    is_in_both: bool = True
    """It has another value; else only one of the files says anything of it."""


def compare(before: ConfigurationSet, after: ConfigurationSet) -> tuple[ConfigurationChange, ...]:
    """Return what differs, the gravest first."""
    found = [
        change
        for file in sorted({*before.files, *after.files})
        if before.files.get(file) != after.files.get(file)
        for change in _in_file(file, before.files.get(file, ""), after.files.get(file, ""))
    ]
    return tuple(sorted(found, key=lambda each: (-each.takes, each.file, each.item)))


def takes(changes: tuple[ConfigurationChange, ...]) -> ChangeTakes:
    """Return what all of them together take."""
    return max((change.takes for change in changes), default=ChangeTakes.NOTHING)


def runs_here(files: ConfigurationSet) -> bool:
    """Check whether a slurmctld of ours is to have these files; one that runs elsewhere has its own."""
    found = lines.read(files.files.get("slurm.conf", ""))
    return any(
        setting.key.lower() == "statesavelocation" for line in found for setting in line.settings
    )


def restart_digest(files: Mapping[str, str]) -> str:
    """Return a digest of all that slurmctld reads only at its start; what a reconfigure puts in force does not change it."""
    found = [
        (file, item, value)
        for file, known in sorted(FILES.items())
        if file in files
        for item, value in sorted(_items(files[file], known).items())
        if _of(file, known.get(item.partition("=")[0]), item).takes >= ChangeTakes.RESTART_SLURMCTLD
    ]
    return hashlib.sha256(msgspec.json.encode(found)).hexdigest()


def _in_file(file: str, before: str, after: str) -> Iterator[ConfigurationChange]:
    known = FILES.get(file)
    if known is None:
        text = "slurmctld sends scripts and other files to the workers when it is reconfigured"
        yield ConfigurationChange(file=file, item="", takes=ChangeTakes.RECONFIGURE, reason=text)
        return
    old, new = _items(before, known), _items(after, known)
    for key in sorted({*old, *new}):
        plain = PLAIN.get(key)
        if old.get(key, plain) != new.get(key, plain):
            change = _of(file, known.get(key.partition("=")[0]), key)
            yield replace(change, is_in_both=key in old and key in new)


def _of(file: str, parameter: Parameter | None, key: str) -> ConfigurationChange:
    name = parameter.name if parameter else key
    takes_ = _FILES.get(file) or (parameter.takes if parameter else ChangeTakes.RECONFIGURE)
    reason = {
        ChangeTakes.RECONFIGURE: "scontrol reconfigure puts it in force; running jobs go on",
        ChangeTakes.RESTART_SLURMDBD: "slurmdbd reads it only at its start; slurmctld keeps what it has to record",
        ChangeTakes.RESTART_SLURMCTLD: "slurmctld reads it only at its start; running jobs go on",
        ChangeTakes.RESTART_ALL: "all daemons must be restarted: slurmctld first, then each slurmd",
        ChangeTakes.REFUSED: REFUSED_LIVE.get(name, ""),
    }[takes_]
    item = name + key.removeprefix(key.partition("=")[0])
    return ConfigurationChange(file=file, item=item, takes=takes_, reason=reason)


def _items(text: str, known: Mapping[str, Parameter]) -> Mapping[str, tuple[str, ...]]:
    """Return what a file says: each parameter, and each line of those that may be repeated by its name."""
    found: dict[str, tuple[str, ...]] = {}
    for line in lines.read(text):
        if not line.settings:
            continue
        first = line.settings[0]
        parameter = known.get(first.key.lower())
        if parameter is not None and parameter.kind is ParameterKind.REPEATED and parameter.own:
            key = f"{first.key.lower()}={first.value}"
            found[key] = tuple(f"{each.key}={each.value}" for each in line.settings)
            continue
        for setting in line.settings:
            found[setting.key.lower()] = (*found.get(setting.key.lower(), ()), setting.value)
    return found
