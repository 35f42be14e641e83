"""The fields that users may ask of Slurm by annotations under `names.REQUEST_PREFIX`: one table.

`parse` reads annotations by it, and `docs/annotations.md` is generated from it. Only the form is
checked here. `bridge.domain.request.permit` decides what a user may ask for, and
`bridge.domain.request.build` whether it fits the pod.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from types import MappingProxyType
from typing import Any

from bridge.domain import caps
from bridge.domain.request import notation
from bridge.domain.workloads import own_keys
from slurmruntime.model.objects import JsonDict
from slurmruntime.values import names
from slurmruntime.values.faults import Fault, bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """The annotations' values in Slurm's units; None where the user asked for nothing."""

    account: str | None = None
    begin_at: datetime | None = None
    comment: str | None = None
    constraints: str | None = None
    milli_cpu_per_task: int | None = None
    deadline_at: datetime | None = None
    dependency: str | None = None
    exclusive: bool | None = None
    gres: str | None = None
    """As Slurm takes it: `gres/gpu:a100:2,gres/shard:1`."""
    group_id: str | None = None
    hold: bool | None = None
    job_name: str | None = None
    licenses: str | None = None
    max_nodes: int | None = None
    memory_mib_per_node: int | None = None
    min_nodes: int | None = None
    nice: int | None = None
    partition: str | None = None
    priority: int | None = None
    qos: str | None = None
    reservation: str | None = None
    switches: str | None = None
    time_limit_min: int | None = None
    user_id: str | None = None
    wckey: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One annotation, `<names.REQUEST_PREFIX><name>`."""

    name: str
    attribute: str
    """The member of `Overrides` that it sets."""
    parse: Callable[[str], Any]
    """Raises ValueError for anything but the accepted form."""
    accepted: str
    example: str
    meaning: str


_WHEN = "an RFC 3339 time with its time zone"
_TIME = "minutes, or Slurm's [hours:]minutes:seconds or days-hours[:minutes[:seconds]]"
_NAME = "a name without spaces, quotes, commas and operators, at most 1024 bytes"
_LINE = "one line of printable text, at most 1024 bytes"

# fmt: off
FIELDS = (
    Field("account", "account", notation.name, _NAME, "physics",
          "account that is charged; one that the policy allows"),
    Field("begin", "begin_at", notation.moment, _WHEN, "2026-12-24T18:00:00Z",
          "not before this moment"),
    Field("comment", "comment", notation.text, _LINE, "sweep 7, learning rate 0.1",
          "the job's comment"),
    Field("constraints", "constraints", notation.expression, "a feature expression as sbatch's --constraint", "a100&nvlink",
          "node features that are needed in addition to the pod's node selector"),
    Field("cpu-per-task", "milli_cpu_per_task", notation.milli_cpu, "a Kubernetes quantity above 0, rounded up to whole CPUs", "4",
          "CPUs; at least what the containers request"),
    Field("deadline", "deadline_at", notation.moment, _WHEN, "2026-12-31T23:00:00+01:00",
          "Slurm removes the job if it cannot end before this moment"),
    Field("dependency", "dependency", notation.dependency, "a dependency as sbatch's --dependency: after, afterany, afterok, afternotok with job ids, singleton", "afterok:4711",
          "other Slurm jobs to wait for"),
    Field("exclusive", "exclusive", notation.truth, "true or false", "true",
          "true: no other job beside it on the node; default: nodes are shared"),
    Field("gres", "gres", notation.gres, "name[:type][:count], several with commas, each once", "gpu:a100:2",
          "generic resources; replaces what follows from the containers' limits, at least as many"),
    Field("group-id", "group_id", notation.name, _NAME, "physicists",
          "the jobs' group, which the policy decides: anything else is refused"),
    Field("hold", "hold", notation.truth, "true or false", "true",
          "true: wait until the job is released (scontrol release)"),
    Field("job-name", "job_name", notation.text, _LINE, "train-7",
          "the job's name; default: the pod's"),
    Field("licenses", "licenses", notation.expression, "licences as sbatch's --licenses: name[:count], several with commas", "matlab:2",
          "licences that the job holds while it runs"),
    Field("max-nodes", "max_nodes", notation.number, "a whole number from 1", "1",
          "maximum number of nodes; a single pod has 1"),
    Field("mem-per-node", "memory_mib_per_node", notation.memory_mib, "a Kubernetes quantity with its unit, at least 1Mi", "16Gi",
          "memory, rounded up to MiB; at least what the containers request"),
    Field("min-nodes", "min_nodes", notation.number, "a whole number from 1", "1",
          "minimum number of nodes; a single pod has 1"),
    Field("nice", "nice", notation.integer, "a whole number", "100",
          "lowers the priority by this much, a negative value raises it; only where the policy allows it"),
    Field("partition", "partition", notation.name_list, "partition names with commas between them", "gpu",
          "where to run; default: the administrator's, else Slurm's"),
    Field("priority", "priority", notation.number, "a whole number from 1", "5000",
          "the priority itself; only where the policy allows it"),
    Field("qos", "qos", notation.name, _NAME, "high",
          "quality of service; one that the policy allows"),
    Field("reservation", "reservation", notation.name_list, "reservation names with commas between them", "maintenance-test",
          "run in this reservation; one that the policy allows"),
    Field("switches", "switches", notation.switches, "count[@longest wait], as sbatch's --switches", "1@60",
          "maximum number of leaf switches, and how long to wait for that"),
    Field("timelimit", "time_limit_min", notation.minutes, _TIME, "90",
          "time limit, rounded up to minutes; default: activeDeadlineSeconds, else the administrator's"),
    Field("user-id", "user_id", notation.name, _NAME, "alice",
          "the jobs' user, which the policy decides: anything else is refused"),
    Field("wckey", "wckey", notation.name, _NAME, "grant-42",
          "workload characterisation key"),
)
# fmt: on

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "array": "job arrays have no nodes of their own to bind pods to: "
        "use a Job with completionMode Indexed",
        "requeue": "Slurm does not requeue these jobs: use a Job, which makes a new pod",
        "signal": "no slurmd runs there to deliver it, and trying puts the node out of service: "
        "use terminationGracePeriodSeconds and a preStop hook",
    }
)
"""Slurm fields that cannot be honoured, and what to use instead."""

