"""Computes the desired objects of the control plane, and whether a new configuration may come into force: pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from slurmoperator.configuration import changes, partitions, refusals, rendering, slurmdbd_conf
from slurmoperator.configuration.changes import ConfigurationChange
from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.configuration.parameters import COSTS_ONLY_JOBS, ChangeTakes
from slurmoperator.configuration.partitions import NOT_READ, ObsoletePartition, SlurmPartitions
from slurmoperator.configuration.refusals import UserLine
from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.daemons.trials import FilesInForce, TrialOutcome, TrialVerdict
from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.values import faults
from slurmruntime.values.faults import Fault, Refusal, require_none

_MOST_NAMED: Final = 3
"""How many NodeSets a message names at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReading:
    """What Slurm had of some partitions when it was read last."""

    names: frozenset[str] = frozenset()
    seen: SlurmPartitions = NOT_READ

    def of(self, names: frozenset[str]) -> SlurmPartitions:
        """Return what Slurm had of these partitions; a reading of others says nothing of them."""
        return self.seen if self.names == names else NOT_READ


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


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon that judges its files."""

    name: str
    file: str
    """The file that contains lines of users."""


SLURMCTLD: Final = Daemon("slurmctld", "slurm.conf")
SLURMDBD: Final = Daemon("slurmdbd", slurmdbd_conf.FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesVerdict:
    """A daemon's verdict on the desired files, and the files that it serves with; see `planning.PartPlan`."""

    served: FilesInForce
    """The files that the daemon has until it has taken others."""
    refused: str
    not_tried: str
    digest: str
    pending_tag: str


def judge(
    desired: ConfigurationSet,
    verdict: TrialVerdict,
    in_force: FilesInForce | None,
    daemon: Daemon,
    user_lines: Iterable[UserLine],
) -> FilesVerdict:
    """Explain a daemon's verdict on files, and decide which files it has until it takes them.

    Args:
        in_force: the files that it has; None if there are none yet.
        user_lines: the lines of the files that users wrote.
    """
    # The files in force are tried again at each start, perhaps by another version of the daemon.
    # Until that has judged them, they count as taken.
    if verdict.outcome is TrialOutcome.NOT_TRIED and in_force and in_force.is_proven_to_be(desired):
        verdict = TrialVerdict(outcome=TrialOutcome.TAKEN)
    is_taken = verdict.outcome is TrialOutcome.TAKEN
    before = in_force if in_force is not None and in_force.is_proven else None
    served = before if before and not is_taken else FilesInForce(desired, is_proven=is_taken)
    refused = ""
    if verdict.outcome is TrialOutcome.REFUSED:
        refused = refusals.explain(
            verdict.message,
            daemon.name,
            user_lines,
            wanted=desired.files.get(daemon.file, ""),
            in_force=before.files.files.get(daemon.file, "") if before else "",
        )
    is_in_force = served.is_proven and not (refused and served.files.digest == desired.digest)
    return FilesVerdict(
        served=served,
        refused=refused,
        not_tried=verdict.message if verdict.outcome is TrialOutcome.NOT_TRIED else "",
        digest=served.files.digest if is_in_force else "",
        pending_tag=desired.tag if verdict.is_pending else "",
    )


def plan_configuration(
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
        undecided = _harmful_changes(current[-1], desired)
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
    before = ConfigurationSet(files=files, generated=frozenset(files))
    # Settings that only a slurmctld of ours needs come and go with it when it moves here or away.
    moves = changes.runs_here(before) != changes.runs_here(after)
    return tuple(
        change
        for change in changes.compare(before, after)
        if change.takes is ChangeTakes.REFUSED and (change.is_in_both or not moves)
    )


def _reasons(
    inputs: ConfigurationInputs,
    harmful: Iterable[ConfigurationChange],
    seen: SlurmPartitions,
    undecided: Iterable[ConfigurationChange],
) -> Iterator[Fault]:
    """Yield why harmful changes may not come into force now.

    Args:
        undecided: The changes that were not allowed before: for these, `seen` must be sure.
    """
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
        return f"the state of Slurm is unknown: {faults.shortened(seen.trouble, 200)}"
    if seen.live:
        return f"Slurm has {seen.live} running or pending jobs"
    if seen.open_nodes:
        return f"{seen.open_nodes} nodes can take jobs: drain them, or stop their slurmd"
    return ""
