"""Writes `docs/reasons.md` from the table itself: `python -m docs.generate.reasons > docs/reasons.md`."""

import sys
from collections.abc import Iterable

from bridge.domain.lifecycle.waiting_reasons import EXPLANATIONS, Explanation, explain

_INTRODUCTION = """\
# Why a pod waits

<!-- Generated: python -m docs.generate.reasons > docs/reasons.md -->

Slurm gives a reason for every job that waits. It stands in the pod's condition `slurm-bridge.dev/Allocated`, in an
Event, and in what `kubectl slurm why POD` prints:

```
$ kubectl get pod train-0 -o jsonpath='{.status.conditions[?(@.type=="slurm-bridge.dev/Allocated")].message}'
Slurm job 4711 waits: its account as a whole has reached its GPU (GRES) limit (AssocGrpGRES); wait until others end, or
let an administrator change the limit: sacctmgr show assoc
```

Its Events tell the story in between, one for each change: `submitted as Slurm job 4711. Slurm job 4711 waits: …`, then the
other reasons as Slurm has them, then `submitted as Slurm job 4711, started on node-3`. A pod that starts within two seconds
and stays has the last one only: an Event for the submit alone would cost every pod a write to say what this one says.

A reason that is not below is passed on as Slurm says it; `man squeue`, JOB REASON CODES.

## Reasons
"""

_LIMITS = """
## Limits

Limits are named by a scheme: whose it is (`QOS`, `Assoc` for the account), `Grp` for all together or `Max` for one
alone, the resource, and `Per` what.
"""

_EXAMPLES = (
    "AssocGrpCpuLimit",
    "AssocGrpGRES",
    "AssocGrpCPUMinutesLimit",
    "AssocMaxJobsLimit",
    "AssocMaxWallDurationPerJobLimit",
    "QOSGrpMemLimit",
    "QOSMaxCpuPerJobLimit",
    "QOSMaxCpuPerUserLimit",
    "QOSMaxGRESPerUser",
    "QOSMinCpuNotSatisfied",
    "MaxGRESPerAccount",
)


def render() -> str:
    """Write the page."""
    limits = ((reason, found) for reason in _EXAMPLES if (found := explain(reason)))
    return "".join((_INTRODUCTION, _table(EXPLANATIONS.items()), _LIMITS, _table(limits)))


def _table(rows: Iterable[tuple[str, Explanation]]) -> str:
    head = "\n| Slurm's reason | it means | what can be done |\n| --- | --- | --- |\n"
    return head + "".join(
        f"| `{reason}` | {found.words} | {_code(found.next_step) or 'wait'} |\n"
        for reason, found in rows
    )


def _code(step: str) -> str:
    """Set the commands of a step in code."""
    said, colon, command = step.partition(": ")
    if not colon:
        return said
    return f"{said}: {'; '.join(f'`{one}`' for one in command.split('; '))}"


if __name__ == "__main__":
    sys.stdout.write(render())
