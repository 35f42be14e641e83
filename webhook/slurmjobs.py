"""Reviews of SlurmJobs: `jobs.admission`, to and from the admission API."""

from collections.abc import Callable
from datetime import tzinfo
from typing import TypeVar

import msgspec

from bridge.domain.request.rules import SLURM_JOB, Policy
from bridge.process.clock import Clock
from jobs.admission import review as admission
from jobs.objects import slurmjob
from webhook import wire
from webhook.reviewing import Reviewed

T = TypeVar("T")


class SlurmJobReviewer:
    """Reviews SlurmJobs by the policy in force."""

    created = f"{slurmjob.KIND}.{slurmjob.GROUP}"
    kind = SLURM_JOB
    called = "slurm_job"

    def __init__(self, policy: Callable[[], Policy], clock: Clock, zone: tzinfo) -> None:
        """Fetch the policy for each review; `zone` is the one that times in scripts are meant in."""
        self._policy = policy
        self._clock = clock
        self._zone = zone

    def mutate(self, review: wire.Review) -> Reviewed:
        """Record who creates the object."""
        metadata = _read(review, slurmjob.read_metadata)
        metadata = msgspec.structs.replace(metadata, namespace=review.namespace)
        verdict = admission.mutate(metadata, review.requester, self._policy())
        return Reviewed(name=metadata.full_name, verdict=verdict)

    def validate(self, review: wire.Review) -> Reviewed:
        """Return everything that is wrong with the object."""
        job = _read(review, slurmjob.read)
        metadata = msgspec.structs.replace(job.metadata, namespace=review.namespace)
        job = msgspec.structs.replace(job, metadata=metadata)
        now = self._clock.now().astimezone(self._zone)
        verdict = admission.validate(job, review.requester, self._policy(), now)
        return Reviewed(name=metadata.full_name, verdict=verdict)


def _read(review: wire.Review, read: Callable[[bytes], T]) -> T:
    try:
        return read(review.document)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors too
        raise wire.MalformedObjectError(f"request.object is not a SlurmJob: {error}") from error
