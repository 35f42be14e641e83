"""Who a job is."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from slurmclient.wire.reading import Model
from slurmclient.wire.values import Number, Time


class State(Struct, frozen=True, gc=False):
    job_id: str
    state: tuple[str, ...] = ()


class _StepId(Struct, frozen=True):
    sluid: str = ""


class Identity(Model, frozen=True):
    """What tells a job from another one that has its id after slurmctld lost its state."""

    job_id: int
    array_job_id: Number = None
    het_job_id: Number = None
    step_id: _StepId = _StepId()
    submit_time: Time = None

    @property
    def base(self) -> str:
        """The id of its array, or of its heterogeneous job, or its own."""
        return str(int(self.array_job_id or self.het_job_id or self.job_id))

    @property
    def name(self) -> object:
        """Unique for ever; before v0.0.44 there is only the time of its submission."""
        return self.step_id.sluid or self.submit_time


ALIVE: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED"})


def words(states: object) -> Iterator[str]:
    match states:
        case str():
            yield states
        case tuple():
            for one in states:
                yield from words(one)
        case _:
            pass


def by_base(listed: Iterable[State]) -> Mapping[str, object]:
    """Put the states of an array's tasks, and of a heterogeneous job's components, together; a job of its own has its states."""
    found: dict[str, object] = {one.job_id: one.state for one in listed}
    several: dict[str, list[tuple[str, object]]] = {}
    for job_id in [one for one in found if not one.isdecimal()]:
        leader, plus, offset = job_id.partition("+")
        if plus and offset.isdecimal() and leader.isdecimal():
            leader = str(int(leader) - int(offset))  # 6+1 is the component of 5, whose id is 6
        several.setdefault(leader.partition("_")[0], []).append((job_id, found.pop(job_id)))
    for base, states in several.items():
        found[base] = ((base, found.get(base)), *states)
    return found
