"""Compare a waiting placeholder with what would be submitted now, and find what Slurm must update.

Only the number of tasks changes in place, as the job's user. Any other difference takes a new job.
"""

from collections.abc import Mapping

from bridge.domain.model.allocation import TaskSize
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.placeholder import Changes, PlaceholderSpec
from slurmruntime.values.ids import JobId


def changes(spec: PlaceholderSpec, job: SlurmJob) -> Mapping[JobId, Changes] | None:
    """Return the components whose number of tasks must change; None if anything else differs.

    Args:
        spec: what would be submitted now.
        job: the waiting job that was submitted.
    """
    specs = (spec, *spec.also)
    parts = job.components
    sizes = tuple(
        TaskSize(
            cpus=one.cpus_per_task,
            memory_mib_per_cpu=one.memory_mib_per_cpu,
            gres=one.gres_per_task,
        )
        for one in specs
    )
    # A job's user never changes, and its account was fixed at submit.
    frozen = job.identity.frozen
    if frozen is None or (frozen.user, frozen.account) != (spec.user, spec.account):
        return None
    if sizes != tuple(part.task for part in parts):
        return None
    return {
        id_: Changes(
            tasks=component.tasks,
            cpus=component.tasks * component.cpus_per_task,
            memory_mib_per_cpu=component.memory_mib_per_cpu,
        )
        for id_, component, part in zip(job.ids, specs, parts, strict=True)
        if component.tasks != part.tasks
    }
