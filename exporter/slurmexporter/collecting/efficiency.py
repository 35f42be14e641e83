"""How much of what they held ended jobs used, by their records in slurmdbd; one request for each job."""

from collections.abc import Sequence
from typing import Final

from slurmclient import Client, NotFound, SlurmError
from slurmclient.models import AccountedJob, Tres
from slurmexporter.families.picture import Efficiency
from slurmexporter.jobtable.tally import RATIO_BOUNDS, Tally
from slurmexporter.readings.job import Job, elapsed_s
from slurmexporter.text.budget import Admission
from slurmexporter.text.family import Histogram

_US: Final = 1e-6
_ROUND: Final = 50
"""The most records to read in one round."""


class EfficiencyCollector:
    """Reads the records of jobs that have ended, some in each round."""

    def __init__(self, slurm: Client, tally: Tally, *, top_accounts: int) -> None:
        """Read nothing yet.

        Args:
            slurm: An open client.
            tally: Knows which jobs have ended.
            top_accounts: The most accounts to count apart.
        """
        self._slurm = slurm
        self._tally = tally
        self._accounts = Admission(top_accounts)
        self._found = Efficiency()

    async def read(self) -> Efficiency:
        """Read the records of the jobs that have ended since.

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
        found = self._found
        return Efficiency(
            cpu={name: one.copy() for name, one in found.cpu.items()},
            memory={name: one.copy() for name, one in found.memory.items()},
            wasted_cpu_s=dict(found.wasted_cpu_s),
            wasted_memory_byte_s=dict(found.wasted_memory_byte_s),
            skipped=found.skipped,
        )

    def _add(self, job: Job, record: AccountedJob | None) -> None:
        ran_s = elapsed_s(job, job.end_s)
        if record is None or not record.steps or not ran_s or not job.cpus:
            self._found.skipped += 1
            return
        partition, account = ",".join(job.partitions), self._accounts.name(job.account)
        found = self._found
        # The job's own total is 0: as for sacct, what it used is what its steps used.
        totals = [step.time.total for step in record.steps]
        used_s = sum(total.seconds + total.microseconds * _US for total in totals)
        held_s = job.cpus * ran_s
        _histogram(found.cpu, partition).observe(used_s / held_s)
        _grow(found.wasted_cpu_s, account, max(0.0, held_s - used_s))
        if job.memory_bytes:
            peak = max((memory(step.tres.requested.max) for step in record.steps), default=0)
            _histogram(found.memory, partition).observe(peak / job.memory_bytes)
            _grow(found.wasted_memory_byte_s, account, max(0.0, job.memory_bytes - peak) * ran_s)


def memory(tres: Sequence[Tres]) -> float:
    """Return the memory among the resources that a step used, in bytes."""
    return sum(one.count for one in tres if one.type == "mem")


def _histogram(found: dict[str, Histogram], name: str) -> Histogram:
    return found.setdefault(name, Histogram.of(RATIO_BOUNDS))


def _grow(found: dict[str, float], name: str, amount: float) -> None:
    found[name] = found.get(name, 0.0) + amount
