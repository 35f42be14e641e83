"""Answers that are somebody else's: a proxy's own page, and a record of another job. Nobody's pod or job is gone for them."""

import asyncio
import contextlib
import json
import struct
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridge.domain.model.batch import BatchJob, BatchMark
from bridge.domain.model.jobs import JobPhase
from bridge.kube import decode
from bridge.slurm import jobs
from bridge.slurm.complete import (
    LONGEST_REPLY,
    RESPONSE_SLURM_RC,
    ControllerHost,
    ControllerHosts,
)
from slurmclient.errors import LostReply, Malformed, SlurmError, TargetNotFound
from slurmjobs.objects import slurmjob
from slurmjobs.reconcile.actuator import JobActuator
from slurmruntime.kube import errors
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.leases import KubeLeases
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import ClusterId, JobId, WorkloadKey
from tests.attacks import attack
from tests.fuzz.between import PING, Pieces, between, kubeconfig, whole
from tests.slurm.made_up import Server

PAGES = (
    b"<html>404 Not Found</html>",
    b"default backend - 404",
    b"404 page not found\n",
    b"",
    b"{}",
)
"""Of nginx, of Kubernetes' ingress controllers, of Go's servers, and of no server in particular."""
GONE = json.dumps({"kind": "Status", "reason": "NotFound", "code": 404}).encode()


def not_found(page: bytes) -> bytes:
    return whole(page, status=b"404 Not Found").replace(b"application/json", b"text/plain", 1)


@asynccontextmanager
async def api_server(page: bytes) -> AsyncIterator[KubeClient]:
    async with between(lambda _: [not_found(page)]) as peer:
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump(kubeconfig(f"http://localhost:{peer.port}"), file)
            file.flush()
            async with KubeClient.open(file.name, user_agent="test") as kube:
                yield kube


async def ask_for_pod(page: bytes) -> None:
    async with api_server(page) as kube:
        await decode.get_pod(kube, "team-a", "train")


async def ask_for_lease(page: bytes) -> None:
    async with api_server(page) as kube:
        if await KubeLeases(kube, "slurm-bridge").get("controllers") is None:
            raise errors.NotFound("GET", "leases")


async def ask_for_slurm_job(page: bytes) -> None:
    """Look for the SlurmJob of a job, which is cancelled if there is none."""
    mark = BatchMark(
        cluster=ClusterId("c"), namespace="team-a", name="train", key=WorkloadKey("1"), attempt=1
    )
    slurm = Server({}, others={"/job/7": b'{"jobs":[{"job_id":7,"job_state":["RUNNING"]}]}'})
    unused: dict[str, Any] = dict.fromkeys(
        ("objects", "batch_jobs", "submitter", "events", "metrics")
    )
    async with api_server(page) as kube:
        actuator = JobActuator(kube=kube, slurm=slurm.client, cluster=mark.cluster, **unused)
        job = BatchJob(id=JobId(7), sluid=None, phase=JobPhase.RUNNING, mark=mark)
        try:
            await actuator.cancel_orphan(job, slurmjob.OURS, mark.key)
        except errors.NotFound as error:
            assert [] == slurm.asked
            raise errors.Unavailable("GET", error.path) from error
    raise errors.NotFound("GET", "slurmjobs")


async def ask_slurmrestd(page: bytes) -> None:
    def answer(head: bytes) -> Pieces:
        ping = whole(json.dumps(PING).encode())
        return [ping if b"/ping" in head else not_found(page)]

    async with between(answer) as peer:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("token")
            file.flush()
            url = f"http://localhost:{peer.port}"
            async with SlurmClient.open(url, token_file=file.name) as slurm:
                await jobs.job(slurm, JobId(7))


