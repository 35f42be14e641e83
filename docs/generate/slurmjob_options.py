"""Write `docs/slurmjob-options.md` from the table of sbatch's options."""

import sys
from collections.abc import Iterator
from typing import Any

from docs.generate.slurmjob_unlike import ELSEWHERE, SINCE, UNLIKE
from slurmjobs.script.getopt import Takes
from slurmjobs.script.options import OPTIONS, SbatchOption, Treatment

_INTRODUCTION = """\
# Batch scripts

<!-- Generated: python -m docs.generate.slurmjob_options > docs/slurmjob-options.md -->

slurmrestd and slurmctld never look at a script's `#SBATCH` lines: a client that submits by REST has to read them.
`kubectl slurm submit SCRIPT --dry-run` does, with the rules of sbatch 26.05: its quotes, comments and abbreviations, where a header ends,
`#PBS` and `#BSUB` lines, and the environment that sbatch sets. It prints the job for slurmrestd, or every fault with its line:

```
$ kubectl slurm submit train.sh --dry-run
train.sh: line 2: --mem=4Q: it is not an amount of memory; expected a number of MiB, or one with a unit: 500, 500M, 4G, 1T, 2048K
train.sh: line 3: sbatch has no option --cpu-per-task; did you mean --cpus-per-task?
```

`--set NAME=VALUE` adds options that are stronger than the script's, by the names in the second column; they are also those of `spec.options` in a [SlurmJob](slurmjob.md),
which the webhook reads by the same rules. The printed environment has only what sbatch adds to that of the submitting shell.

"""

_COMPARED = """\
For each of them, tests submit a script by real sbatch and by our request, and compare all fields of both jobs,
the environments and the scripts that slurmctld keeps.

"""


def render() -> str:
    """Return the page."""
    kept = [option for option in OPTIONS if option.treatment is Treatment.SENT]
    return "".join(
        (
            _INTRODUCTION,
            "## Options\n\n",
            _COMPARED,
            "| option | field | value |\n| --- | --- | --- |\n",
            *(f"| {_spelled(each)} | `{each.field}` | {_value(each)} |\n" for each in kept),
            "\nThese fields of the request need v0.0.45 of slurmrestd's API: ",
            ", ".join(f"`{field}`" for field in SINCE),
            ".\n\n## Options that are not possible\n\n",
            "| option | why |\n| --- | --- |\n",
            *_others(Treatment.REFUSED),
            "\n## Options without effect\n\nA warning says so.\n\n",
            "| option | why |\n| --- | --- |\n",
            *_others(Treatment.IGNORED),
            "\n## Differences from sbatch\n\n",
            "| what | why |\n| --- | --- |\n",
            *(f"| field `{field}` of the job | {why} |\n" for field, why in UNLIKE.items()),
            *(f"| {what} | {why} |\n" for what, why in ELSEWHERE.items()),
        )
    )


def _others(treatment: Treatment) -> Iterator[str]:
    for option in OPTIONS:
        if option.treatment is treatment:
            yield f"| {_spelled(option)} | {option.note} |\n"


def _spelled(option: SbatchOption[Any]) -> str:
    letter = f", `-{option.letter}`" if option.letter else ""
    return f"`--{option.name}`{letter}"


def _value(option: SbatchOption[Any]) -> str:
    if option.form is None:
        return "none"
    said = option.form.accepts.replace("|", "\\|").replace("*", "\\*")
    return f"none, or {said}" if option.takes is Takes.PERHAPS else said


if __name__ == "__main__":
    sys.stdout.write(render())
