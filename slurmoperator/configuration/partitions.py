"""Decide which removed partitions stay in slurm.conf because jobs still have them: pure.

When the line of a partition is missing at a reconfigure, Slurm ends all of its jobs, pending ones included (NODE_FAIL,
PartitionDown). So the line stays as `State=DOWN` while a live job has the partition, or while that is not known. A DOWN
partition still accepts new jobs, so it becomes INACTIVE next: only when slurmctld shows it INACTIVE, and then has no job in
it, is the line removed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from slurmoperator.configuration import lines
from slurmoperator.configuration.lines import Setting
from slurmruntime.values import faults

_DEFAULT: Final = "DEFAULT"
"""A line of this name applies to all partitions after it."""
_FOR_NEW_JOBS: Final = frozenset({"partitionname", "nodes", "state", "default", "alternate"})
"""Settings that a partition about to go must not keep: its nodes or its alternate may be gone already. Running jobs need none."""
_CLOSED: Final = "INACTIVE"
_MOST_PARTITIONS: Final = 3
_MOST_JOBS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsOfPartition:
    """The live jobs that have a partition, perhaps among others."""

    running: tuple[str, ...] = ()
    """Their ids, those of suspended and completing ones included."""
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPartitions:
    """What slurmctld has: its partitions, and its jobs as read after them."""

    trouble: str = ""
    """Why it is not known; "" if it is."""
    is_sure: bool = True
    """Whether it was read after the files in force were written: only then may a line go."""
    states: Mapping[str, str] | None = None
    jobs: Mapping[str, JobsOfPartition] | None = None
    live: int = 0
    """The number of running and pending jobs of all partitions."""
    open_nodes: int = 0
    """Nodes on which a job could start; counted only while there are no live jobs."""

    def unsure(self) -> "SlurmPartitions":
        """Return a copy that is no longer sure: files may have been written since it was read."""
        return replace(self, is_sure=False)


NOT_READ: Final = SlurmPartitions(trouble="Slurm has not been asked yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReading:
    """What Slurm had of some partitions when it was read last."""

    names: frozenset[str] = frozenset()
    seen: SlurmPartitions = NOT_READ

    def of(self, names: frozenset[str]) -> SlurmPartitions:
        """Return what Slurm had of these partitions; a reading of others says nothing of them."""
        return self.seen if self.names == names else NOT_READ


@dataclass(frozen=True, slots=True, kw_only=True)
class ObsoletePartition:
    """A partition that is no longer configured but stays in slurm.conf."""

    name: str
    line: str
    why: str


def retain(
    desired: Mapping[str, str], in_force: Sequence[Mapping[str, str]], current: SlurmPartitions
) -> tuple[ObsoletePartition, ...]:
    """Return the partitions whose lines must stay for now, beside the desired files.

    `in_force` are the files that the daemons may have, obsolete partitions included: several sets, as a daemon may have taken one
    without our knowing yet. `current` is what slurmctld had after they were written.
    """
    configured = {setting.value for setting in _names(desired.get("slurm.conf", ""))}
    return tuple(
        partition
        for name, settings in _all_partitions(in_force).items()
        if name not in configured
        and (partition := _retain_one(name, settings, current)) is not None
    )


def find_obsolete(
    desired: Mapping[str, str], in_force: Sequence[Mapping[str, str]]
) -> frozenset[str]:
    """Return the names of the partitions to remove, about which Slurm must be asked."""
    return frozenset(partition.name for partition in retain(desired, in_force, NOT_READ))


def explain(partitions: Sequence[ObsoletePartition]) -> str:
    """Return why partitions stay, and what a user can do about it."""
    more = len(partitions) - _MOST_PARTITIONS
    texts = [partition.why for partition in partitions[:_MOST_PARTITIONS]]
    return "; ".join((*texts, *([f"and {more} more partitions stay"] if more > 0 else [])))


def _retain_one(
    name: str, settings: Sequence[Setting], current: SlurmPartitions
) -> ObsoletePartition | None:
    state = _state(settings)
    jobs = (current.jobs or {}).get(name, JobsOfPartition())
    is_free = not current.trouble and not jobs.running and not jobs.waiting
    slurm_state = (current.states or {}).get(name, _CLOSED)
    if is_free and current.is_sure and state == _CLOSED and slurm_state == _CLOSED:
        return None
    # A closed partition stays closed, or its state would change back and forth with each new job.
    state = _CLOSED if is_free or state == _CLOSED else "DOWN"
    own = (
        f"{setting.key}={lines.quoted(setting.value)}"
        for setting in settings
        if setting.key.lower() not in _FOR_NEW_JOBS
    )
    words = (f"PartitionName={name}", f"State={state}", *own)
    return ObsoletePartition(
        name=name,
        line=" ".join(words),
        why=_why(name, state, jobs, current.trouble, is_free=is_free),
    )


def _why(name: str, state: str, jobs: JobsOfPartition, trouble: str, *, is_free: bool) -> str:
    start = f"partition {name} is being removed and stays as State={state}"
    if trouble:
        text = faults.shortened(trouble, 200)
        return f"{start} because it is not known whether jobs have it: {text}"
    if is_free:
        return f"{start} until slurmctld accepts no more jobs for it"
    counts = [
        f"{len(ids)} {job_state} ({_list(ids)})"
        for job_state, ids in (("running", jobs.running), ("pending", jobs.waiting))
        if ids
    ]
    text = f"{start} until no job has it: {', '.join(counts)}"
    if jobs.waiting:
        text += (
            f"; cancel pending jobs with `scancel --partition={name} --state=PENDING`, or move each with"
            f" `scontrol update jobid={jobs.waiting[0]} partition=OTHER`"
        )
    return text


def _list(ids: Sequence[str]) -> str:
    return ", ".join((*ids[:_MOST_JOBS], *(["…"] if len(ids) > _MOST_JOBS else [])))


def _names(text: str) -> Iterator[Setting]:
    for line in lines.read(text):
        if line.settings and line.settings[0].key.lower() == "partitionname":
            yield line.settings[0]


def _all_partitions(in_force: Sequence[Mapping[str, str]]) -> Mapping[str, Sequence[Setting]]:
    """Return the settings of each partition, from the first files in which it is not closed; not if it is closed in all and missing in the last."""
    first: dict[str, Sequence[Setting]] = {}
    last: Mapping[str, Sequence[Setting]] = {}
    for files in in_force:
        last = _partitions(files.get("slurm.conf", ""))
        for name, settings in last.items():
            if name not in first or _state(first[name]) == _CLOSED:
                first[name] = settings
    return {
        name: settings
        for name, settings in first.items()
        if name in last or _state(settings) != _CLOSED
    }


def _state(settings: Sequence[Setting]) -> str:
    return next(
        (setting.value.upper() for setting in settings if setting.key.lower() == "state"), "UP"
    )


def _partitions(text: str) -> Mapping[str, Sequence[Setting]]:
    """Return all settings of each partition: those of `DEFAULT` lines above it, then its own."""
    partitions: dict[str, Sequence[Setting]] = {}
    common: dict[str, Setting] = {}
    for line in lines.read(text):
        if not line.settings or line.settings[0].key.lower() != "partitionname":
            continue
        own = {setting.key.lower(): setting for setting in line.settings[1:]}
        if line.settings[0].value.upper() == _DEFAULT:
            common |= own
        else:
            partitions[line.settings[0].value] = tuple({**common, **own}.values())
    return partitions
