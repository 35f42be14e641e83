"""Whatever slurmrestd answers, a call ends in an answer or in an error of ours."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from typing_extensions import override

from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.slurm import jobs, nodes
from slurmclient import TokenFile
from slurmclient.errors import SlurmError
from slurmclient.transport.exchange import Reply, Request
from slurmclient.transport.failover import Transport
from slurmclient.watching import listing
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, SlurmNode
from tests.fuzz.inputs import COMMENT, IDENTITY, batches, document, fuzzed

_JOB = {
    "job_id": 7,
    "job_state": ["RUNNING"],
    "step_id": {"sluid": "s7"},
    "flags": ["EXTERNAL_JOB"],
    "admin_comment": json.dumps(COMMENT),
    "state_reason": "None",
    "nodes": "node[1-2]",
    "priority": {"set": True, "infinite": False, "number": 1},
    "submit_time": {"set": True, "infinite": False, "number": 1},
    "start_time": {"set": True, "infinite": False, "number": 2},
    "end_time": {"set": True, "infinite": False, "number": 3},
    "time_limit": {"set": True, "infinite": False, "number": 60},
    "memory_per_node": {"set": True, "infinite": False, "number": 60},
    "user_name": "u",
    "group_name": "g",
    "exit_code": {"return_code": {"set": True, "number": 1}, "signal": {"id": {"number": 2}}},
}
_SPEC = PlaceholderSpec(
    identity=IDENTITY,
    name="x",
    user="u",
    group="g",
    cpus_per_task=1,
    memory_mib_per_node=1,
    required_nodes=(SlurmNode("n"),),
)
_ANSWERS: dict[str, tuple[Any, Callable[[SlurmClient], Any]]] = {
    "a job": ({"jobs": [_JOB], "errors": []}, lambda client: jobs.job(client, JobId(7))),
    "states": (
        {"jobs": [{"job_id": "7", "state": ["RUNNING"]}, {"job_id": "8+1", "state": []}]},
        lambda client: listing.states(client, [JobId(7)]),
    ),
    "a submit": (
        {"job_id": 7, "errors": [{"error_number": 2050, "error": "no"}], "warnings": []},
        lambda client: jobs.submit(client, _SPEC),
    ),
    "a cancel": (
        {"status": [{"error": {"code": 0, "message": ""}}], "errors": []},
        lambda client: jobs.cancel(client, JobId(7)),
    ),
    "nodes": (
        {
            "nodes": [
                {"name": "n", "state": ["IDLE"], "cpus": 8, "features": ["a"], "gres": "gpu:1"}
            ]
        },
        nodes.listing,
    ),
}
_PING = {"meta": {"slurm": {"version": {"major": "26", "minor": "05"}}}}


class _Answering(Transport):
    """Whatever is asked gets the same answer."""

    def __init__(self) -> None:
        self.status, self.body = 200, b""

    @override
    async def exchange(self, request: Request) -> Reply:
        if request.operation == "slurm_get_ping":
            return Reply(status=200, body=json.dumps(_PING).encode())
        return Reply(status=self.status, body=self.body)

    @override
    def avoid(self, server: int) -> None:
        """There is no other."""


@pytest.fixture(scope="module")
def answering() -> _Answering:
    return _Answering()


@pytest.fixture(scope="module")
def client(answering: _Answering) -> SlurmClient:
    return SlurmClient(
        answering,
        token=TokenFile("nowhere"),
        connections=1,
        on_call=lambda _operation, _s, _outcome: None,
    )


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


_STATUSES = (200, 200, 200, 200, 200, 404, 422, 500, 511, 304)
_PIECES_OF_ANSWERS = ('{"jobs":', '"errors":', "[", "{", "}", "]", ",", '"7"')


@fuzzed
@given(batches(12))
def test_rest_answers(
    answering: _Answering,
    client: SlurmClient,
    loop: asyncio.AbstractEventLoop,
    batch: list[bytes],
) -> None:
    """Two bytes are question and status, the others what the body is made of."""
    for data in batch:
        question, status, rest = data[:1], data[1:2], data[2:]
        good, ask = _ANSWERS[sorted(_ANSWERS)[sum(question) % len(_ANSWERS)]]
        answering.status = _STATUSES[sum(status) % len(_STATUSES)]
        text = document(good, rest, _PIECES_OF_ANSWERS).encode()
        answering.body = text + rest if sum(status) % 2 else text
        with contextlib.suppress(SlurmError):
            loop.run_until_complete(ask(client))
