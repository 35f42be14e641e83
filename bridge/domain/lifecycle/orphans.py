"""Placeholders without pods: a lease did not fence, a finalizer was stripped, a cancel was undone.

The order of reads makes it safe. Read Slurm first, each suspect again, as a waiting job may name
other pods by now; then ask the API server (quorum GET, not a cache) for every pod that such a job
names. A pod exists before its placeholder, so "404, or another uid" then means gone. Once is a
suspicion; an orphan is what is still suspected one grace period later.

That the pod is gone proves little if this process never saw it. A copy of the cluster (etcd restored
elsewhere) has the same id and finds the jobs of the original, whose younger pods it never had; so
does a program that is pointed at the wrong API server. Nothing that is kept in etcd tells a copy
from its original, and both reach the same Slurm. So there is a bound on what is cancelled without
an operator's consent: many orphans at once, and more than a few whose pods were never seen, are held.
"""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bridge.domain.lifecycle.actions import Cancel
from bridge.domain.model.jobs import SlurmJob
from slurmruntime.values.ids import ClusterId, JobId, PodUid, Sluid

MOST = 20
MOST_SHARE = 0.1
"""How many orphans may be cancelled at once: this many in any case, or this share of our live
placeholders."""

MOST_STRANGE = 3
"""How many may be suspected at once whose pods this process has never seen."""

MOST_STRANGE_AN_HOUR = 10
"""How many placeholders whose pods were never seen may be cancelled within an hour."""

STRANGE_GRACES = 10
"""How many times longer placeholders whose pods were never seen are suspected before they are
cancelled: in a copy of the cluster, more turn up in the meantime."""

JobKey = tuple[JobId, Sluid | None]
"""Job ids are reused; a suspicion is about one job only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What to cancel now, and what to pass to the next judgement."""

    orphans: tuple[Cancel, ...] = ()
    strange: tuple[Cancel, ...] = ()
    """Those whose pods this process has never seen."""
    strange_suspects: int = 0
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

    held: jobs that pods in the cache were placed by; a pod that joined a gang may be missing from
    the identity as last read.
    """
    return tuple(
        job
        for job in jobs
        if not job.is_over
        and job.identity.cluster == cluster
        and job.id not in held
        and job.identity.pods  # a filler has none (`bridge.domain.nodes.fillers`)
        and known.isdisjoint(job.identity.pods)
    )


def judge(
    suspected: Collection[SlurmJob],
    *,
    gone: AbstractSet[PodUid],
    seen: AbstractSet[PodUid],
    suspects: Mapping[JobKey, datetime],
    now: datetime,
    grace: timedelta,
) -> Judgement:
    """Separate orphans from suspects.

    Args:
        suspected: the candidates of a reading that began before the pods were requested.
        gone: their pods for which the API server answered 404, or shows another uid under the name;
            no answer does not mean gone.
        seen: the pods that this process has ever seen.
        suspects: from the last judgement, empty at first.
        now: the time.
        grace: how long to suspect; above 0, nothing is cancelled at first sight.
    """
    still = {
        (job.id, job.sluid): suspects.get((job.id, job.sluid), now)
        for job in suspected
        if job.identity.pods and frozenset(job.identity.pods) <= gone
    }
    familiar = {(job.id, job.sluid) for job in suspected if not seen.isdisjoint(job.identity.pods)}
    overdue = [
        Cancel(job_id=job_id, sluid=sluid)
        for (job_id, sluid), since in still.items()
        if now - since >= (grace if (job_id, sluid) in familiar else grace * STRANGE_GRACES)
    ]
    return Judgement(
        orphans=tuple(cancel for cancel in overdue if (cancel.job_id, cancel.sluid) in familiar),
        strange=tuple(
            cancel for cancel in overdue if (cancel.job_id, cancel.sluid) not in familiar
        ),
        strange_suspects=len(still.keys() - familiar),
        suspects=still,
    )


def why_held(judged: Judgement, *, live: int, strange_lately: int) -> str:
    """Return why nothing may be cancelled without an operator's consent; "" if it may.

    Args:
        live: the number of our live placeholders.
        strange_lately: how many whose pods were never seen were cancelled within the last hour.
    """
    overdue = len(judged.orphans) + len(judged.strange)
    if overdue > max(MOST, MOST_SHARE * live):
        return f"{overdue} of {live} placeholders have no pods, more than may be cancelled at once"
    if judged.strange_suspects > MOST_STRANGE:
        return (
            f"the pods of {judged.strange_suspects} placeholders were never seen: another cluster "
            "may have this one's id, such as a copy restored from a backup of etcd"
        )
    if judged.strange and strange_lately + len(judged.strange) > MOST_STRANGE_AN_HOUR:
        return f"{strange_lately} placeholders whose pods were never seen were cancelled in an hour"
    return ""
