"""What one odd job costs a reading: itself at most. Over the product's own client, with made-up answers."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.model import identities
from bridge.domain.model.jobs import JobPhase
from bridge.slurm import accounting, nodes, queue
from bridge.slurm.discovery import Discovery
from bridge.slurm.snapshot import Snapshot
from slurmclient.errors import Malformed
from slurmclient.watching import listing
from slurmruntime.slurm import wire
from slurmruntime.values.ids import ClusterId, JobId, Sluid
from tests.slurm.made_up import Server
from tests.slurm.placeholders import CLUSTER, identity

OURS, ODD, STRANGER = JobId(7), JobId(8), JobId(9)
WHOSE = {OURS: identity("other"), ODD: identity("odd")}
HOSTLISTS = {"nodes", "required_nodes", "excluded_nodes"}
TEXTS = sorted(
    name
    for name, kind in get_type_hints(wire.Job).items()
    if kind is str and name != "admin_comment"
)
FIELDS = sorted(set(get_type_hints(wire.Job)) - {"job_id"})


def text(value: bytes) -> bytes:
    """Write a string as slurmrestd does: what JSON wants escaped is, bytes above 127 are left as they are."""
    escaped = (
        bytes([byte]) if byte >= 128 else json.dumps(chr(byte))[1:-1].encode() for byte in value
    )
    return b'"' + b"".join(escaped) + b'"'


def job(number: JobId, **changes: bytes) -> bytes:
    """One object of an answer; changes are JSON."""
    whose = WHOSE.get(number)
    plain: dict[str, Any] = {
        "job_id": number,
        "job_state": ["PENDING"],
        "step_id": {"sluid": f"s{number}"},
        "flags": ["EXTERNAL_JOB"] if whose else [],
        "admin_comment": identities.encode(whose) if whose else "",
        "priority": {"set": True, "infinite": False, "number": 1},
    }
    members = {name: json.dumps(value).encode() for name, value in plain.items()} | changes
    return b"{" + b",".join(b'"%s":%s' % (k.encode(), v) for k, v in members.items()) + b"}"


@dataclass
class Reader:
    """A discovery, and what it said."""

    server: Server
    said: list[tuple[JobId, str]] = field(default_factory=list)
    settled: list[JobId] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._discovery = Discovery(
            self.server.client,
            CLUSTER,
            clock=lambda: 0.0,
            on_unreadable=lambda id_, why: self.said.append((id_, why)),
            on_settled=self.settled.append,
        )

    def read(self) -> Snapshot:
        return asyncio.run(self._discovery.refresh())


def others_are_there(snapshot: Snapshot) -> None:
    found = snapshot.jobs[OURS]
    assert (WHOSE[OURS], JobPhase.WAITING, "s7") == (found.identity, found.phase, found.sluid)
    assert STRANGER not in snapshot.jobs


@given(name=st.sampled_from(TEXTS), value=st.binary(max_size=40), is_ours=st.booleans())
def test_any_bytes_in_a_text_of_one_job_hide_neither_the_others_nor_whose_it_is(
    name: str, value: bytes, is_ours: bool
) -> None:
    odd = ODD if is_ours else STRANGER
    readable = {id_: job(id_) for id_ in (OURS, ODD, STRANGER)}
    reader = Reader(Server({**readable, odd: job(odd, **{name: text(value)})}))

    snapshot = reader.read()

    others_are_there(snapshot)
    assert snapshot.is_whole
    is_set_aside = odd in snapshot.unreadable
    if not is_ours:
        is_invalid = value.decode(errors="ignore").encode() != value
        assert [STRANGER] * is_invalid == [id_ for id_, _ in reader.said]
    elif is_set_aside:  # a list of nodes that is none
        assert name in HOSTLISTS
        assert snapshot.unsure == {WHOSE[ODD].key}
    else:
        found = snapshot.jobs[ODD]
        assert (JobId(8), Sluid("s8")) == (found.id, found.sluid)
        assert (frozenset({"PENDING"}), WHOSE[ODD]) == (found.states, found.identity)


@given(
    name=st.sampled_from(FIELDS),
    value=st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    ),
)
def test_any_value_in_a_field_of_one_job_costs_that_job_at_most(name: str, value: object) -> None:
    odd = job(ODD, **{name: json.dumps(value).encode()})
    reader = Reader(Server({OURS: job(OURS), ODD: odd, STRANGER: job(STRANGER)}))

    snapshot = reader.read()

    others_are_there(snapshot)
    if ODD in snapshot.unreadable and name not in {"flags", "admin_comment"}:
        assert snapshot.unsure == {WHOSE[ODD].key}
        assert [ODD] == [id_ for id_, _ in reader.said]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"account": b"[1]"}, id="a text only the grant takes"),
        pytest.param({"name": b'"a\xff"', "wckey": b'"\xfe"'}, id="bytes that are no UTF-8"),
    ],
)
def test_one_of_ours_is_ours_although_something_else_about_it_cannot_be_decoded(
    changes: dict[str, bytes],
) -> None:
    reader = Reader(Server({ODD: job(ODD, **changes)}))

    snapshot = reader.read()

    assert WHOSE[ODD] == snapshot.jobs[ODD].identity
    assert snapshot.by_key[WHOSE[ODD].key]
    assert [] == reader.said


def test_a_job_of_which_nothing_can_be_read_is_looked_at_again_and_meanwhile_absence_says_nothing() -> (
    None
):
    server = Server({OURS: job(OURS), ODD: b"7"})
    reader = Reader(server)

    for number in (1, 2):
        snapshot = reader.read()
        others_are_there(snapshot)
        assert not snapshot.is_whole
        assert number == server.asked.count(f"/job/{ODD}")
    assert [ODD, ODD] == [id_ for id_, _ in reader.said]

    server.jobs = {OURS: job(OURS), ODD: job(ODD)}
    snapshot = reader.read()
    assert (True, [ODD]) == (snapshot.is_whole, reader.settled)
    assert WHOSE[ODD] == snapshot.jobs[ODD].identity


def test_one_of_ours_that_cannot_be_read_any_more_keeps_its_workload() -> None:
    server = Server({ODD: job(ODD)})
    reader = Reader(server)
    reader.read()

    server.jobs = {ODD: b"7", OURS: job(OURS)}
    reader._discovery.note_changed(ODD)  # as whoever changed it does
    snapshot = reader.read()

    assert (frozenset({WHOSE[ODD].key}), True) == (snapshot.unsure, snapshot.is_whole)
    assert ODD not in snapshot.jobs


def test_an_identity_of_a_newer_version_still_says_whose_it_is() -> None:
    newer = {"slurm-bridge": 99, "cluster": CLUSTER, "uid": "theirs"}
    comment = json.dumps(json.dumps(newer)).encode()
    reader = Reader(Server({ODD: job(ODD, admin_comment=comment)}))

    assert {"theirs"} == reader.read().unsure


def test_an_odd_job_of_another_cluster_is_a_stranger() -> None:
    abroad = identities.encode(identity("odd", cluster=ClusterId("another")))
    odd = job(ODD, admin_comment=json.dumps(abroad).encode(), nodes=b'"n[1-"')
    snapshot = Reader(Server({ODD: odd})).read()

    assert ({}, {}, frozenset()) == (snapshot.jobs, snapshot.unreadable, snapshot.unsure)


def test_the_odd_one_is_settled_when_it_is_gone() -> None:
    server = Server({STRANGER: job(STRANGER, name=b'"a\xff"')})
    reader = Reader(server)
    reader.read()
    assert [STRANGER] == [id_ for id_, _ in reader.said]

    server.jobs = {}
    reader.read()

    assert [STRANGER] == reader.settled


def test_people_see_all_jobs_but_the_one_that_makes_no_sense() -> None:
    nonsense = job(ODD, job_state=b'["FROZEN"]')
    server = Server({OURS: job(OURS, name=b'"a\xff"'), ODD: nonsense, STRANGER: job(STRANGER)})
    said: list[str] = []

    listed = asyncio.run(queue.listing(server.client, on_unreadable=said.append))

    assert [(OURS, "a\ufffd"), (STRANGER, "")] == [(each.id, each.name) for each in listed]
    (why,) = said
    assert "job 8" in why


def test_a_node_with_an_odd_reason_and_a_record_with_an_odd_user_are_read() -> None:
    node = b'{"nodes":[{"name":"n1","reason":"a\xff","state":["IDLE","DRAIN"]},{"name":"n2"}]}'
    record = b'{"jobs":[{"name":"\xff","kill_request_user":"\xff","state":{"current":["FAILED"]},"time":{"end":5}}]}'
    server = Server({}, others={"/nodes/": node, "/job/7": record})

    async def both() -> tuple[Sequence[str], object]:
        listed = await nodes.listing(server.client)
        found = await accounting.record(server.client, JobId(7), sluid=Sluid("s7"))
        assert found is not None
        return [one.reason for one in listed], found.states

    assert (["a\ufffd", ""], {"FAILED"}) == asyncio.run(both())


def test_an_answer_that_is_no_json_stays_an_error() -> None:
    server = Server({}, others={"/jobs/state/": b"<html>\xff"})
    with pytest.raises(Malformed):
        asyncio.run(listing.all_jobs(server.client))


def test_the_state_list_may_have_odd_bytes_where_nobody_looks() -> None:
    odd = b'{"jobs":[{"job_id":"7","state":["PENDING"],"note":"\xff"}],"note":"\xff"}'
    server = Server({}, others={"/jobs/state/": odd})

    listed = asyncio.run(listing.all_jobs(server.client))

    assert {OURS: {"PENDING"}} == listed.states
