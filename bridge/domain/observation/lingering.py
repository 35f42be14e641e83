"""Check whether containers of ended jobs must be gone before Slurm launches a job on their node.

Slurm gives a job's cores and devices away as soon as it has ended; its containers use their grace
period. Pods wait for that at their gate (`bridge.domain.nodes.vacating`). A native job would not
wait: slurmctld launches it at once, unless its PrologSlurmctld holds it (docs/escrow.md).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Pod
from slurmruntime.values.ids import PodUid, SlurmNode

_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A job that slurmctld is about to launch, as Slurm has it now."""

    phase: JobPhase
    nodes: tuple[SlurmNode, ...] = ()
    """Empty while it has no allocation."""
    is_external: bool = False
    """slurmctld launches nothing of it: a placeholder, a filler."""


def may_run(pod: Pod) -> bool:
    """Check whether containers of a pod that Slurm placed may run, now or in a moment.

    A pod that has its node but is not bound yet counts: its binding may be under way. So does one
    that is reported as ended, by anything but its kubelet, while its containers run.
    """
    has_node = pod.is_bound or pod.assigned_node is not None
    is_over = pod.is_terminal and pod.containers_are_gone
    return has_node and not is_over and pod.job_id is not None


def nodes_in_question(
    job: Launch | None, tenants: Mapping[SlurmNode, Sequence[Pod]]
) -> tuple[SlurmNode, ...]:
    """Return the job's nodes on which pods of ours may run; () if nothing of it is launched.

    Args:
        job: the job that Slurm is about to launch; None if Slurm does not have it.
        tenants: our pods on the nodes where native jobs may run.
    """
    if job is None or job.is_external or job.phase is JobPhase.ENDED:
        return ()
    return tuple(node for node in job.nodes if any(map(may_run, tenants.get(node, ()))))


def held_by(
    job: Launch | None, tenants: Mapping[SlurmNode, Sequence[Pod]], backed: Collection[PodUid]
) -> str:
    """Return a text that names the containers that must end before a job is launched; "" if none.

    Every job has cores, and Slurm no longer says which ones an ended job had: whatever is left of
    one on the job's nodes may hold them. Devices go with the cores.

    Args:
        job: the job that Slurm is about to launch; None if Slurm does not have it.
        tenants: our pods on the nodes where native jobs may run.
        backed: the pods whose own job has not ended: Slurm gave their share to no other job.
    """
    containers = [
        f"{pod.full_name} on {node}"
        for node in nodes_in_question(job, tenants)
        for pod in tenants[node]
        if may_run(pod) and pod.uid not in backed
    ]
    if not containers:
        return ""
    more = f" and {len(containers) - _NAMED} more" if len(containers) > _NAMED else ""
    return f"containers of ended jobs may still run: {', '.join(containers[:_NAMED])}{more}"
