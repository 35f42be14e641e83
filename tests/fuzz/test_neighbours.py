"""Other bridges on the same Slurm: with nearly our cluster's id, and with records of another release."""

import json
from typing import Any

import pytest

from bridge.domain.model import identities
from bridge.slurm.discovery import Discovery
from slurmruntime.values.ids import ClusterId, JobId
from tests.slurm.made_up import Server
from tests.slurm.placeholders import CLUSTER, identity

OURS = JobId(1)
ALIKE = (
    CLUSTER.upper(),
    CLUSTER[:-1],
    f"{CLUSTER}2",
    f"{CLUSTER} ",
    f" {CLUSTER}",
    f"{CLUSTER}\n",
    f"{CLUSTER}\0",
    f"{CLUSTER}.",
    CLUSTER.replace("-", "_"),
    CLUSTER.replace("-", "\u2010"),
    CLUSTER.replace("c", "\u0441"),
    CLUSTER.replace("l", "\u200bl"),
    CLUSTER.replace("5", "\uff15"),
    "",
    "*",
)
"""Which differ in case, length, blanks, or letters that look the same or are the same by some form of Unicode."""


def job(number: JobId, record: object) -> bytes:
    return json.dumps(
        {
            "job_id": number,
            "job_state": ["RUNNING"],
            "step_id": {"sluid": f"s{number}"},
            "flags": ["EXTERNAL_JOB"],
            "admin_comment": json.dumps(record),
            "nodes": "node-1",
            "priority": {"set": True, "infinite": False, "number": 1},
        }
    ).encode()


def record(cluster: str, **changes: object) -> dict[str, Any]:
    """Our own workload's record, as another cluster would write it."""
    own = identities.encode(identity("ours", cluster=ClusterId(cluster)))
    return {**json.loads(own), **changes}


def reading(*records: object) -> tuple[Discovery, dict[JobId, str]]:
    """What reads these jobs, of which the first is ours; and why it could not read some."""
    unreadable: dict[JobId, str] = {}
    numbered = {JobId(number): one for number, one in enumerate((record(CLUSTER), *records), 1)}
    server = Server({number: job(number, one) for number, one in numbered.items()})
    discovery = Discovery(
        server.client, CLUSTER, clock=lambda: 0.0, on_unreadable=unreadable.__setitem__
    )
    return discovery, unreadable


@pytest.mark.attack(
    "run a second bridge with nearly our cluster's id, whose records name our workloads and pods",
    "ids are compared as they are, letter by letter",
)
async def test_a_cluster_whose_id_looks_like_ours_is_another() -> None:
    discovery, unreadable = reading(*(record(alike) for alike in ALIKE))
    found = await discovery.refresh()

    assert {OURS} == found.jobs.keys()
    assert {} == unreadable
    assert found.is_whole
    (ours,) = found.jobs.values()
    assert {ours.identity.key: (ours,)} == dict(found.by_key)


@pytest.mark.attack(
    "run a newer release beside ours, or one whose records are damaged, so that our own readings count as unsure and nothing is ended any more",
    "a record that names another cluster is that cluster's concern, whatever else it says",
)
async def test_records_of_another_clusters_release_leave_our_readings_whole() -> None:
    mark = next(iter(record(CLUSTER)))
    changes: list[dict[str, object]] = [
        {mark: 2},
        {mark: "two"},
        {mark: None},
        {"pods": "all"},
        {"pods": [1, 2]},
        {"frozen": {"rule": 7}},
        {"limit": ["a", "b"]},
        {"uid": 7},
        {"failed": "everything"},
    ]
    discovery, unreadable = reading(*(record("another", **change) for change in changes))
    found = await discovery.refresh()

    assert {OURS} == found.jobs.keys()
    assert {} == unreadable
    assert found.is_whole
    assert not found.unsure


def test_a_record_of_our_own_cluster_that_cannot_be_read_is_no_strangers() -> None:
    """The opposite would let an orphan of ours be."""
    mark = next(iter(record(CLUSTER)))
    with pytest.raises(identities.UnreadableIdentityError) as unreadable:
        identities.decode(json.dumps(record(CLUSTER, **{mark: 2})))
    assert CLUSTER == unreadable.value.cluster
