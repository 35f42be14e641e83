"""In what our job differs from sbatch's, each with the reason; `docs/slurmjob-options.md` lists it."""

from collections.abc import Mapping
from typing import Final

UNLIKE: Final[Mapping[str, str]] = {
    "submit_line": "slurmrestd has no field for it",
    "command": "sbatch sends the script's path, and slurmrestd has no field for it",
    "allocating_node": "the host that submits: slurmrestd's",
}
"""Fields of a job, as `GET /job/ID` names them."""

ELSEWHERE: Final[Mapping[str, str]] = {
    "`SBATCH_…` variables": "they belong to the shell that runs sbatch; here options stand in the script, or beside it",
    "cli_filter and SPANK plugins of the submitting host": "they run inside sbatch; use a job_submit plugin, which"
    " slurmctld runs for jobs by slurmrestd, too",
    "`hetjob` and `packjob`": "heterogeneous jobs are refused: submit one job for each component",
    "size": "a script may have 4 MiB, Slurm's default; sbatch itself reads up to 512 MiB",
    "header": "at most 500 options, 16 384 characters in a directive and 32 768 in all of them, and 2000 lines before the first command;"
    " values of numbers, times and words have at most 1024 characters; sbatch has no such bounds",
    "lists of nodes": "at most 16 384 names in `--nodelist` and 100 000 in `--exclude`, with at most 512 KiB and 4 MiB in all names",
    "bytes that are not UTF-8": "refused: JSON and Kubernetes hold only text",
    "`--gres-flags`": "`multiple-tasks-per-sharing` and `one-task-per-sharing` are refused: slurmrestd has no flags for them",
    "`--nodelist` and `--exclude`": "a name with a slash is a file for sbatch, and refused here",
    "faults": "sbatch stops at the first; here all of them are told, with their lines",
}
"""What is not a field of the job."""