HANDED_ON_BY_PODS = frozenset(
    {"account", "group-id", "partition", "qos", "reservation", "user-id", "wckey"}
)
"""Fields that a pod that owns pods (a Spark driver) sets for them, too: whose they are, and where
they run. Sizes, times and names are its own."""

MOST_FIELDS = caps.MOST_REQUEST_FIELDS
"""An object with more is not examined field by field."""

LONGEST_NAME = 30
_LONGEST_VALUE = 4 * notation.MAX_TEXT_BYTES
"""In characters. No form takes more, so nothing longer is read."""

_HINTS = 3
"""The number of unknown fields for which to look for a similar one; that takes longer than all
else."""

_SHOWN = 80
"""The number of characters of a faulty value to show: annotations may have 256 KiB."""

_BY_NAME = MappingProxyType({field.name: field for field in FIELDS})

_OLD_PREFIX = "slinky.slurm.net/"
"""Where SchedMD's slurm-bridge had these fields before version 1.0."""


def path(name: str) -> str:
    """Return the path of a field in a pod, for faults."""
    return f"metadata.annotations[{names.REQUEST_PREFIX}{name}]"


def effectless(annotations: Mapping[str, str]) -> Iterator[str]:
    """Yield the annotations without effect: of a later release, or in the keys of SchedMD's 0.x."""
    yield from own_keys.without_effect(annotations)
    for key in sorted(annotations):
        name = key.removeprefix(_OLD_PREFIX)
        if name != key and name in _BY_NAME:
            yield f"metadata.annotations[{key}]: has no effect, use {names.REQUEST_PREFIX}{name}"


def parse(annotations: Mapping[str, str]) -> tuple[Overrides, tuple[Fault, ...]]:
    """Read what annotations ask for; report every fault, and still read the rest."""
    return read(requests(annotations))


def read(asked: Mapping[str, str]) -> tuple[Overrides, tuple[Fault, ...]]:
    """Read what is asked for, keyed by the names of the fields as `requests` returns them.

    Check the number of fields and the length of names first: if either is excessive, read none.
    """
    if crowd := _crowd(asked):
        return Overrides(), (crowd,)
    values: JsonDict = {}
    faults: list[Fault] = []
    hints = _HINTS
    for name, value in sorted(asked.items()):
        field = _BY_NAME.get(name)
        if field is None:
            faults.append(Fault(path(name), _unknown(name, is_hinted=hints > 0)))
            hints -= 1
            continue
        try:
            values[field.attribute] = field.parse(_short(value))
        except ValueError:
            faults.append(
                Fault(
                    path(name),
                    f"expected {field.accepted}, such as {field.example}; found {value[:_SHOWN]!r}",
                )
            )
    return Overrides(**values), bounded(faults)


def requests(annotations: Mapping[str, str]) -> dict[str, str]:
    """Pick the annotations that ask something of Slurm, keyed by the names of their fields.

    Pick at most one more than `read` accepts, and cut long values just above their limit.
    """
    prefix = names.REQUEST_PREFIX
    asked = (
        (key.removeprefix(prefix), value[: _LONGEST_VALUE + 1])
        for key, value in annotations.items()
        if key.startswith(prefix)
    )
    return dict(islice(asked, MOST_FIELDS + 1))


def _crowd(asked: Mapping[str, str]) -> Fault | None:
    """Return a fault if the fields are too many or have impossible names."""
    everything = path("…")
    if len(asked) > MOST_FIELDS:
        return Fault(everything, f"expected at most {MOST_FIELDS} fields, found more")
    long = next((name for name in asked if len(name) > LONGEST_NAME), None)
    if long is not None:
        words = f"expected names of at most {LONGEST_NAME} characters, found {long[:_SHOWN]!r}"
        return Fault(everything, words)
    return None


def _short(value: str) -> str:
    if len(value) > _LONGEST_VALUE:
        raise ValueError
    return value


def _unknown(name: str, *, is_hinted: bool) -> str:
    if why := REFUSED.get(name):
        return f"cannot be honoured: {why}"
    if not is_hinted:
        return "no such field"
    near = difflib.get_close_matches(name, _BY_NAME, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(_BY_NAME)}"
    return f"no such field{hint}"
