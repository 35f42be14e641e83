"""How our job differs from sbatch's, each with the reason; `docs/slurmjob-options.md` lists them."""

from collections.abc import Mapping
from typing import Final

UNLIKE: Final[Mapping[str, str]] = {
    "submit_line": "slurmrestd has no field for it",
    "command": "sbatch sends the script's path, and slurmrestd has no field for it",
    "allocating_node": "the submitting host, which is slurmrestd's",
}
"""Fields of a job, as `GET /job/ID` names them."""

ELSEWHERE: Final[Mapping[str, str]] = {
    "`SBATCH_…` variables": "they belong to the shell that runs sbatch; here options are in the script, or beside it",
    "cli_filter and SPANK plugins of the submitting host": "they run inside sbatch; use a job_submit plugin, which"
    " slurmctld also runs for jobs from slurmrestd",
    "`hetjob` and `packjob`": "heterogeneous jobs are refused: submit one job for each component",
    "size": "a script may have up to 4 MiB, Slurm's default; sbatch itself reads up to 512 MiB",
    "header": "at most 500 options, 16 384 characters in a directive, 32 768 in all directives, and 2000 lines before the first command;"
    " values that are numbers, times or words have at most 1024 characters; sbatch has no such bounds",
    "lists of nodes": "at most 16 384 names in `--nodelist` and 100 000 in `--exclude`, with at most 512 KiB and 4 MiB in total",
    "bytes that are not UTF-8": "refused: JSON and Kubernetes hold only text",
    "`--gres-flags`": "`multiple-tasks-per-sharing` and `one-task-per-sharing` are refused: slurmrestd has no flags for them",
    "`--nodelist` and `--exclude`": "sbatch reads a name with a slash as a file; here it is refused",
    "faults": "sbatch stops at the first; here all of them are reported, with their lines",
}
"""Differences that are not fields of the job."""

SINCE: Final[Mapping[str, str]] = {
    "container_type": "v0.0.45",
    "cores_per_socket": "v0.0.45",
    "memory_update_delay": "v0.0.45",
    "memory_update_margin": "v0.0.45",
}
"""The versions of slurmrestd's API in which newer fields first appear."""
