"""SlurmJobs of several resources, seen as one."""

import json
from typing import Any

from slurmjobs.objects import slurmjob
from slurmjobs.objects.slurmjob import JobResource, SlurmJobObject
from slurmjobs.reconcile.caches import JobCaches
from slurmjobs.sylabs.job import KINDS, SylabsResource
from slurmjobs.sylabs.site import SylabsSite
from slurmruntime.values.oddities import UNHEARD

OLD, WLM, _ = (SylabsResource(kind, SylabsSite()) for kind in KINDS)
SCRIPT = "#!/bin/sh\n"


def job(of: JobResource, uid: str, version: str = "1", **status: Any) -> SlurmJobObject:
    spec = {"script": SCRIPT} if of is slurmjob.OURS else {"batch": SCRIPT}
    metadata = {"name": "cow", "namespace": "lab", "uid": uid, "resourceVersion": version}
    return of.read(json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode())


def test_objects_are_found_told_and_indexed_whatever_they_are() -> None:
    caches = JobCaches((slurmjob.OURS, OLD, WLM), UNHEARD)
    told: list[str] = []
    by_name = caches.index(lambda each: [each.full_name])
    caches.subscribe(lambda _, new: told.append(new.metadata.uid) if new else None)
    for number, (resource, cache) in enumerate(caches):
        assert not caches.is_synced(resource)
        cache.put_listed(job(resource, str(number)))
        cache.synced.set()
        assert caches.is_synced(resource)

    assert ["0", "1", "2"] == told
    assert {"0", "1", "2"} == {each.metadata.uid for each in by_name.get("lab/cow")}
    assert [slurmjob.OURS, OLD, WLM] == [
        found.resource for uid in "012" if (found := caches.get(uid))
    ]
    assert caches.get("3") is None


def test_a_write_is_seen_in_the_cache_of_its_own_resource() -> None:
    caches = JobCaches((slurmjob.OURS, OLD), UNHEARD)
    caches.of(OLD).put(job(OLD, "1"))
    caches.observe(job(OLD, "1", "2", phase="Running"), base="1")

    found = caches.get("1")
    assert found is not None
    assert "Running" == found.status.phase
    assert 0 == len(caches.of(slurmjob.OURS))
