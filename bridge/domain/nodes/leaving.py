"""What waiting placeholders must no longer name before a node leaves Slurm."""

from collections.abc import Iterator

from bridge.domain.ids import SlurmNode
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.nodes.actions import Rename, Withdraw


def without(name: SlurmNode, jobs: tuple[SlurmJob, ...]) -> Iterator[Rename | Withdraw]:
    """Yield what removes a node from the lists of waiting placeholders."""
    for job in jobs:
        if job.phase is not JobPhase.WAITING:
            continue
        required = tuple(node for node in job.required_nodes if node != name)
        if job.required_nodes and not required:
            yield Withdraw(job_id=job.id, sluid=job.sluid)
        else:
            yield Rename(
                job_id=job.id,
                sluid=job.sluid,
                required_nodes=required,
                excluded_nodes=tuple(node for node in job.excluded_nodes if node != name),
            )
