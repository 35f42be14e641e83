"""Write `docs/caps.md` from the table of caps: `python -m docs.generate.caps > docs/caps.md`."""

import sys

from bridge.domain import caps

_INTRODUCTION = """\
# Caps

<!-- Generated: python -m docs.generate.caps > docs/caps.md -->

Kubernetes takes pods of up to 1.5 MB, with grace periods of centuries. slurm-bridge keeps every pod of the bridged
namespaces in memory and decides about each of them, so one tenant's absurd pod would cost everybody.
So there are caps on how much of everything one pod may have. A pod that exceeds some is refused at CREATE, with every
fault and its path:

```
$ kubectl create -f pod.yaml
The Pod "train-0" is invalid:
* spec.terminationGracePeriodSeconds: expected at most 3600 seconds, found 86400 (setting caps.grace_s)
* spec.tolerations: expected at most 50 tolerations, found 80 (fixed cap tolerations)
```

What slurm-bridge itself writes on a pod (labels, annotations, its toleration) does not count, and neither does `metadata.managedFields`.
Two of them are settings, up to the largest value: `caps.grace_s` and `caps.gang_size`, in the chart as `config.caps.…`. The others are fixed, far
above what honest pods have; what is beyond their largest value is not even counted.

"""

_AFTER = """
## What cannot be refused at CREATE

| what | what happens |
| --- | --- |
| a DELETE's grace period, and that of pods from before there were caps | while the pod's Slurm job runs, it counts as at most `caps.grace_s` when the job's time limit is extended. When the job has ended or reached its time limit, slurm-bridge shortens the pod's grace period to `caps.grace_s`, with the Event `GraceShortened`; evictions by slurm-bridge use no longer one. Once a job is over that its user can end (cancelled, timed out in Slurm, completed there, suspended, made smaller), its containers run at no user's expense: they get 30 s, as the processes of a native job do |
| a pod that was created while no webhook answered, or before there were caps | it is not submitted: condition `SubmitRefused` with the same faults |
| a gang whose controller declares its size (a Job, a PodGroup …) | it is not submitted: condition `PodGroupInvalid` |
| how many pods a namespace has, waiting ones too | the webhook has no rights in Kubernetes, so it counts nothing. Set a ResourceQuota with `count/pods` in each bridged namespace: the API server then refuses further pods by name and number. In memory, a waiting pod of ordinary size takes some five kilobytes of each leader |
| a pod beyond the largest values | what is beyond them is not even kept in memory; the pod is not submitted either |
"""


def render() -> str:
    """Return the page."""
    return f"{_INTRODUCTION}{_table()}{_AFTER}"


def _table() -> str:
    most = caps.MOST_REQUEST_FIELDS
    rows = (
        f"| `{caps.SECTION}.{name}` | {'setting' if name in caps.SETTABLE else 'fixed'} | `{row.path}` | {getattr(caps.DEFAULT, name)} | {row.largest} | {row.unit} | {row.protects} |"
        for name, row in caps.TABLE.items()
    )
    lines = (
        "| cap | kind | where | value | largest | unit | protects |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *rows,
        f"| request fields | fixed | `metadata.annotations[slurmjob.slinky.slurm.net/…]` | {most} | {most} | request fields | the webhook's and the leader's time |",
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())
