"""Answers that are somebody else's: a proxy's own page, and a record of another job. Nobody's pod or job is gone for them."""

import json
import tempfile

import pytest

from bridge.kube import decode
from bridge.slurm import jobs
from slurmclient.errors import Malformed, SlurmError, TargetNotFound
from slurmruntime.kube import errors
from slurmruntime.kube.client import KubeClient
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId
from tests.attacks import attack
from tests.fuzz.test_between import PING, Pieces, between, kubeconfig, whole
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


async def ask_api_server(page: bytes) -> None:
    async with between(lambda _: [not_found(page)]) as peer:
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump(kubeconfig(f"http://localhost:{peer.port}"), file)
            file.flush()
            async with KubeClient.open(file.name, user_agent="test") as kube:
                await decode.get_pod(kube, "team-a", "train")


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


@pytest.mark.attack(
    "answer 404 for the API server with a page of a proxy's own, so that pods count as gone and their jobs are cancelled",
    "of a core object only a Status says so",
)
async def test_a_proxys_page_makes_no_pod_go() -> None:
    for page in PAGES:
        with pytest.raises(errors.Unavailable):
            await ask_api_server(page)
    with pytest.raises(errors.NotFound):
        await ask_api_server(GONE)


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
            "nobody",
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