@pytest.mark.parametrize(
    "ask",
    [
        attack(
            "pod",
            "answer 404 for the API server with a page of a proxy's own, so that pods count as gone and their jobs are cancelled",
            "of a core object only a Status says so",
            ask_for_pod,
        ),
        attack(
            "lease",
            "answer 404 for the API server with a page of a proxy's own, so that no program seems to lead",
            "only a Status says that a lease is gone",
            ask_for_lease,
        ),
        attack(
            "SlurmJob",
            "answer 404 for the API server with a page of a proxy's own, so that SlurmJobs count as gone and their jobs are cancelled",
            "only a Status says that a SlurmJob is gone",
            ask_for_slurm_job,
        ),
    ],
)
async def test_a_proxys_page_makes_nothing_go(ask: Callable[[bytes], Awaitable[None]]) -> None:
    for page in PAGES:
        with pytest.raises(errors.Unavailable):
            await ask(page)
    with pytest.raises(errors.NotFound):
        await ask(GONE)


@pytest.mark.attack(
    "answer 404 for slurmrestd with a page of a proxy's own, so that jobs count as gone and their pods are evicted",
    "only slurmrestd's own JSON says so",
)
async def test_a_proxys_page_makes_no_job_go() -> None:
    for page in PAGES:
        with pytest.raises(SlurmError) as raised:
            await ask_slurmrestd(page)
        assert not isinstance(raised.value, TargetNotFound)


@pytest.mark.parametrize(
    "others",
    [
        attack(
            "another",
            "answer the question about a job with the record of another one, as a cache by a wrong key does",
            "the record must have the id that was asked about",
            (2000,),
        ),
        attack(
            "none",
            "answer the question about a job with an empty list, so that it counts as gone",
            "only 404 says that a job is gone",
            (),
        ),
    ],
)
async def test_another_jobs_record_says_nothing_about_a_job(others: tuple[int, ...]) -> None:
    records = ",".join(f'{{"job_id":{one},"job_state":["COMPLETED"]}}' for one in others)
    server = Server({}, others={"/job/7": f'{{"jobs":[{records}]}}'.encode()})
    with pytest.raises(Malformed, match="does not contain job 7"):
        await jobs.job(server.client, JobId(7))


LENGTH = struct.Struct("!I")


def reply(kind: int, code: int) -> bytes:
    """A message of slurmctld: 26.05's protocol, no flags, one number in its body."""
    content = struct.pack("!HHHIi", 0x2B00, 0, kind, 4, code)
    return LENGTH.pack(len(content)) + content


def slow() -> Pieces:
    yield LENGTH.pack(LONGEST_REPLY)
    while True:
        yield b"x"
        yield 0.05


@asynccontextmanager
async def slurmctld(pieces: Callable[[], Pieces]) -> AsyncIterator[ControllerHosts]:
    """One that answers so, as the product asks it."""
    answering: set[asyncio.Task[Any] | None] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.add(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await reader.read(7)
            for piece in pieces():
                if isinstance(piece, bytes):
                    writer.write(piece)
                    await writer.drain()
                else:
                    await asyncio.sleep(piece)
            writer.close()
            await writer.wait_closed()
        writer.transport.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, asyncio.timeout(5):
        yield ControllerHosts(ControllerHost(host="127.0.0.1", port=port, timeout_s=1))
        for task in filter(None, answering):
            task.cancel()
        await asyncio.gather(*filter(None, answering))


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        attack(
            "4 GiB",
            "answer for slurmctld with a message that announces 4 GiB",
            "64 KiB",
            lambda: [LENGTH.pack(2**32 - 1), b"x" * 2**20],
            Malformed,
        ),
        attack(
            "drip",
            "answer for slurmctld one byte at a time, so that a pod's end is never reported",
            "a whole answer has a deadline; then the question is asked again",
            slow,
            LostReply,
        ),
        attack(
            "another message",
            "answer for slurmctld with a success that stands in a message of another kind, so that a job counts as ended",
            "only a return code of Slurm's is one",
            lambda: [reply(RESPONSE_SLURM_RC + 1, 0)],
            Malformed,
        ),
    ],
)
async def test_what_slurmctld_would_not_answer_ends_no_job(
    pieces: Callable[[], Pieces], kind: type[SlurmError]
) -> None:
    async with slurmctld(pieces) as hosts:
        with pytest.raises(kind):
            await hosts.ask(b"request")


async def test_what_slurmctld_would_answer_is_taken() -> None:
    """The test above would pass with a reader that takes nothing."""
    async with slurmctld(lambda: [reply(RESPONSE_SLURM_RC, 0)]) as hosts:
        assert 0 == await hosts.ask(b"request")
