"""The cores of a job in slurmrestd's words, and the CPUs that they are."""

import asyncio
import json

import pytest

from bridge.slurm.allocated import cpus
from slurmclient.errors import Malformed, TargetNotFound
from slurmclient.wire import reading
from slurmruntime.slurm import records, wire
from slurmruntime.slurm.records import JobRecord
from slurmruntime.values.ids import JobId, SlurmNode


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


def given(monkeypatch: pytest.MonkeyPatch, state: str, *nodes: str) -> frozenset[int]:
    """What is read of a job with the second of two cores on each of these nodes; None of them: no resources at all."""
    own = json.loads(sockets([1], width=2))
    allocation = [{"name": name, "sockets": own} for name in nodes]
    resources = {"job_resources": {"nodes": {"allocation": allocation}}} if nodes else {}
    raw = json.dumps({"job_id": 1, "job_state": [state], **resources}).encode()
    read = reading.lenient(raw, wire.Job, is_null_odd=True)
    assert not isinstance(read, reading.Unreadable)

    async def answer(*_: object, **__: object) -> list[JobRecord]:
        return [JobRecord(raw, read)]

    monkeypatch.setattr(records, "read", answer)
    asked = cpus.of_job(None, JobId(1), SlurmNode("s1"), sluid=None, threads=1)  # type: ignore[arg-type]
    return asyncio.run(asked)


def test_the_cpus_of_a_job_are_those_of_its_own_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {1} == given(monkeypatch, "RUNNING", "s0", "s1")
    assert not given(monkeypatch, "RUNNING", "s0")
    assert not given(monkeypatch, "RUNNING")


def test_a_job_that_has_ended_meanwhile_is_told_from_one_without_cpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(TargetNotFound, match="COMPLETED, expected RUNNING"):
        given(monkeypatch, "COMPLETED", "s1")
