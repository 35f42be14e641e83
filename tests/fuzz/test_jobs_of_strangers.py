"""Long records of a Slurm user's jobs in the lists by which slurm-operator decides on workers."""

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.slurm import queue
from slurmclient.errors import Malformed
from tests.fuzz.long_answers import LONGEST_LIST, slurmrestd

MEMORY = 96 * 2**20


def crowd(jobs: int) -> Iterator[bytes]:
    """Waiting jobs that exclude as much as slurmctld takes."""
    for number in range(1, jobs + 1):
        job = {"job_id": number, "job_state": ["PENDING"], "excluded_nodes": LONGEST_LIST}
        yield json.dumps(job).encode() + b","


@pytest.mark.attack(
    "submit thousands of jobs that exclude 60 kB of nodes each, so that slurm-operator's memory is full before it knows where jobs are",
    "128 MiB, little of it stored; beyond that it counts as unknown where jobs are, and nothing is drained or deleted",
)
async def test_a_crowd_of_long_jobs_is_left_in_the_middle(tmp_path: Path) -> None:
    jobs = queue.MOST_JOBS_BYTES // len(LONGEST_LIST) + 1
    async with slurmrestd(tmp_path, "jobs", crowd(jobs)) as client:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(Malformed, match="at most 134217728 bytes, got more"):
            await queue.read_occupancy(client)
        grown_bytes = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)

    assert grown_bytes < MEMORY


async def test_a_thousand_of_them_are_read(tmp_path: Path) -> None:
    async with slurmrestd(tmp_path, "jobs", crowd(1000)) as client:
        occupancy = await queue.read_occupancy(client)

    assert ({}, "") == (occupancy.by_node, occupancy.unreadable)
