"""Compare two sets of files, say item by item what it takes for the change to be in force, and decide whether it may be."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from slurmoperator.configuration import lines, partitions, rendering
from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.configuration.parameters import (
    COSTS_ONLY_JOBS,
    FILES,
    PLAIN,
    REFUSED_LIVE,
    ChangeTakes,
    Parameter,
    ParameterKind,
)
from slurmoperator.configuration.partitions import (
    NOT_READ,
    ObsoletePartition,
    PartitionReading,
    SlurmPartitions,
)
from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.values.faults import Fault, Refusal, require_none, shortened

_FILES = {"slurmdbd.conf": ChangeTakes.RESTART_SLURMDBD, "cgroup.conf": ChangeTakes.RESTART_ALL}
"""Files whose every change takes more than a reconfigure: slurmdbd has none, and slurmd keeps its control groups."""


_MOST_NAMED: Final = 3


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationPlan:
    """The configuration that may come into force."""

    files: ConfigurationSet | None = None
    """None if the one in force stays."""
    refused: str = ""
    """Why it stays; "" if it does not."""
    kept_partitions: str = ""
    """Which partitions stay although the spec no longer has them, and why; "" for none."""
    follow: frozenset[str] | None = None
    """The partitions of which Slurm is to be asked again; None if it need not be asked."""


def plan_change(
    inputs: ConfigurationInputs,
    in_force: Mapping[str, str] | None,
    reading: PartitionReading,
    last_desired: Mapping[str, str] | None = None,
) -> ConfigurationPlan:
    """Return the configuration that may come into force, or why the one in force stays; `in_force` is None if there is none yet.

    The files that were desired last matter, because the daemons may have taken them already.
    """
    follow: frozenset[str] | None = None
    try:
        desired = rendering.render(inputs)
        if in_force is None:
            return ConfigurationPlan(files=desired)
        current = [in_force] if last_desired is None else [in_force, last_desired]
        obsolete = partitions.find_obsolete(desired.files, current)
        harmful = _harmful_changes(in_force, desired)
        seen = NOT_READ
        # Slurm is asked only if partitions are to be removed, or if it matters whether there are jobs.
        if not inputs.controller.spec.external and (
            obsolete or any(change.item in COSTS_ONLY_JOBS for change in harmful)
        ):
            follow, seen = obsolete, reading.of(obsolete)
        undecided = harmful if last_desired is None else _harmful_changes(last_desired, desired)
        require_none(_reasons(inputs, harmful, seen, undecided))
        retained: tuple[ObsoletePartition, ...] = ()
        if obsolete and not inputs.controller.spec.external:
            retained = partitions.retain(desired.files, current, seen)
            lines = tuple(partition.line for partition in retained)
            desired = rendering.render(replace(inputs, obsolete_partitions=lines))
    except Refusal as refusal:
        return ConfigurationPlan(refused=refusal.text, follow=follow)
    return ConfigurationPlan(
        files=desired, kept_partitions=partitions.explain(retained), follow=follow
    )


def _harmful_changes(
    files: Mapping[str, str], after: ConfigurationSet
) -> tuple[ConfigurationChange, ...]:
    """Return the changes that would cost jobs, or the cluster."""
    before = ConfigurationSet(files=files)
    # Settings that only a slurmctld of ours needs come and go with it when it moves here or away.
    moves = runs_here(before) != runs_here(after)
    return tuple(
        change
        for change in compare(before, after)
        if change.takes is ChangeTakes.REFUSED and (change.is_in_both or not moves)
    )


def _reasons(
    inputs: ConfigurationInputs,
    harmful: Iterable[ConfigurationChange],
    seen: SlurmPartitions,
    undecided: Iterable[ConfigurationChange],
) -> Iterator[Fault]:
    """Yield why harmful changes may not come into force now; for those that were not allowed before (`undecided`), `seen` must be sure."""
    undecided_items = {change.item for change in undecided}
    for change in harmful:
        text = f"this cannot change while the cluster lives: {change.reason}"
        if change.item in COSTS_ONLY_JOBS and not inputs.controller.spec.external:
            obstacle = _obstacle(inputs.node_sets, seen)
            if not obstacle and not seen.is_sure and change.item in undecided_items:
                obstacle = "Slurm has to be asked once more"
            if not obstacle:
                continue
            text += f"; it can while no NodeSet wants workers and Slurm has neither jobs nor nodes for them, but {obstacle}"
        yield Fault(f"{change.file} {change.item}", text)


def _obstacle(node_sets: Sequence[NodeSetObject], seen: SlurmPartitions) -> str:
    """Return why there may be jobs now or soon; "" if there are none, and no nodes to run one on."""
    names = [
        node_set.metadata.name
        for node_set in node_sets
        if node_set.spec.replicas or node_set.spec.scaling_mode == "DaemonSet"
    ]
    if names:
        more = ", …" if len(names) > _MOST_NAMED else ""
        return f"these NodeSets want workers: {', '.join(names[:_MOST_NAMED])}{more}"
    if seen.trouble:
        return f"the state of Slurm is unknown: {shortened(seen.trouble, 200)}"
    if seen.live:
        return f"Slurm has {seen.live} running or pending jobs"
    if seen.open_nodes:
        return f"{seen.open_nodes} nodes can take jobs: drain them, or stop their slurmd"
    return ""


def compare(before: ConfigurationSet, after: ConfigurationSet) -> tuple[ConfigurationChange, ...]:
    """Return the changes, the most expensive first."""
    changes = [
        change
        for file in sorted({*before.files, *after.files})
        if before.files.get(file) != after.files.get(file)
        for change in _changes_in(file, before.files.get(file, ""), after.files.get(file, ""))
    ]
    return tuple(sorted(changes, key=lambda change: (-change.takes, change.file, change.item)))


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
            parameter = known.get(key.partition("=")[0])
            yield _change(file, parameter, key, is_in_both=key in old and key in new)


def _change(
    file: str, parameter: Parameter | None, key: str, *, is_in_both: bool = True
) -> ConfigurationChange:
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
    return ConfigurationChange(
        file=file, item=item, takes=needed, reason=reason, is_in_both=is_in_both
    )


def _items(text: str, known: Mapping[str, Parameter]) -> Mapping[str, tuple[str, ...]]:
    """Return the values in a file by parameter; lines of a repeatable parameter by parameter and name."""
    items: dict[str, tuple[str, ...]] = {}
    plain: dict[str, list[str]] = {}
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
            plain.setdefault(setting.key.lower(), []).append(setting.value)
    return items | {key: tuple(values) for key, values in plain.items()}
