"""Partitions that leave slurm.conf while jobs have them: pure.

A partition whose line is gone at a reconfigure ends all of its jobs, those that wait, too (NODE_FAIL, PartitionDown). So its line
stays as `State=DOWN` while a live job has it, or nobody knows. A partition that is DOWN still takes new jobs, so it is INACTIVE
before it goes: only when slurmctld shows it so, and then has no job in it, the line goes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from slurmoperator.configuration import lines
from slurmoperator.configuration.lines import Setting
from slurmruntime.values import faults

_DEFAULT: Final = "DEFAULT"
"""The name of lines that hold for all partitions after them."""
_OF_NEW_JOBS: Final = frozenset({"partitionname", "nodes", "state", "default", "alternate"})
"""What the line of a partition that goes must not say: its nodes, or its alternative, may have gone before it. What runs needs neither."""
_CLOSED: Final = "INACTIVE"
_MOST_PARTITIONS: Final = 3
"""Of which it is said why they stay."""
MOST_JOBS: Final = 5
"""Of one partition that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsOfPartition:
    """The live jobs that have a partition, perhaps beside others."""

    running: int = 0
    """Also those that are suspended, or not quite over."""
    waiting: int = 0
    first_running: tuple[str, ...] = ()
    """Ids, at most `MOST_JOBS`."""
    first_waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPartitions:
    """What slurmctld has: its partitions, and then its jobs."""

    trouble: str = ""
    """Why it is not known; "" if it is."""
    is_sure: bool = True
    """It was read after all that is in force was written: only then may a line go."""
    states: Mapping[str, str] | None = None
    jobs: Mapping[str, JobsOfPartition] | None = None
    live: int = 0
    """Jobs that run or wait, of all partitions."""
    open_nodes: int = 0
    """On which a job could begin; counted only while there are no live jobs."""

    def unsure(self) -> "SeenPartitions":
        """Return the same as it is when somebody may have written something since."""
        return replace(self, is_sure=False)


NOT_READ: Final = SeenPartitions(trouble="Slurm was not asked yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPartition:
    """A partition that nobody wants any more, and that stays."""

    name: str
    line: str
    why: str


def kept(
    wanted: Mapping[str, str], in_force: Sequence[Mapping[str, str]], seen: SeenPartitions
) -> tuple[KeptPartition, ...]:
    """Return the partitions whose lines must stay for now.

    Args:
        wanted: The files as they are to be.
        in_force: The files that the daemons may have, with what was kept before: they may have taken a set of which nobody
            has heard yet.
        seen: What slurmctld was seen to have after `in_force` was written.
    """
    stay = {each.value for each in _names(wanted.get("slurm.conf", ""))}
    return tuple(
        found
        for name, settings in _of_all(in_force).items()
        if name not in stay and (found := _kept(name, settings, seen)) is not None
    )


def leaving(wanted: Mapping[str, str], in_force: Sequence[Mapping[str, str]]) -> frozenset[str]:
    """Return the partitions that are to go, so that Slurm must be asked."""
    return frozenset(each.name for each in kept(wanted, in_force, NOT_READ))


def said(partitions: Sequence[KeptPartition]) -> str:
    """Return why partitions stay, and what a person may do."""
    more = len(partitions) - _MOST_PARTITIONS
    texts = [partition.why for partition in partitions[:_MOST_PARTITIONS]]
    return "; ".join((*texts, *([f"and {more} more partitions stay"] if more > 0 else [])))


def _kept(name: str, settings: Sequence[Setting], seen: SeenPartitions) -> KeptPartition | None:
    state = _state(settings)
    jobs = (seen.jobs or {}).get(name, JobsOfPartition())
    is_free = not seen.trouble and not jobs.running and not jobs.waiting
    shown = (seen.states or {}).get(name, _CLOSED)
    if is_free and seen.is_sure and state == _CLOSED and shown == _CLOSED:
        return None
    # What is closed stays so, or it would go back and forth with each new job.
    state = _CLOSED if is_free or state == _CLOSED else "DOWN"
    own = (setting for setting in settings if setting.key.lower() not in _OF_NEW_JOBS)
    words = (f"PartitionName={name}", f"State={state}", *map(_word, own))
    return KeptPartition(
        name=name, line=" ".join(words), why=_why(name, state, jobs, seen.trouble, is_free=is_free)
    )


def _word(setting: Setting) -> str:
    value = setting.value
    return f'{setting.key}="{value}"' if any(map(str.isspace, value)) else f"{setting.key}={value}"


def _why(name: str, state: str, jobs: JobsOfPartition, trouble: str, *, is_free: bool) -> str:
    start = f"partition {name} is to go, and stays as State={state}"
    if trouble:
        text = faults.shortened(trouble, 200)
        return f"{start}, as it is not known whether jobs have it: {text}"
    if is_free:
        return f"{start} until slurmctld takes no more jobs for it"
    found = [
        f"{number} {verb} ({_listed(ids, number)})"
        for number, verb, ids in (
            (jobs.running, "run", jobs.first_running),
            (jobs.waiting, "wait", jobs.first_waiting),
        )
        if number
    ]
    text = f"{start} until no job has it: {', '.join(found)}"
    if jobs.waiting:
        text += (
            f"; end those that wait by `scancel --partition={name} --state=PENDING`, or move each by"
            f" `scontrol update jobid={jobs.first_waiting[0]} partition=OTHER`"
        )
    return text


def _listed(ids: Sequence[str], number: int) -> str:
    return ", ".join((*ids, *(["…"] if number > len(ids) else [])))


def _names(text: str) -> Iterator[Setting]:
    for line in lines.read(text):
        if line.settings and line.settings[0].key.lower() == "partitionname":
            yield line.settings[0]


def _of_all(in_force: Sequence[Mapping[str, str]]) -> Mapping[str, Sequence[Setting]]:
    """Return the settings of each partition, by the first files in which it is not closed.

    One that is closed in all and has no line in the last files is left out: that its line goes was decided already.
    """
    found: dict[str, Sequence[Setting]] = {}
    last: Mapping[str, Sequence[Setting]] = {}
    for files in in_force:
        last = _partitions(files.get("slurm.conf", ""))
        for name, settings in last.items():
            if name not in found or _state(found[name]) == _CLOSED:
                found[name] = settings
    return {
        name: settings
        for name, settings in found.items()
        if name in last or _state(settings) != _CLOSED
    }


def _state(settings: Sequence[Setting]) -> str:
    return next(
        (setting.value.upper() for setting in settings if setting.key.lower() == "state"), "UP"
    )


def _partitions(text: str) -> Mapping[str, Sequence[Setting]]:
    """Return all settings of each partition: its own, before them those of `DEFAULT` lines above it."""
    found: dict[str, Sequence[Setting]] = {}
    common: dict[str, Setting] = {}
    for line in lines.read(text):
        if not line.settings or line.settings[0].key.lower() != "partitionname":
            continue
        own = {setting.key.lower(): setting for setting in line.settings[1:]}
        if line.settings[0].value.upper() == _DEFAULT:
            common |= own
        else:
            found[line.settings[0].value] = tuple({**common, **own}.values())
    return found
