"""Counters of job events. They only grow, until the exporter restarts."""

import copy
from collections import defaultdict, deque
from typing import Final, Self

from slurmexporter.jobtable.happenings import End, JobEvent, Requeue, Start, Submission
from slurmexporter.readings.job import Job
from slurmexporter.text.budget import Admission
from slurmexporter.text.family import Histogram

_REMEMBERED: Final = 1000
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
WAIT_BOUNDS_S: Final = (
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
RUN_BOUNDS_S: Final = WAIT_BOUNDS_S
RATIO_BOUNDS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Tally:
    """Counts by partition and account; accounts beyond the budget are `(other)`."""

    def __init__(self, *, top_accounts: int) -> None:
        self.ended: deque[Job] = deque(maxlen=_REMEMBERED)
        """The last jobs that ended, for `EfficiencyCollector`."""
        self._accounts = Admission(top_accounts)
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

    def add(self, event: JobEvent) -> None:
        """Count an event."""
        job = event.job
        where = self._where(job)
        match event:
            case Submission():
                self.submits[where] += job.tasks
            case Start(waited_s=waited_s):
                self.starts[where] += job.tasks
                wait = self.wait_s.setdefault(where[0], Histogram.of(WAIT_BOUNDS_S))
                wait.observe(waited_s, job.tasks)
            case Requeue():
                self.requeues[where] += job.tasks
            case End(state=state, ran_s=ran_s):
                self.ends[*where, state] += job.tasks
                if job.has_started:
                    self.ended.append(job)
                    self._ran(where[0], event, ran_s)

    def credit(self, job: Job, seconds: float) -> None:
        """Add a job's resources, multiplied by seconds."""
        where = self._where(job)
        self.cpu_s[where] += job.cpus * seconds
        self.gpu_s[where] += job.gpus * seconds
        self.node_s[where] += job.nodes * seconds

    def _ran(self, partition: str, end: End, ran_s: float) -> None:
        key = partition, end.state
        self.run_s.setdefault(key, Histogram.of(RUN_BOUNDS_S)).observe(ran_s)
        if 0 < end.job.limit_s < float("inf"):
            used = self.limit_used.setdefault(partition, Histogram.of(RATIO_BOUNDS))
            used.observe(ran_s / end.job.limit_s)

    def _where(self, job: Job) -> tuple[str, str]:
        return ",".join(job.partitions), self._accounts.name(job.account)
