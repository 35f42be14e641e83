"""Which jobs belong together, and whether a job is still the same one."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from slurmclient.wire.reading import Model
from slurmclient.wire.values import Number, Time

_ALIVE: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED"})


class State(Struct, frozen=True, gc=False):
    """An entry of `GET /jobs/state/`."""

    job_id: str
    """`7`, `7_3` for a task of an array, `7+1` for a component of a heterogeneous job."""
    state: tuple[str, ...] = ()


class _StepId(Struct, frozen=True):
    sluid: str = ""


class Identity(Model, frozen=True):
    """The fields that distinguish a job from another one with the same id.

    slurmctld reuses ids after it has lost its state.
    """

    job_id: int
    array_job_id: Number = None
    het_job_id: Number = None
    step_id: _StepId = _StepId()
    submit_time: Time = None

    @property
    def base(self) -> str:
        """The id of the array or heterogeneous job that it belongs to, or else its own."""
        return str(int(self.array_job_id or self.het_job_id or self.job_id))

    @property
    def name(self) -> object:
        """The sluid, unique for ever; before v0.0.44 the time of submission."""
        return self.step_id.sluid or self.submit_time


def by_base(listed: Iterable[State]) -> dict[str, tuple[State, ...]]:
    """Group the states of jobs by the array or heterogeneous job that they belong to."""
    found: dict[str, tuple[State, ...]] = {}
    parts: dict[str, list[State]] = {}
    for one in listed:
        if one.job_id.isdecimal():  # most jobs: thousands a look
            found[one.job_id] = (one,)
        else:
            parts.setdefault(_base(one.job_id), []).append(one)
    for base, several in parts.items():
        found[base] = (*found.get(base, ()), *several)
    return found


def is_alive(states: Iterable[State]) -> bool:
    """Check whether one of these jobs had not ended."""
    return any(not _ALIVE.isdisjoint(one.state) for one in states)


def _base(job_id: str) -> str:
    leader, plus, offset = job_id.partition("+")
    if plus and offset.isdecimal() and leader.isdecimal():
        return str(int(leader) - int(offset))  # 6+1 is job 6, a component of 5
    return leader.partition("_")[0]
