"""Where very many jobs are unknown, ours are fetched first: of a new leader, and after slurmctld's restart."""

import asyncio
import json

import pytest

from bridge.domain.model import identities
from bridge.slurm.discovery import Discovery
from slurmclient.watching import listing
from slurmclient.watching.unread import Pace
from slurmruntime.values.ids import JobId
from tests.slurm.made_up import Server
from tests.slurm.placeholders import CLUSTER, identity

STRANGERS = [JobId(n) for n in range(1, 301)]
OURS, NEWER = JobId(1000), JobId(1001)
WHOSE = {OURS: identity("ours"), NEWER: identity("newer")}


def job(number: JobId) -> bytes:
    whose = WHOSE.get(number)
    return json.dumps(
        {
            "job_id": number,
            "job_state": ["PENDING"],
            "step_id": {"sluid": f"s{number}"},
            "flags": ["EXTERNAL_JOB"] if whose else [],
            "admin_comment": identities.encode(whose) if whose else "",
            "priority": {"set": True, "infinite": False, "number": 1},
        }
    ).encode()


@pytest.fixture
def server() -> Server:
    return Server({id_: job(id_) for id_ in (*STRANGERS, OURS)})


def fetched(server: Server) -> list[JobId]:
    """The jobs fetched since the last question, in order."""
    found = [JobId(int(path[len("/job/") :])) for path in server.asked if path.startswith("/job/")]
    server.asked.clear()
    return found


def test_a_new_leader_fetches_what_pods_name_before_any_stranger(server: Server) -> None:
    discovery = Discovery(
        server.client,
        CLUSTER,
        clock=lambda: 0.0,
        pace=Pace(burst=200),
        named=lambda: [OURS, JobId(4711)],
    )

    first = asyncio.run(discovery.refresh())

    assert [OURS] == fetched(server)
    assert {OURS} == first.jobs.keys()
    assert (True, False) == (first.is_behind, first.is_whole)
    asyncio.run(discovery.refresh())
    assert 200 == len(fetched(server))
    last = asyncio.run(discovery.refresh())
    assert 100 == len(fetched(server))
    assert (False, True) == (last.is_behind, last.is_whole)


def test_after_a_restart_of_slurmctld_what_was_ours_comes_first(server: Server) -> None:
    """A job that was submitted a moment ago, too, which no pod names yet."""
    discovery = Discovery(server.client, CLUSTER, clock=lambda: 0.0)
    assert asyncio.run(discovery.refresh()).is_whole
    server.jobs = {**server.jobs, NEWER: job(NEWER)}
    discovery.note_submitted(NEWER, WHOSE[NEWER])
    asyncio.run(discovery.refresh())
    fetched(server)

    server.counts_since = 2
    again = asyncio.run(discovery.refresh())

    assert {OURS, NEWER} == set(fetched(server))
    assert ({OURS, NEWER}, False) == (set(again.jobs), again.is_whole)
    assert asyncio.run(discovery.refresh()).is_whole


def test_after_a_crash_of_slurmctld_an_id_that_it_assigns_again_is_read_at_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among so many jobs that they are asked for by their ids: it is lower than the next one was."""
    monkeypatch.setattr(listing, "AT_ONCE", 100)
    again, server.next_id = JobId(999), 1001
    discovery = Discovery(server.client, CLUSTER, clock=lambda: 0.0)
    asyncio.run(discovery.refresh())
    asyncio.run(discovery.refresh())
    fetched(server)

    WHOSE[again] = identity("again")
    server.jobs = {**server.jobs, again: job(again)}
    assert again not in asyncio.run(discovery.refresh()).jobs
    server.counts_since = 2

    assert not asyncio.run(discovery.refresh(complete=True)).is_whole  # what was ours comes first
    last = asyncio.run(discovery.refresh(complete=True))
    assert (True, True) == (again in last.jobs, last.is_whole)
