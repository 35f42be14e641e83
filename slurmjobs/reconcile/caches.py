"""Caches of all SlurmJobs: one for each resource, used like a single one."""

from collections.abc import Callable, Iterable, Iterator

from slurmjobs.objects.slurmjob import JobResource, SlurmJobObject
from slurmjobs.reconcile import resource
from slurmruntime.kube.cache import Cache, Callback, Index
from slurmruntime.values.oddities import Oddities


class JobIndexes:
    """One index over several caches."""

    def __init__(self, indexes: Iterable[Index[SlurmJobObject]]) -> None:
        self._indexes = tuple(indexes)

    def get(self, value: str) -> list[SlurmJobObject]:
        """Return every object indexed by this value."""
        return [job for index in self._indexes for job in index.get(value)]


class JobCaches:
    """The caches of our own resource and of the translated ones."""

    def __init__(self, resources: Iterable[JobResource], set_aside: Oddities) -> None:
        self._caches = {kind: Cache(resource.kind_of(kind), set_aside) for kind in resources}

    def __iter__(self) -> Iterator[tuple[JobResource, Cache[SlurmJobObject]]]:
        return iter(self._caches.items())

    def is_synced(self, job_resource: JobResource) -> bool:
        """Check whether one resource has been listed; before that, absence proves nothing."""
        return self._caches[job_resource].synced.is_set()

    def get(self, uid: str) -> SlurmJobObject | None:
        """Return the object with this uid, or None."""
        candidates = (cache.get(uid) for cache in self._caches.values())
        return next((job for job in candidates if job is not None), None)

    def of(self, job_resource: JobResource) -> Cache[SlurmJobObject]:
        """Return the cache of one resource."""
        return self._caches[job_resource]

    def index(self, by: Callable[[SlurmJobObject], Iterable[str]]) -> JobIndexes:
        """Maintain an index over all caches; like `Cache.index`."""
        return JobIndexes([cache.index(by) for cache in self._caches.values()])

    def subscribe(self, callback: Callback[SlurmJobObject]) -> None:
        """Call back for every object in all caches; like `Cache.subscribe`."""
        for cache in self._caches.values():
            cache.subscribe(callback)

    def observe(self, job: SlurmJobObject, *, base: str) -> None:
        """Store what our own write returned; like `Cache.observe`."""
        self._caches[job.resource].observe(job, base=base)
