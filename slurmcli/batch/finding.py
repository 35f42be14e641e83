"""Find the SlurmJob that a person means by its name: one of ours, or of Sylabs' kinds."""

import asyncio
from typing import TYPE_CHECKING

from slurmcli.line.declaring import BadOperand
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from slurmjobs.objects.slurmjob import JobResource, SlurmJobObject


async def job_named(kube: KubeClient, namespace: str, name: str) -> "SlurmJobObject":
    """Return our SlurmJob of that name; where there is none, the one of Sylabs' kinds.

    Raises:
        BadOperand: none of ours has the name, and several of theirs have.
        KubeError: there is none, or it cannot be read.
    """
    from slurmjobs.objects import slurmjob  # noqa: PLC0415  # likewise
    from slurmjobs.reconcile import resource  # noqa: PLC0415  # 60 ms that other commands do not need

    try:
        return await resource.get(kube, slurmjob.OURS, namespace, name)
    except NotFound as error:
        candidates = await asyncio.gather(
            *(_get_or_none(kube, of, namespace, name) for of in _theirs())
        )
        jobs = [job for job in candidates if job is not None]
        if not jobs:
            raise error from None
    if len(jobs) > 1:
        kinds = " and a ".join(f"{job.resource.kind} of {job.resource.api_version}" for job in jobs)
        raise BadOperand(f"{namespace}/{name} is the name of a {kinds}: use kubectl get")
    return jobs[0]


def _theirs() -> "list[JobResource]":
    from slurmjobs.sylabs.job import KINDS, SylabsResource  # noqa: PLC0415  # as above
    from slurmjobs.sylabs.site import SylabsSite  # noqa: PLC0415  # as above

    return [SylabsResource(kind, SylabsSite()) for kind in KINDS]


async def _get_or_none(
    kube: KubeClient, of: "JobResource", namespace: str, name: str
) -> "SlurmJobObject | None":
    from slurmjobs.reconcile import resource  # noqa: PLC0415  # as above

    try:
        return await resource.get(kube, of, namespace, name)
    except (NotFound, Forbidden):
        return None
