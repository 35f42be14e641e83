"""Every caller that names a job, and what a release cannot do, against the recorded answers of older releases.

No path of slurmrestd takes a sluid before Slurm 26.05: with one, nothing can be read, changed or cancelled there.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from bridge.domain.model import batch, identities
from bridge.domain.model.batch import BatchMark
from bridge.domain.model.identities import FirstSubmission
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.placeholder import Changes
from bridge.slurm import accounting, jobs, nodes
from bridge.slurm.allocated import cpus, devices, launches
from bridge.slurm.batch_jobs import calls
from bridge.slurm.jobs import Ending
from bridge.slurm.nodes import NodeListing
from slurmcli.takeover import marked_jobs as marked
from slurmclient.errors import Declined, TargetNotFound, TooOld
from slurmruntime.model.nodes import SlurmNodeSpec
from slurmruntime.values.ids import JobId, Sluid, SlurmNode, WorkloadKey
from tests.slurm.older import RELEASES, OlderSlurm
from tests.slurm.placeholders import CLUSTER, identity, spec

WHOSE = replace(
    identity("5b"),
    frozen=FirstSubmission(requester="ann", rule="all", user="kubernetes", account="physics"),
)
MARK = BatchMark(
    cluster=CLUSTER, namespace="physics", name="train", key=WorkloadKey("5b"), attempt=1
)
COMMENTS = {"placeholder": identities.encode(WHOSE), "batch": batch.encode(MARK), "theirs": "{}"}
NODE = SlurmNode("node-1")
ANOTHER = Sluid("s0000000000001")


async def ours(slurm: OlderSlurm) -> SlurmJob:
    found = await jobs.job(slurm.client, slurm.job_id, sluid=slurm.sluid)
    assert isinstance(found, SlurmJob)
    return found


async def resized(slurm: OlderSlurm) -> None:
    await jobs.update_as_user(slurm.client, await ours(slurm), Changes(time_limit_min=7))


async def limited(slurm: OlderSlurm) -> None:
    job = await ours(slurm)
    assert job.time_limit_min is not None
    assert await jobs.set_time_limit(
        slurm.client, job, minutes=9, true_min=9, expected_min=job.time_limit_min
    )


async def cancelled_for(slurm: OlderSlurm) -> None:
    await jobs.cancel_for(slurm.client, await ours(slurm), lambda was: replace(was, cause="unused"))


async def taken_over(slurm: OlderSlurm) -> None:
    comment = COMMENTS["theirs"]
    await marked.take_over(slurm.client, slurm.job_id, comment=comment, identity=WHOSE)


CALLERS: dict[str, tuple[str, Callable[[OlderSlurm], Coroutine[Any, Any, object]]]] = {
    "read": ("placeholder", ours),
    "read in detail": (
        "placeholder",
        lambda s: jobs.job(s.client, s.job_id, sluid=s.sluid, in_detail=True),
    ),
    "read one of an array": (
        "batch",
        lambda s: jobs.marked_job(s.client, s.job_id, alone=s.sluid),
    ),
    "verify": (
        "placeholder",
        lambda s: jobs.verified(s.client, s.job_id, WHOSE.key, sluid=s.sluid),
    ),
    "cancel": ("placeholder", lambda s: jobs.cancel(s.client, s.job_id, sluid=s.sluid)),
    "cancel a filler or an orphan": (
        "placeholder",
        lambda s: jobs.cancel_named(s.client, s.job_id, s.sluid, WHOSE.key),
    ),
    "cancel for a cause": ("placeholder", cancelled_for),
    "amend the identity": (
        "placeholder",
        lambda s: jobs.amend_identity(
            s.client, s.job_id, WHOSE, lambda was: replace(was, cause="x"), sluid=s.sluid
        ),
    ),
    "set a time limit": ("placeholder", limited),
    "set node lists": (
        "placeholder",
        lambda s: jobs.set_node_lists(
            s.client, s.job_id, sluid=s.sluid, required=(NODE,), excluded=()
        ),
    ),
    "resize": ("placeholder", resized),
    "cancel a SlurmJob's job": ("batch", lambda s: calls.cancel(s.client, s.job_id, s.sluid, MARK)),
    "ask slurmdbd about a SlurmJob's job": (
        "batch",
        lambda s: calls.read_record(s.client, s.job_id, MARK, sluid=s.sluid),
    ),
    "ask slurmdbd about a placeholder": (
        "placeholder",
        lambda s: accounting.record(s.client, s.job_id, sluid=s.sluid),
    ),
    "read its CPUs": (
        "placeholder",
        lambda s: cpus.of_job(s.client, s.job_id, NODE, sluid=s.sluid, threads=1),
    ),
    "read its devices": (
        "placeholder",
        lambda s: devices.of_job(s.client, s.job_id, NODE, sluid=s.sluid),
    ),
    "read where it is launched": ("placeholder", lambda s: launches.launch(s.client, s.job_id)),
    "take over a job of another bridge": ("theirs", taken_over),
    "cancel a job of another bridge": (
        "theirs",
        lambda s: marked.cancel(s.client, s.job_id, comment=COMMENTS["theirs"]),
    ),
}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("caller", CALLERS)
def test_every_path_names_a_job_by_its_id(release: str, caller: str) -> None:
    whose, call = CALLERS[caller]
    slurm = OlderSlurm(release, comment=COMMENTS[whose])

    found = asyncio.run(call(slurm))

    assert found is not False
    named = [path for path in slurm.asked if " job/" in path]
    assert named, "it asked about the job"
    assert {f"job/{slurm.job_id}"} == {path.rpartition(" ")[2].rstrip("/") for path in named}


CHANGES: dict[str, Callable[[OlderSlurm, JobId], Coroutine[Any, Any, object]]] = {
    "cancel": lambda s, id_: jobs.cancel(s.client, id_, sluid=ANOTHER),
    "cancel a filler or an orphan": lambda s, id_: jobs.cancel_named(
        s.client, id_, ANOTHER, WHOSE.key
    ),
    "amend the identity": lambda s, id_: jobs.amend_identity(
        s.client, id_, WHOSE, lambda was: replace(was, cause="x"), sluid=ANOTHER
    ),
    "set node lists": lambda s, id_: jobs.set_node_lists(
        s.client, id_, sluid=ANOTHER, required=(NODE,), excluded=()
    ),
    "cancel a SlurmJob's job": lambda s, id_: calls.cancel(s.client, id_, ANOTHER, MARK),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_job_that_has_anothers_id_by_now_is_left_alone(change: str) -> None:
    whose = "batch" if "SlurmJob" in change else "placeholder"
    slurm = OlderSlurm("25.11.7", comment=COMMENTS[whose])

    async def tried() -> object:
        try:
            return await CHANGES[change](slurm, slurm.job_id)
        except TargetNotFound as error:
            return error

    assert isinstance(asyncio.run(tried()), Ending | TargetNotFound | None)
    assert [f"GET slurm job/{slurm.job_id}"] == [
        path for path in slurm.asked if "ping" not in path
    ], "it was compared, and nothing was changed"


def test_a_gang_of_two_sizes_is_refused_with_what_to_do() -> None:
    slurm = OlderSlurm("25.11.7")
    one = spec()

    with pytest.raises(Declined) as refusal:
        asyncio.run(jobs.submit(slurm.client, replace(one, also=(replace(one, tasks=4),))))

    assert 2009 == refusal.value.error_number
    assert re.match(
        "Slurm 25.11.7 accepts no heterogeneous job without a script, .* upgrade Slurm to 26.05",
        refusal.value.words,
    )
    assert "Job script not specified" in refusal.value.words


def test_a_group_by_name_is_refused_with_what_to_do_and_a_gid_is_taken() -> None:
    slurm = OlderSlurm("25.05.8")

    with pytest.raises(Declined) as refusal:
        asyncio.run(jobs.submit(slurm.client, spec(group="physics")))
    taken = asyncio.run(jobs.submit(slurm.client, spec(group="64100")))

    assert re.match(
        "Slurm 25.05.8 accepts a job's group only as a number: write, in quotes, the gid of group 'physics' as"
        " slurm.group, or as the group of the policy's rule",
        refusal.value.words,
    )
    assert slurm.job_id == taken


def test_a_newer_release_takes_a_group_by_name() -> None:
    slurm = OlderSlurm("25.11.7")

    assert slurm.job_id == asyncio.run(jobs.submit(slurm.client, spec(group="physics")))


def test_nodes_cannot_be_created_before_slurm_25_11() -> None:
    slurm = OlderSlurm("25.05.8")
    wanted = SlurmNodeSpec(name=NODE, address="10.0.0.1", cpus=1, memory_mib=1000)

    with pytest.raises(TooOld, match="a newer Slurm is needed"):
        asyncio.run(nodes.create(slurm.client, wanted))


def test_nodes_are_listed_although_their_changes_cannot_be_asked_for() -> None:
    """Where nodes have changed since, and partitions have not, slurmrestd 25.11 answers with an error."""
    slurm = OlderSlurm("25.11.7")

    async def twice() -> list[NodeListing]:
        first = await nodes.refresh(slurm.client, None)
        return [first, await nodes.refresh(slurm.client, first)]

    first, second = asyncio.run(twice())

    assert ["node-0"] == [node.name for node in first.nodes] == [node.name for node in second.nodes]
    assert 3 == slurm.asked.count("GET slurm nodes/")


def test_another_jobs_record_in_slurmdbd_is_told_apart_where_it_has_a_sluid() -> None:
    slurm = OlderSlurm("25.11.7")

    found = asyncio.run(accounting.record(slurm.client, JobId(slurm.job_id), sluid=ANOTHER))

    assert found is not None, "v0.0.44 has none: the id has to do"
