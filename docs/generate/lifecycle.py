"""Write `docs/lifecycle.md` from the table itself: `python -m docs.generate.lifecycle > docs/lifecycle.md`."""

import sys

from bridge.domain.lifecycle import outcome, reasons
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.rules.waiting import SUBMITTED_AGAIN_AFTER
from bridge.domain.lifecycle.table import Column, Row
from bridge.domain.model.jobs import JobEnd
from docs.generate import endings, markdown

_INTRODUCTION = """\
# The lifecycle of a pod

<!-- Generated: python -m docs.generate.lifecycle > docs/lifecycle.md -->

One pure function decides what to do for a pod: `bridge.domain.lifecycle.table.decide(facts, policy)`.
It remembers nothing and stores no phase. Each time, it looks up a cell of the table below: the row is what the pod *is*,
the column is what Slurm *surely knows* about the pod's placeholder.
The same facts give the same answer, so it does not matter what was missed, lost or restarted in between.
"""

_AFTER = """\
And this one applies after it: any action other than Wait is held back until Slurm has been read by a request that *began*
after our own last write about this pod, and our view of the pod includes that write (`bridge.domain.observation.view`).

A pod that failed because its machine crashed gets the condition DisruptionTarget (reason `SlurmNodeFail`) before anything else is done
for it, whatever that is: its Job would count it a second later.

Evicting is not cancelling: the placeholder of an evicted pod ends when the pod's containers are gone, one row further down.

*Surely none* means one of these: nobody ever wrote about the workload; Slurm, read after our last write, still shows the
end of its placeholder; or the placeholder was absent in two readings in a row that both began after our last write.
A submit without an answer counts as a write that lasts for the quiet period.
"""

_ROWS = {
    Row.GATED: "waits for Slurm behind our scheduling gate",
    Row.GATED_DELETING: "was deleted while it waited",
    Row.UNPLACED: "somebody else removed our gate, so nothing can place it any more",
    Row.PLACED: "pinned to the node Slurm chose; kube-scheduler binds it",
    Row.BOUND: "has its node",
    Row.STOPPING: "deleted or ended, and a container may still run",
    Row.TERMINAL: "Succeeded or Failed, and no container runs",
    Row.DELETED: "deleted, and no container runs: they have terminated, none was ever started, or the node is gone",
}

_COLUMNS = {
    Column.NONE: "Slurm has no placeholder for it, and none can appear later",
    Column.WAITING: "PENDING or CONFIGURING; after the pod was placed: Slurm came back from an older state",
    Column.RUNNING: "holds its nodes",
    Column.PAUSED: "SUSPENDED or STOPPED; it still holds its nodes",
    Column.ENDED: "over, and Slurm still knows how",
    Column.UNKNOWN: "unreachable, malformed, or absent but not for certain",
}

_LIMITS = """\
Time limits are graceful:

1. A minute before Slurm would end the job and free its node, the limit is extended by the pod's grace period, `caps.grace_s` at most.
2. At the true limit, the pod is evicted.
3. When its containers are gone, the limit is set back and the job completed.

So the next job never meets dying containers, and `sacct` shows TIMEOUT with the original limit. The timeout counts as a
failure of the pod, even if the pod answers SIGTERM with exit code 0. While the limit is extended, `squeue` shows the
longer one; so does `sacct` if the job ends some other way in its last minute. A limit that an administrator changes
stands, before and after. If a leader's clock differs from
slurmctld's by more than 5 s, slurmctld's counts (log `clock.differs`, metric `slurm_bridge_clock_skew_seconds`). How long
something has lasted is measured by a clock that never jumps.

While a deleted pod's containers are stopping, its job is extended in the same way. A pod whose kubelet is dead keeps its
allocation until its node is deleted or declared out of service, however long that takes: until then, nobody can know
whether its containers still run. Only where *all* of our pods on a node that is not ready are being deleted is its node set
DOWN in Slurm before: their jobs end as NODE_FAIL, and nothing starts there until the node is ready again.

A circuit breaker keeps more than 30 % of the running pods from being evicted at once because their
node failed in Slurm, or Slurm lost their job. A cancel, a preemption, a limit hold for however many pods they concern: see [failures.md](failures.md#too-many-pods-would-be-evicted-at-once).
"""

_FORGOTTEN = f"""\
That Slurm no longer knows a placeholder is no reason to kill a pod: the job may have ended and been purged, or Slurm may
have lost it. Without evidence the pod stays, with condition `PlaceholderLost`, until somebody decides.

## How a pod's end is reported to Slurm

It is reported when no container runs any more. The container that failed first counts, including init containers.
Sidecars (init containers that restart) count only if nothing else failed, because they are stopped when the others are done.

| the pod | the job |
| --- | --- |
| Succeeded | COMPLETED |
| a container was `OOMKilled` | OUT_OF_MEMORY |
| killed by signal n, or exit code 128 + n with n up to 64 | FAILED 0:n |
| exit code n | FAILED n:0 |
| Failed as a whole (Evicted, Preempting, DeadlineExceeded, NodeLost …), whatever its containers report | FAILED {outcome.NO_EXIT_CODE}:0 |
| evicted at its time limit | TIMEOUT |
| evicted because it never started | FAILED {outcome.NO_EXIT_CODE}:0 |
| deleted before it ended, or its node is gone and nobody knows | CANCELLED |
"""


def render() -> str:
    """Return the page."""
    return "\n".join(
        [
            _INTRODUCTION,
            "## The table\n",
            markdown.table(
                ["pod / placeholder", *(column.value for column in Column)], map(_row, Row)
            ),
            "These rules apply before the table:\n",
            _steps(),
            _AFTER,
            "## Rows\n",
            markdown.table(
                ["row", "the pod", "who acts"],
                ([f"**{row.value}**", _ROWS[row], _actor(row)] for row in Row),
            ),
            "## Columns\n",
            markdown.table(
                ["column", "the placeholder"],
                ([f"**{column.value}**", _COLUMNS[column]] for column in Column),
            ),
            "## Every way it can end\n",
            markdown.table(
                ["cause", "pod and owner see", "Slurm sees"], map(endings.row, endings.ENDINGS)
            ),
            _LIMITS,
            "## When the placeholder ends first\n",
            markdown.table(
                ["Slurm says", "a pod that waits", "a placed pod", "its fault?"],
                map(_end, JobEnd),
            ),
            _FORGOTTEN,
        ]
    )


def _row(row: Row) -> list[str]:
    cells = lifecycle.TABLE[row]
    columns = (column for column in Column if column is not Column.UNKNOWN)
    texts = [markdown.docstring(cells.rule(column)) for column in columns]
    return [f"**{row.value}**", *texts, "Wait."]


def _steps() -> str:
    steps = enumerate(lifecycle.BEFORE, start=1)
    return "".join(f"{number}. {markdown.docstring(step)}\n" for number, step in steps)


def _actor(row: Row) -> str:
    if row in (Row.GATED, Row.GATED_DELETING):
        return "extender"
    if row is Row.TERMINAL:
        return "extender if it ended at the gate, else controllers"
    return "controllers"


def _end(end: JobEnd) -> list[str]:
    cause = reasons.cause_of(end)
    waiting = "submitted again" if end in SUBMITTED_AGAIN_AFTER else f"ended, `{cause.value}`"
    placed = f"evicted, `{cause.value}`"
    fault = "no: DisruptionTarget" if cause.is_disruption else "yes: it counts as a failure"
    return [end.value, waiting, placed, fault]


if __name__ == "__main__":
    sys.stdout.write(render())
