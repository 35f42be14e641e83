"""The cores of a job in slurmrestd's words, and the CPUs that they are."""

import json

import pytest

from bridge.slurm.allocated import cpus
from bridge.slurm.errors import Malformed


def sockets(*own: list[int], width: int) -> bytes:
    """Write sockets of so many cores, as Slurm 26.05 answers, with these allocated."""
    return json.dumps(
        [
            {
                "index": index,
                "cores": [
                    {"index": core, "status": ["ALLOCATED" if core in found else "UNALLOCATED"]}
                    for core in range(width)
                ],
            }
            for index, found in enumerate(own)
        ]
    ).encode()


def test_allocated_cores_become_cpu_ids() -> None:
    assert {1} == cpus.numbers(sockets([1], width=2), threads=1)
    assert {0, 1, 6, 7} == cpus.numbers(sockets([0, 3], width=4), threads=2)
    assert {10, 11} == cpus.numbers(sockets([], [1], width=4), threads=2)
    assert not cpus.numbers(b"[]", threads=1)


@pytest.mark.parametrize(
    "odd",
    [
        b"null",
        b"{}",
        b'[{"index": 0, "cores": 3}]',
        b'[{"index": -1}]',
        b'[{"index": 0, "cores": [{"index": 99999999, "status": ["ALLOCATED"]}]}]',
    ],
)
def test_what_slurm_never_sends_is_refused(odd: bytes) -> None:
    with pytest.raises(Malformed):
        cpus.numbers(odd, threads=1)
