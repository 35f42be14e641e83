"""Which jobs belong together, and whether a job is still the same one."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from slurmclient.wire.reading import Model
from slurmclient.wire.values import Number, Time

_ALIVE: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED"})


class _StepId(Struct, frozen=True):
    sluid: str = ""


class Identity(Model, frozen=True):
    """Distinguishes a job from another one with the same id: a slurmctld that has lost its state reuses ids."""

    job_id: int
    het_job_id: Number = None
    step_id: _StepId = _StepId()
    submit_time: Time = None

    @property
    def record(self) -> int:
        """The id under which Slurm lists its state: its own, or that of its heterogeneous job."""
        return int(self.het_job_id or self.job_id)

    @property
    def name(self) -> object:
        """The sluid, which is never reused; before v0.0.44 the time of submission."""
        return self.step_id.sluid or self.submit_time


def is_alive(states: Iterable[str]) -> bool:
    """Check whether a job with these states had not ended: `RUNNING`, or `3:RUNNING` of a task or component."""
    return any(state.rpartition(":")[2] in _ALIVE for state in states)
