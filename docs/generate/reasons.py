"""Write `docs/reasons.md` from the table itself: `python -m docs.generate.reasons > docs/reasons.md`."""

import sys
from collections.abc import Iterable

from bridge.domain.lifecycle.waiting_reasons import EXPLANATIONS, Explanation, explain

_INTRODUCTION = """\
# Why a pod waits

<!-- Generated: python -m docs.generate.reasons > docs/reasons.md -->

Slurm gives a reason for every pending job. You find it in the pod's condition `slurm-bridge.dev/Allocated`, in an Event,
and in the output of `kubectl slurm why POD`:

```
$ kubectl get pod train-0 -o jsonpath='{.status.conditions[?(@.type=="slurm-bridge.dev/Allocated")].message}'
Slurm job 4711 waits: its account as a whole has reached its GPU (GRES) limit (AssocGrpGRES); wait until others end, or
let an administrator change the limit: sacctmgr show assoc
```

The pod's Events show each change: `submitted as Slurm job 4711. Slurm job 4711 waits: …`, then further reasons as Slurm
reports them, then `submitted as Slurm job 4711, started on node-3`. A pod that starts within two seconds and keeps running
has only the last one: another Event for the submit would cost every pod a write and add nothing.

Two reasons are ours, because Slurm has no job that could wait. `SubmitRefused`: what is wrong with the request, or what no
node has; also `kubectl slurm explain` says so, before anything is created. CPUs, memory and GRES are compared with the largest node that
suits the pod in the partitions it asks for: `none of the 8 nodes that suit the pod has 99 gpu in Slurm (the largest has 4)`.
`NeverRunnable`: Slurm took a job and ended it, because no node could ever run it; the reason is passed on. In both cases the pod keeps
its gate and waits. It is tried again when nodes change, and every few minutes.

A reason that is not listed below is passed on as Slurm reports it; see JOB REASON CODES in `man squeue`.

## Reasons
"""

_LIMITS = """
## Limits

The names of limits follow a scheme: whose limit it is (`QOS`, or `Assoc` for the account), `Grp` for all jobs together or
`Max` for a single one, the resource, and `Per` what.
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
    """Return the page."""
    limits = ((reason, found) for reason in _EXAMPLES if (found := explain(reason)))
    return "".join((_INTRODUCTION, _table(EXPLANATIONS.items()), _LIMITS, _table(limits)))


def _table(rows: Iterable[tuple[str, Explanation]]) -> str:
    head = "\n| Slurm's reason | it means | what can be done |\n| --- | --- | --- |\n"
    return head + "".join(
        f"| `{reason}` | {found.words} | {_code(found.next_step) or 'wait'} |\n"
        for reason, found in rows
    )


def _code(step: str) -> str:
    """Format the commands of a step as code."""
    said, colon, command = step.partition(": ")
    if not colon:
        return said
    return f"{said}: {'; '.join(f'`{one}`' for one in command.split('; '))}"


if __name__ == "__main__":
    sys.stdout.write(render())
