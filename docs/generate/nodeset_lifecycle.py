"""Write `docs/nodeset-lifecycle.md` from the table itself: `python -m docs.generate.nodeset_lifecycle > docs/nodeset-lifecycle.md`."""

import sys

from docs.generate import markdown
from slurmoperator.workers import table
from slurmoperator.workers.table import WorkerColumn, WorkerRow

_INTRODUCTION = """\
# The lifecycle of a worker

<!-- Generated: python -m docs.generate.nodeset_lifecycle > docs/nodeset-lifecycle.md -->

One pure function decides what to do for a worker of a NodeSet: `slurmoperator.workers.table.decide(facts)`. The controller of NodeSets carries out what it says ([operator.md](operator.md)).
It remembers nothing. Each time, it looks up a cell of the table below: the row is what the pod *is* and whether it is wanted,
the column is what Slurm *surely says* of its node.
"""

_AFTER = """\
A reading of Slurm proves something only if it is whole and began after our own last write about the node had taken effect; for a write whose reply was lost, that is some
seconds later. *Surely drained* takes two such readings in a row. In both, the node is drained, and neither it nor any job says that it has work.
Slurm's counters may be a second old, so one reading is not enough. No client, no answer, half a list: all of that is *unknown*.

A pod is deleted only in the version that was decided on. So one that has started meanwhile is not deleted as one that never did.

Our drains have a reason that begins with `slurm-operator: `. Only those are lifted; a drain without that mark is somebody else's, and it counts as a drain.

Evictions of a protected worker are refused. It is protected from its birth, and until it is *surely drained* on a Kubernetes node that is cordoned. Then evictions may have it, so that
`kubectl drain` comes to an end; it is protected again before our drain is lifted. Somebody else may lift a drain at any time: should a job start just then, what the worker does before its
end still waits for it.

## Who goes first

When there are too many, these go first: pods that are going anyway, pods that never started, workers that were chosen before, those whose
state in Slurm is unknown, those drained for another template, workers without jobs, pods that are not ready,
those with the lower `pod-deletion-cost`, those whose jobs reach their time limit first, cordoned ones, and the highest numbers.
The state of a worker is unknown from a write to its node until the next reading. Nothing is done to it then, and it keeps its place, so that no other worker is drained instead.

## Who is replaced

Workers with another template than their NodeSet's go as if they were too many, and their successors have their numbers. What never started goes at once. Of the others, no more are under way
than may be away: a worker counts from its drain until its successor is ready and in service in Slurm. So does one that is missing, not ready, down, drained by anybody, or of which nothing is
known. Workers that are away anyway go first, those on cordoned Kubernetes nodes last of these; then workers that serve, in the order above.
A worker that was drained for its template is not exchanged for another one. The decision is `slurmoperator.workers.updating.to_replace`.
"""

_ROWS = {
    WorkerRow.NOTHING: "there is to be none, and there is none",
    WorkerRow.WANTED: "there is to be one, and there is no pod",
    WorkerRow.STARTING: "its pod is not ready yet",
    WorkerRow.SERVING: "its pod is ready",
    WorkerRow.UNNEEDED: "there is to be none, and no container of its pod has ever started",
    WorkerRow.LEAVING: "there is to be none, and its slurmd may have jobs",
    WorkerRow.OVER: "its pod is Failed or Succeeded: the containers are gone",
    WorkerRow.TERMINATING: "its pod is being deleted",
}

_COLUMNS = {
    WorkerColumn.MISSING: "Slurm has no such node, by a list that is whole",
    WorkerColumn.FREE: "in service, without jobs",
    WorkerColumn.BUSY: "in service, with jobs",
    WorkerColumn.DRAINING: "drained, by anybody; it has jobs",
    WorkerColumn.SETTLING: "drained, by anybody; one reading shows no jobs",
    WorkerColumn.DRAINED: "drained, by anybody; two readings in a row show no jobs",
    WorkerColumn.DOWN: "DOWN, and not drained",
    WorkerColumn.UNKNOWN: "anything else",
}


def render() -> str:
    """Return the page."""
    return "\n".join(
        [
            _INTRODUCTION,
            "## The table\n",
            markdown.table(
                ["pod / Slurm node", *(c.value for c in WorkerColumn)], map(_row, WorkerRow)
            ),
            _AFTER,
            "## Rows\n",
            markdown.table(
                ["row", "the worker"], ([f"**{r.value}**", _ROWS[r]] for r in WorkerRow)
            ),
            "## Columns\n",
            markdown.table(
                ["column", "its node"], ([f"**{c.value}**", _COLUMNS[c]] for c in WorkerColumn)
            ),
        ]
    )


def _row(row: WorkerRow) -> list[str]:
    cells = table.TABLE[row]
    return [f"**{row.value}**", *(markdown.docstring(cells[column]) for column in WorkerColumn)]


if __name__ == "__main__":
    sys.stdout.write(render())
