"""Have waiting placeholders forget a node that leaves Slurm, or has left it without our doing.

A job that requires a node that is gone never starts, and ends when slurmctld rereads its configuration;
one that excludes it cannot be updated without a stand-in (`bridge.slurm.updating`). Running jobs keep
their lists. So does a placeholder that replaces a lost one: it may go nowhere else.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta

from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.nodes.actions import Create, Delete, Forget, Rename, Withdraw
from bridge.domain.nodes.decision import NodePlan
from slurmruntime.values.ids import ClusterId, SlurmNode

SOON = timedelta(seconds=1)
LATER = timedelta(seconds=30)

MOST_AT_ONCE = 50
"""Placeholders that are read and rewritten in one pass over a node: ten thousand take some minutes."""


def by_waiting(jobs: Iterable[SlurmJob]) -> frozenset[SlurmNode]:
    """Return every node that a waiting placeholder names.

    Most jobs have one of a few lists, of which each may have thousands of names: equal ones are one
    object (`bridge.slurm.decode`).
    """
    lists = {
        id(names): names
        for job in jobs
        if job.phase is JobPhase.WAITING
        for names in (job.required_nodes, job.excluded_nodes)
    }
    return frozenset[SlurmNode]().union(*lists.values())


def without(name: SlurmNode, jobs: Iterable[SlurmJob]) -> Iterator[Rename | Withdraw]:
    """Yield the actions that remove a node from the lists of waiting placeholders."""
    for job in jobs:
        if job.phase is not JobPhase.WAITING or job.identity.restores:
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


def before(step: NodePlan, name: SlurmNode, jobs: tuple[SlurmJob, ...] | None) -> NodePlan:
    """Delete a node only when no job names it any more.

    Slurm refuses any update of a job that names a deleted node (2018), and a running job keeps its
    lists.

    Args:
        step: the deletion, with a drain before it if one is needed.
        jobs: live placeholders that name it; None if not certain yet.
    """
    drain = tuple(action for action in step.actions if not isinstance(action, Delete))
    if jobs is None:
        text = f"{step.reason}, looking for jobs that name it"
        return NodePlan(actions=drain, reason=text, again=SOON)
    if rewritten := tuple(without(name, jobs)):
        text = f"{step.reason}, waiting jobs name it"
        return NodePlan(actions=(*drain, *rewritten), reason=text, again=SOON)
    listed = ", ".join(str(job.id) for job in jobs[:5])
    text = f"{step.reason}, running jobs exclude it: {listed}"
    return NodePlan(actions=drain, reason=text, again=LATER)


def after(
    step: NodePlan, name: SlurmNode, jobs: tuple[SlurmJob, ...] | None, cluster: ClusterId
) -> NodePlan:
    """Remove a node that Slurm lacks from these jobs, too, unless it is about to come back.

    jobs: live placeholders that name it; None if not certain yet.
    """
    if any(isinstance(action, Create) for action in step.actions):
        return step
    changes = tuple(without(name, jobs or ()))
    if changes:
        forget = Forget(slurm_node=name, cluster=cluster, changes=changes)
        text = f"{step.reason}; waiting jobs name it"
        step = replace(step, actions=(*step.actions, forget), reason=text)
    return step if jobs == () else replace(step, again=SOON)
