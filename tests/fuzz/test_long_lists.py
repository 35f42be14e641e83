"""Lists of a Slurm that somebody else runs: bounded by what a Slurm can have, read in slices, while others have their turn."""

import asyncio
import json
import resource
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bridge.slurm import nodes, queue
from slurmclient.errors import Malformed
from slurmruntime.slurm import wire
from tests.attacks import attack
from tests.fuzz.long_answers import slurmrestd

PIECE = 256 * 2**10
MEMORY = 96 * 2**20
"""The server's own part is among it."""


def _repeated(record: bytes, total: int) -> Iterable[bytes]:
    """Yield about so many bytes of a record and commas."""
    piece = record * max(1, PIECE // len(record))
    for _ in range(total // len(piece) + 1):
        yield piece


NODE = json.dumps({"name": "n1", "state": ["IDLE"], "cpus": 4, "comment": "x" * 1500}).encode()


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        attack(
            "small",
            "have slurm-operator read 120 MB of tiny nodes from one's own slurmrestd",
            "lists are read in slices; no Slurm has more than 65 533 nodes",
            _repeated(b'{"name":"n"},', 120_000_000),
            "at most 65533 nodes",
        ),
        attack(
            "large",
            "have slurm-operator read 120 MB of ordinary nodes from one's own slurmrestd",
            "32 MiB of nodes",
            _repeated(NODE + b",", 120_000_000),
            "at most 33554432 bytes",
        ),
        attack(
            "one",
            "have slurm-operator read one node without an end",
            "1 MiB of one object",
            (b'{"name":"', *_repeated(b"n" * PIECE, 60_000_000)),
            "at most 1048576 bytes at once",
        ),
        attack(
            "nothing",
            "have slurm-operator read a list of commas without an end",
            "32 MiB of nodes",
            _repeated(b",", 120_000_000),
            "at most 33554432 bytes",
        ),
    ],
)
async def test_a_list_of_nodes_beyond_all_bounds_is_left_in_the_middle(
    tmp_path: Path, pieces: Iterable[bytes], told: str
) -> None:
    async with slurmrestd(tmp_path, "nodes", pieces) as client:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(Malformed, match=told):
            await nodes.refresh_in_slices(client, None)
        grown_bytes = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)

    assert grown_bytes < MEMORY


async def test_others_have_their_turn_while_a_list_is_read(tmp_path: Path) -> None:
    at_a_time = [0]

    def take(_body: bytes) -> None:
        at_a_time[-1] += 1

    async def others() -> None:
        while True:
            await asyncio.sleep(0)
            at_a_time.append(0)

    tiny = _repeated(b'{"name":"n"},', 1_000_000)
    async with slurmrestd(tmp_path, "nodes", tiny) as client, asyncio.TaskGroup() as group:
        beside = group.create_task(others())
        await client.each_of(
            "node.list",
            "slurm_get_nodes",
            "nodes",
            take=take,
            answer=wire.Nodes,
            most_bytes=2**30,
        )
        beside.cancel()

    assert sum(at_a_time) > 70_000
    assert max(at_a_time) <= 200


@pytest.mark.attack(
    "have slurm-operator read jobs that stand for more nodes than any Slurm has",
    "300 000 places; then it counts as unknown where jobs are, and nothing is drained or deleted",
)
async def test_jobs_on_more_nodes_than_there_are_make_a_reading_unsure(tmp_path: Path) -> None:
    def job(number: int) -> dict[str, Any]:
        return {"job_id": number, "job_state": ["RUNNING"], "nodes": f"a{number}-[1-99999]"}

    pieces = (json.dumps(job(number)).encode() + b"," for number in range(1000))
    async with slurmrestd(tmp_path, "jobs", pieces) as client:
        found = await queue.read_occupancy(client)

    assert "job 999: hostlist 'a999-[1-99999]': more than" in found.unreadable
    assert len(found.by_node) <= queue.MOST_PLACES


async def test_live_jobs_are_read_in_slices_too(tmp_path: Path) -> None:
    waiting = {"job_id": 1, "job_state": ["PENDING"], "partition": "a,b"}
    ended = {"job_id": 2, "job_state": ["COMPLETED"], "partition": "a"}
    pieces = (json.dumps(each).encode() + b"," for each in (waiting, ended))
    async with slurmrestd(tmp_path, "jobs", pieces) as client:
        found = await queue.list_live(client)

    assert [(1, ("a", "b"), True)] == [
        (each.id, each.partitions, each.waits) for each in found.live
    ]
    assert (
        "a job in Slurm's list cannot be read" == found.unreadable
    )  # the fixture's last object is no job
