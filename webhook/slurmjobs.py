"""Review SlurmJobs and the kinds that are translated into them: `slurmjobs.admission` behind the admission API."""

from collections.abc import Callable, Iterator
from datetime import tzinfo
from typing import TypeVar

import msgspec

from bridge.domain.request.rules import Policy
from bridge.settings.sylabs import SylabsSection
from slurmjobs.admission import foreign
from slurmjobs.admission import review as admission
from slurmjobs.objects import slurmjob
from slurmjobs.objects.slurmjob import JobResource
from slurmjobs.sylabs.job import KINDS, SylabsJob, SylabsResource
from slurmjobs.sylabs.site import SylabsSite
from slurmruntime.process.clock import Clock
from webhook import wire
from webhook.reviewing import ReviewResult

T = TypeVar("T")


class SlurmJobReviewer:
    """Reviews the SlurmJobs of one resource by the policy in force."""

    called = "slurm_job"

    def __init__(
        self,
        policy: Callable[[], Policy],
        clock: Clock,
        zone: tzinfo,
        resource: JobResource = slurmjob.OURS,
    ) -> None:
        group, _, _ = resource.api_version.partition("/")
        self.created = f"{resource.kind}.{group}"
        self.kind = resource.kind
        self._resource = resource
        self._policy = policy
        self._clock = clock
        self._zone = zone

    def mutate(self, review: wire.Review) -> ReviewResult:
        """Record who creates the object."""
        metadata = _read(review, slurmjob.read_metadata)
        metadata = msgspec.structs.replace(metadata, namespace=review.namespace)
        verdict = admission.mutate(metadata, review.requester, self._policy())
        return ReviewResult(name=metadata.full_name, verdict=verdict)

    def validate(self, review: wire.Review) -> ReviewResult:
        """Return everything that is wrong with the object."""
        job = _read(review, self._resource.read)
        metadata = msgspec.structs.replace(job.metadata, namespace=review.namespace)
        job = msgspec.structs.replace(job, metadata=metadata)
        now = self._clock.now().astimezone(self._zone)
        if isinstance(job, SylabsJob):
            verdict = foreign.validate(job, review.requester, self._policy(), now)
        else:
            verdict = admission.validate(job, review.requester, self._policy(), now)
        return ReviewResult(name=metadata.full_name, verdict=verdict)


def translated_resources(configured: SylabsSection) -> Iterator[JobResource]:
    """Yield the resources of Sylabs' kinds."""
    site = SylabsSite.of(configured)
    yield from (SylabsResource(kind, site) for kind in KINDS)


def _read(review: wire.Review, read: Callable[[bytes], T]) -> T:
    try:
        return read(review.document)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors too
        raise wire.MalformedObjectError(f"request.object is not a SlurmJob: {error}") from error
