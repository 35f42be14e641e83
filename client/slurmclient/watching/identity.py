"""Which jobs belong together, and whether a job is still the same one."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from slurmclient.watching.states import State
from slurmclient.wire.reading import Model
from slurmclient.wire.values import Number, Time

_ALIVE: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED"})


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
        """The sluid, which is never reused; before v0.0.44 the time of submission."""
        return self.step_id.sluid or self.submit_time


def is_alive(states: Iterable[State]) -> bool:
    """Check whether one of these jobs had not ended."""
    return any(not _ALIVE.isdisjoint(state.state) for state in states)
