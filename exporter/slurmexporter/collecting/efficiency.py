"""How much of their allocations ended jobs used, from their records in slurmdbd; one request per job."""

import copy
from collections.abc import Sequence
from typing import Final

from slurmclient import Client, NotFound, SlurmError
from slurmclient.models import AccountedJob, Tres
from slurmexporter.families.picture import Efficiency
from slurmexporter.jobtable.tally import Tally
from slurmexporter.readings.job import Job, elapsed_s
from slurmexporter.text.budget import Admission

_US: Final = 1e-6
_ROUND: Final = 50
"""Maximum number of records to read in one round."""


class EfficiencyCollector:
    """Reads the records of ended jobs, some in each round."""

    def __init__(self, slurm: Client, tally: Tally, *, top_accounts: int) -> None:
        """top_accounts: the most accounts to count separately."""
        self._slurm = slurm
        self._tally = tally
        self._accounts = Admission(top_accounts)
        self._efficiency = Efficiency()

    async def read(self) -> Efficiency:
        """Read the records of the jobs that have ended since the last round.

        Raises:
            SlurmError: If slurmdbd cannot be read; the job is read in the next round.
        """
        for _ in range(min(_ROUND, len(self._tally.ended))):
            job = self._tally.ended[0]
            try:
                record = await self._slurm.db.jobs.get(job.job_id)
            except NotFound:
                record = None
            except SlurmError as error:
                if error.outcome in {"unavailable", "lost_reply", "unauthorized"}:
                    raise
                record = None
            self._tally.ended.popleft()
            self._add(job, record)
        return copy.deepcopy(self._efficiency)

    def _add(self, job: Job, record: AccountedJob | None) -> None:
        ran_s = elapsed_s(job, job.end_s)
        if record is None or not record.steps or not ran_s or not job.cpus:
            self._efficiency.skipped += 1
            return
        partition, account = ",".join(job.partitions), self._accounts.name(job.account)
        efficiency = self._efficiency
        # The job's own total is 0: as in sacct, its usage is the sum of its steps'.
        totals = [step.time.total for step in record.steps]
        used_s = sum(total.seconds + total.microseconds * _US for total in totals)
        held_s = job.cpus * ran_s
        efficiency.cpu[partition].observe(used_s / held_s)
        efficiency.wasted_cpu_s[account] += max(0.0, held_s - used_s)
        if job.memory_bytes:
            peak = max((memory(step.tres.requested.max) for step in record.steps), default=0)
            efficiency.memory[partition].observe(peak / job.memory_bytes)
            efficiency.wasted_memory_byte_s[account] += max(0.0, job.memory_bytes - peak) * ran_s


def memory(tres: Sequence[Tres]) -> float:
    """Return the memory in a step's resources, in bytes."""
    return sum(resource.count for resource in tres if resource.type == "mem")
