"""SlurmJobs: their number, their outcomes, and how soon those were reported."""

from slurmruntime.process.metrics.registry import WAIT_S, Registry


class SlurmJobMetrics:
    """SlurmJobs as the leader of the controllers sees them."""

    def __init__(self, registry: Registry) -> None:
        self._jobs = registry.gauge(
            "slurm_jobs", "SlurmJobs that exist, by `status.phase`; New: without one.", "phase"
        )
        self._submits = registry.counter(
            "slurm_job_submits",
            "Submits for SlurmJobs: accepted, lost (no reply; found again by its mark), or the reason why "
            "there is no job.",
            "outcome",
        )
        self._ended = registry.counter(
            "slurm_jobs_ended", "SlurmJobs reported as ended, by `status.reason`.", "reason"
        )
        self._submitted_s = registry.histogram(
            "slurm_job_submitted_seconds", "From a SlurmJob's CREATE to its job's id.", WAIT_S
        )
        self._reported_s = registry.histogram(
            "slurm_job_told_seconds",
            "From a job's end in Slurm, which counts whole seconds, to the SlurmJob's status.",
            WAIT_S,
        )

    def moved(self, before: str | None, now: str | None) -> None:
        """Record that a SlurmJob changed its phase, "" for none yet; None: it is new, or gone."""
        if before == now:
            return
        if before is not None:
            self._jobs.labels(before or "New").dec()
        if now is not None:
            self._jobs.labels(now or "New").inc()

    def accepted(self, since_create_s: float) -> None:
        """Record that Slurm has accepted a job."""
        self._submits.labels("accepted").inc()
        self._submitted_s.observe(max(since_create_s, 0.0))

    def lost(self) -> None:
        """Record a submit without a reply."""
        self._submits.labels("lost").inc()

    def refused(self, reason: str) -> None:
        """Record why there is no job."""
        self._submits.labels(reason).inc()

    def ended(self, reason: str, since_end_s: float | None) -> None:
        """Record that an end was reported; None if it is not known when the job ended."""
        self._ended.labels(reason).inc()
        if since_end_s is not None:
            self._reported_s.observe(max(since_end_s, 0.0))
