"""What slurmctld says of itself, and whether it is another one than before.

`diag` says since when slurmctld counts. That changes with each start, but also at midnight UTC and whenever
an administrator resets the counters; then the boot time in `conf` (Slurm 26.05) shows that it is still the
same one. After a crash, slurmctld may assign ids again that were assigned before.
"""

from collections.abc import Mapping
from typing import Protocol, TypeVar

from msgspec import Raw, Struct, field

from slurmclient.api.operation import Value
from slurmclient.errors import SlurmError
from slurmclient.wire.reading import Answer
from slurmclient.wire.values import NOT_SET, OptionalNumber

A = TypeVar("A", bound=Answer)


class Calls(Protocol):
    """Reads from slurmrestd."""

    async def call(
        self,
        label: str,
        operation: str,
        *,
        answer: type[A],
        query: Mapping[str, Value] | None = None,
    ) -> A:
        """Read an answer, or raise SlurmError; the label, `job.states`, is for metrics and messages."""


class Statistics(Struct, frozen=True):
    """What slurmctld counts, and when it answered (`GET /diag/`)."""

    req_time: OptionalNumber = NOT_SET
    """Time of the response, by slurmctld's clock."""
    req_time_start: OptionalNumber = NOT_SET
    """When slurmctld started or last reset its counters (daily, at midnight UTC)."""
    schedule_cycle_last: int = 0
    """How long the last run of the main scheduler took, in microseconds."""
    jobs_submitted: int = 0
    """Counted since `req_time_start`, as are the four below."""
    jobs_started: int = 0
    jobs_completed: int = 0
    jobs_canceled: int = 0
    jobs_failed: int = 0
    jobs_pending: int = 0
    jobs_running: int = 0
    dbd_agent_queue_size: int = 0
    """Number of updates slurmctld has not sent to slurmdbd yet."""


class Diagnosis(Answer, frozen=True):
    """GET /diag/."""

    statistics: Statistics = Statistics()


class Numbers(Struct, frozen=True):
    """The fields of slurm.conf that services read."""

    last_job_id: int = field(name="MaxJobId", default=0)
    slurm_user: str = field(name="SlurmUser", default="")
    slurm_user_id: int = field(name="SlurmUserId", default=0)
    controllers: tuple[Raw, ...] = ()
    """The hosts of slurmctld: the first, and its backups."""


class NumbersMeta(Struct, frozen=True):
    """Additional values of `scontrol show config`."""

    next_job_id: OptionalNumber = field(name="NEXT_JOB_ID", default=NOT_SET)
    booted_at: int = field(name="BOOT_TIME", default=0)
    """Unix time; 0 if it is not given."""


class Configuration(Answer, frozen=True):
    """GET /conf, since v0.0.45."""

    slurm_conf: Numbers = Numbers()
    slurm_conf_meta: NumbersMeta = NumbersMeta()


class Incarnation:
    """The slurmctld that answered last."""

    def __init__(self) -> None:
        self._counts_since = 0
        self._booted_at: int | None = None

    async def may_be_another(self, calls: Calls, counts_since: int) -> bool:
        """Check whether what was read since the last check may come from another slurmctld.

        `counts_since` is as `diag` has just reported it; 0 in the first second after a start.
        """
        if counts_since and counts_since == self._counts_since:
            return False
        booted_at = await _booted_at(calls) if counts_since else None
        is_same = booted_at is not None and booted_at == self._booted_at
        self._counts_since, self._booted_at = counts_since, booted_at
        return not is_same


async def _booted_at(calls: Calls) -> int | None:
    """Return when the only slurmctld booted; None if that is not known, and then it may be another one.

    With a backup it says nothing: a host that takes over for the second time has booted before the first time.
    """
    try:
        answer = await calls.call("conf", "slurm_get_conf", answer=Configuration)
    except SlurmError:
        return None
    is_only = len(answer.slurm_conf.controllers) == 1
    return answer.slurm_conf_meta.booted_at or None if is_only else None
