"""Writes `docs/lifecycle.md` from the table itself.

`python -m docs.generate.lifecycle > docs/lifecycle.md`
"""

import sys
from collections.abc import Iterable, Sequence

from bridge.domain.lifecycle import outcome, reasons
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.rules import SUBMITTED_AGAIN_AFTER
from bridge.domain.lifecycle.table import Column, Row
from bridge.domain.model.jobs import JobEnd
from docs.generate import endings

_INTRODUCTION = """\
# The lifecycle of a pod

<!-- Generated: python -m docs.generate.lifecycle > docs/lifecycle.md -->

One pure function decides what is done for a pod: `bridge.domain.lifecycle.table.decide(facts, policy)`. It remembers nothing
and stores no phase. Each time it derives two things and looks into a table: the row is what the pod *is*, the column is
what Slurm *surely knows* of the pod's placeholder. The same facts give the same answer, so it does not matter what was
missed, lost or restarted in between.
"""

_AFTER = """\
And after it: whatever is more than Wait is held back until Slurm has been read by a
request that *began* after our own last write about this pod, and the pod is seen as that write left it
(`bridge.domain.observation.view`).

To evict is not to cancel: a placeholder whose pod is evicted ends when the pod's containers are gone, one row further.

*Surely none* means: nobody ever wrote about the workload; or Slurm, read after our last write, still shows the end of
its placeholder; or it was absent in two readings in a row that both began after our last write. A submit without an
answer counts as a write that goes on for the quiet period.
"""

_ROWS = {
    Row.GATED: "waits for Slurm behind our scheduling gate",
    Row.GATED_DELETING: "was deleted while it waited",
    Row.UNPLACED: "somebody else removed our gate: nothing can place it any more",
    Row.PLACED: "pinned to the node Slurm chose; kube-scheduler binds it",
    Row.BOUND: "has its node",
    Row.STOPPING: "deleted or ended, and a container may still run",
    Row.TERMINAL: "Succeeded or Failed, and no container runs",
    Row.DELETED: "deleted, and no container runs: they have terminated, none was ever started, or the node is gone",
}

_COLUMNS = {
    Column.NONE: "Slurm has no placeholder for it, and none can turn up",
    Column.WAITING: "PENDING or CONFIGURING; after the pod was placed: Slurm came back from an older state",
    Column.RUNNING: "holds its nodes",
    Column.PAUSED: "SUSPENDED or STOPPED: it still holds its nodes",
    Column.ENDED: "over, and Slurm still says how",
    Column.UNKNOWN: "unreachable, malformed, or absent but not yet surely",
}

_LIMITS = """\
A time limit is reached gracefully: a minute before Slurm would end the job and free its node, it is extended by the pod's
grace; at the true limit the pod is evicted; when its containers are gone, the limit is set back and the job completed.
So the next job never meets dying containers, and `sacct` shows TIMEOUT with the limit it always had. It counts as a
failure of the pod even if that answers SIGTERM with exit code 0. While it is extended, `squeue` shows the longer limit;
so does `sacct` if the job ended in its last minute some other way. A limit that an administrator changes stands, before
and after. Clocks of Slurm and Kubernetes have to agree within a second or so.

While containers of a deleted pod still stop, its job is extended in the same way. A pod whose kubelet is dead keeps its
allocation until its node is deleted or declared out of service, however long that takes: before, nobody can know.

More than `controllers.eviction_share` of the running pods are not evicted at once on Slurm's word alone: see
[failures.md](failures.md).
"""

_FORGOTTEN = f"""\
A placeholder that Slurm does not know any more is no reason to kill a pod: it may have ended and been purged, or Slurm
may have lost it. Without evidence the pod stays, with condition `PlaceholderLost`, until somebody decides.

## What Slurm is told of a pod's end

Only when no container runs any more. The first failed container in spec order counts, init containers included;
sidecars (init containers that restart) only where nothing else failed, as they are ended when the others are done.

| the pod | the job |
| --- | --- |
| Succeeded | COMPLETED |
| a container was `OOMKilled` | OUT_OF_MEMORY |
| killed by signal n, or exit code 128 + n with n up to 64 | FAILED 0:n |
| exit code n | FAILED n:0 |
| Failed although no container did (Evicted, NodeLost …) | FAILED {outcome.NO_EXIT_CODE}:0 |
| evicted at its time limit | TIMEOUT |
| evicted because it never started | FAILED {outcome.NO_EXIT_CODE}:0 |
| deleted before it ended, or its node is gone and nobody knows | CANCELLED |
"""


def render() -> str:
    """Write the page."""
    return "\n".join(
        [
            _INTRODUCTION,
            "## The table\n",
            _table(["pod / placeholder", *(column.value for column in Column)], map(_row, Row)),
            "Before the table is asked:\n",
            _steps(),
            _AFTER,
            "## Rows\n",
            _table(
                ["row", "the pod", "who acts"],
                ([f"**{row.value}**", _ROWS[row], _actor(row)] for row in Row),
            ),
            "## Columns\n",
            _table(
                ["column", "the placeholder"],
                ([f"**{column.value}**", _COLUMNS[column]] for column in Column),
            ),
            "## Every way it can end\n",
            _table(["cause", "pod and owner see", "Slurm sees"], map(endings.row, endings.ENDINGS)),
            _LIMITS,
            "## When the placeholder ends first\n",
            _table(
                ["Slurm says", "a pod that waits", "a placed pod", "its fault?"],
                map(_end, JobEnd),
            ),
            _FORGOTTEN,
        ]
    )


def _row(row: Row) -> list[str]:
    cells = lifecycle.TABLE[row]
    columns = (column for column in Column if column is not Column.UNKNOWN)
    texts = [_text(cells.rule(column)) for column in columns]
    return [f"**{row.value}**", *texts, "Wait."]


def _steps() -> str:
    steps = enumerate(lifecycle.BEFORE, start=1)
    return "".join(f"{number}. {_text(step)}\n" for number, step in steps)


def _text(rule: object) -> str:
    return " ".join((rule.__doc__ or "").split())


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


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(render())
