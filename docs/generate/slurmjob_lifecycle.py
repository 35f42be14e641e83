"""Write `docs/slurmjob-lifecycle.md` from the table itself: `python -m docs.generate.slurmjob_lifecycle > docs/slurmjob-lifecycle.md`."""

import sys

from bridge.domain.model.jobs import JobEnd
from docs.generate import markdown
from slurmjobs.lifecycle import outcome, table
from slurmjobs.lifecycle.table import JobColumn, JobRow

_INTRODUCTION = """\
# The lifecycle of a SlurmJob

<!-- Generated: python -m docs.generate.slurmjob_lifecycle > docs/slurmjob-lifecycle.md -->

One pure function decides what to do for a SlurmJob: `slurmjobs.lifecycle.table.decide(facts, policy)`.
It remembers nothing. Each time, it looks up a cell of the table below: the row is what the object *is*,
the column is what Slurm *surely knows* of the job of its present attempt.
The same facts give the same answer, so it does not matter what was missed, lost or restarted in between.
"""

_AFTER = """\
And this one applies after it: anything but waiting is held back until Slurm has been read by a request that *began* after our
own last write about this object, and our view of the object includes that write.

A job is found by its mark in `admin_comment`, which is part of the submission itself: cluster, the SlurmJob's uid, and the
number of the attempt. The finalizer is on the object before the first submission. So a submission whose reply was lost, or
whose process died, is found and never repeated; and an object without our finalizer never had a job.

*Surely none* means that nobody ever submitted for the object, or that two readings of Slurm in a row that both began after our last
write do not show a live job of it. Where there may have been a job that Slurm has forgotten since, its accounting (slurmdbd)
is asked by the mark, before anything is submitted.

Suspending does not hold a job: it begins another attempt, which gets its job when `spec.suspend` is false again, and the
job of the attempt before is cancelled.
"""

_OTHER_ENDS = """\
FAILED without ever having had a node, because none could run it, has the reason `NeverRunnable`, and no exit code, signal or output.
FAILED by a signal has the reason `Signalled` (by 53, which is Slurm's way to say that an output file or directory could not
be opened, `OutputFailed`), CANCELLED after `activeDeadlineSeconds` has `DeadlineExceeded`,
and CANCELLED because of a dependency has `DependencyNeverSatisfied`. A requeued job has not ended.
"""

_ROWS = {
    JobRow.FOREIGN: "`spec.managedBy` names another controller",
    JobRow.NEW: "has not got our finalizer yet",
    JobRow.READY: "has our finalizer, and its status names no job",
    JobRow.SUBMITTED: "its status names a job",
    JobRow.COLLECTING: "its job has ended, and `status.results` says that its results are being copied",
    JobRow.SUSPENDED: "`spec.suspend` is true",
    JobRow.DONE: "its status says Succeeded or Failed: that never changes again",
    JobRow.DELETING: "was deleted, and waits for our finalizer",
}

_COLUMNS = {
    JobColumn.NONE: "Slurm has no job of it, and none can appear later",
    JobColumn.WAITING: "PENDING, held, CONFIGURING, or requeued",
    JobColumn.RUNNING: "runs",
    JobColumn.PAUSED: "SUSPENDED or STOPPED",
    JobColumn.SETTLING: "has ended, and is COMPLETING",
    JobColumn.ENDED: "over, and Slurm still knows how",
    JobColumn.PURGED: "Slurm has forgotten it, and its accounting knows how it ended",
    JobColumn.LOST: "Slurm does not know it, and its accounting has no end of it",
    JobColumn.UNRECORDED: "Slurm does not know it, and there is no accounting to ask",
    JobColumn.UNKNOWN: "unreachable, unreadable, absent but not for certain, or being looked up",
}


def render() -> str:
    """Return the page."""
    return "\n".join(
        [
            _INTRODUCTION,
            "## The table\n",
            markdown.table(
                ["SlurmJob / job", *(column.value for column in JobColumn)], map(_row, JobRow)
            ),
            "These rules apply before the table:\n",
            _steps(),
            _AFTER,
            "## Rows\n",
            markdown.table(["row", "the SlurmJob"], ([f"**{r.value}**", _ROWS[r]] for r in JobRow)),
            "## Columns\n",
            markdown.table(
                ["column", "the job"], ([f"**{c.value}**", _COLUMNS[c]] for c in JobColumn)
            ),
            "## How it ends\n",
            markdown.table(["Slurm says", "`status.phase`", "`status.reason`"], map(_end, JobEnd)),
            _OTHER_ENDS,
        ]
    )


def _row(row: JobRow) -> list[str]:
    cells = table.TABLE[row]
    columns = (column for column in JobColumn if column is not JobColumn.UNKNOWN)
    unknown = "Leave it alone." if row is JobRow.FOREIGN else "Wait."
    return [
        f"**{row.value}**",
        *(markdown.docstring(cells.rule(column)) for column in columns),
        unknown,
    ]


def _steps() -> str:
    steps = enumerate(table.BEFORE, start=1)
    return "".join(f"{number}. {markdown.docstring(step)}\n" for number, step in steps)


def _end(end: JobEnd) -> list[str]:
    phase = "Succeeded" if end is JobEnd.COMPLETED else "Failed"
    return [end.value, phase, f"`{outcome.ENDS[end][0]}`"]


if __name__ == "__main__":
    sys.stdout.write(render())
