"""Placeholders without pods: a lease did not fence, a finalizer was stripped, a cancel was undone.

The order of reads makes it safe. Read Slurm first, each suspect again, as a waiting job may name
other pods by now; then ask the API server (quorum GET, not a cache) for every pod that such a job
names. A pod exists before its placeholder, so "404, or another uid" then means gone. Once is a
suspicion; an orphan is what is still suspected one grace period later.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bridge.domain.ids import ClusterId, JobId, PodUid, Sluid
from bridge.domain.lifecycle.actions import Cancel
from bridge.domain.model.jobs import JobPhase, SlurmJob

JobKey = tuple[JobId, Sluid | None]
"""Job ids are reused; a suspicion is about one job only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What to cancel now, and what to pass to the next judgement."""

    orphans: tuple[Cancel, ...] = ()
    suspects: Mapping[JobKey, datetime] = field(default_factory=dict)
    """Since when each job's pods have been seen gone."""


def candidates(
    jobs: Iterable[SlurmJob],
    *,
    cluster: ClusterId,
    known: AbstractSet[PodUid],
    held: AbstractSet[JobId] = frozenset(),
) -> tuple[SlurmJob, ...]:
    """Return the live jobs of our cluster none of whose pods is in the cache.

    Only these are worth a request to the API server.

    held: jobs that pods in the cache were placed by; one that joined a gang may be missing from the
    identity as last read.
    """
    return tuple(
        job
        for job in jobs
        if (job.phase is not JobPhase.ENDED or job.remains)
        and job.identity.cluster == cluster
        and job.id not in held
        and job.identity.pods  # a filler has none (`bridge.domain.nodes.fillers`)
        and known.isdisjoint(job.identity.pods)
    )


def judge(
    suspected: Iterable[SlurmJob],
    *,
    gone: AbstractSet[PodUid],
    suspects: Mapping[JobKey, datetime],
    now: datetime,
    grace: timedelta,
) -> Judgement:
    """Separate orphans from suspects.

    suspected: the candidates of a reading that began before the pods were requested. gone: their
    pods for which the API server answered 404, or shows another uid under the name; no answer does
    not mean gone. suspects: from the last judgement, empty at first; with a grace above 0 nothing
    is cancelled at first sight.
    """
    still = {
        (job.id, job.sluid): suspects.get((job.id, job.sluid), now)
        for job in suspected
        if job.identity.pods and frozenset(job.identity.pods) <= gone
    }
    return Judgement(
        orphans=tuple(
            Cancel(job_id=job_id, sluid=sluid)
            for (job_id, sluid), since in still.items()
            if now - since >= grace
        ),
        suspects=still,
    )
