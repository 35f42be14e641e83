"""Counters of job events. They only grow, until the exporter restarts."""

import copy
from collections import defaultdict, deque
from typing import Final, Self

from slurmexporter.readings.job import Job, elapsed_s
from slurmexporter.readings.states import LOST
from slurmexporter.text.budget import Admission
from slurmexporter.text.family import Histogram

_REMEMBERED: Final = 1000
_MOST_LISTS: Final = 50
"""Lists of partitions with series of their own: a waiting job has its user's, in any order."""
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
BOUNDS_S: Final = (
    1.0,
    10.0,
    30.0,
    _MINUTE,
    5 * _MINUTE,
    15 * _MINUTE,
    _HOUR,
    4 * _HOUR,
    12 * _HOUR,
    24 * _HOUR,
    72 * _HOUR,
    168 * _HOUR,
)
RATIO_BOUNDS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Tally:
    """Counts by partition and account; accounts and lists of partitions beyond the budget are `(other)`."""

    def __init__(self, *, top_accounts: int) -> None:
        self.ended: deque[Job] = deque(maxlen=_REMEMBERED)
        """The last jobs that ended, for `EfficiencyCollector`."""
        self._accounts = Admission(top_accounts)
        self._lists = Admission(_MOST_LISTS)
        self.submits: dict[tuple[str, str], int] = defaultdict(int)
        self.starts: dict[tuple[str, str], int] = defaultdict(int)
        self.requeues: dict[tuple[str, str], int] = defaultdict(int)
        self.ends: dict[tuple[str, str, str], int] = defaultdict(int)
        self.wait_s: dict[str, Histogram] = {}
        self.run_s: dict[tuple[str, str], Histogram] = {}
        self.limit_used: dict[str, Histogram] = {}
        self.cpu_s: dict[tuple[str, str], float] = defaultdict(float)
        self.gpu_s: dict[tuple[str, str], float] = defaultdict(float)
        self.node_s: dict[tuple[str, str], float] = defaultdict(float)

    def copy(self) -> Self:
        """Return the counters as they are now; later events do not change the copy."""
        other = copy.copy(self)
        for name in ("submits", "starts", "requeues", "ends", "cpu_s", "gpu_s", "node_s"):
            setattr(other, name, dict(getattr(self, name)))
        for name in ("wait_s", "run_s", "limit_used"):
            copies = {key: histogram.copy() for key, histogram in getattr(self, name).items()}
            setattr(other, name, copies)
        return other

    def count(self, old: Job | None, new: Job, *, is_new_base: bool) -> None:
        """Count the events between two readings of a job, including a start that was never read.

        Args:
            old: The earlier reading; None if the job, or the task of an array, is read for the first time.
            new: The later reading, of the same identity.
            is_new_base: Whether this job or array was unknown before.
        """
        if is_new_base:
            self.submits[self._where(new)] += new.tasks
        if old is not None and old.restarts < new.restarts:
            self.requeues[self._where(new)] += new.tasks
        has_new_start = new.has_started and (old is None or old.start_s != new.start_s)
        if has_new_start:
            where = self._where(new)
            self.starts[where] += new.tasks
            wait = self.wait_s.setdefault(where[0], Histogram.of(BOUNDS_S))
            wait.observe(max(0.0, new.start_s - new.waits_since_s), new.tasks)
        if new.has_ended and (old is None or not old.has_ended or has_new_start):
            self._end(new, new.state, elapsed_s(new, new.end_s))

    def lose(self, job: Job, ran_s: float) -> None:
        """Count the end of a job that slurmctld no longer knows, and that had run for so long."""
        if not job.has_ended:
            self._end(job, LOST, ran_s)

    def credit(self, job: Job, seconds: float) -> None:
        """Add a job's resources, multiplied by seconds."""
        where = self._where(job)
        self.cpu_s[where] += job.cpus * seconds
        self.gpu_s[where] += job.gpus * seconds
        self.node_s[where] += job.nodes * seconds

    def _end(self, job: Job, state: str, ran_s: float) -> None:
        where = self._where(job)
        self.ends[*where, state] += job.tasks
        if not job.has_started:
            return
        self.ended.append(job)
        run = self.run_s.setdefault((where[0], state), Histogram.of(BOUNDS_S))
        run.observe(ran_s)
        if 0 < job.limit_s < float("inf"):
            used = self.limit_used.setdefault(where[0], Histogram.of(RATIO_BOUNDS))
            used.observe(ran_s / job.limit_s)

    def _where(self, job: Job) -> tuple[str, str]:
        partition = ",".join(job.partitions)
        if len(job.partitions) > 1:
            partition = self._lists.name(partition)
        return partition, self._accounts.name(job.account)
