"""Placeholders against the real slurmrestd, its odd answers included (each is named by what Slurm does)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bridge.domain.lifecycle.rules import time_limits
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.slurm import jobs, queue
from bridge.slurm.decode import ForeignJob
from bridge.slurm.jobs import Ending
from sandbox.client import Sandbox
from slurmclient.errors import Declined, TargetNotFound
from slurmclient.watching import listing
from slurmclient.wire import reading
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, Sluid, SlurmNode
from tests.faults import Proxy
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import USER, identity, in_phase, spec

NEVER_WAS = JobId(999_999)
NEVER_WAS_EITHER = Sluid("s0000000000001")


async def test_a_placeholder_runs_as_its_user_with_its_identity(
    client: SlurmClient, submit: Submit
) -> None:
    whose = identity()
    job_id = await submit(spec(whose, cpus_per_task=2, required_nodes=(SlurmNode("node-1"),)))

    job = await in_phase(client, job_id, JobPhase.RUNNING)

    assert (whose, ("node-1",), "") == (job.identity, job.nodes, job.reason)
    assert (60, False, None) == (job.time_limit_min, job.held, job.expected_start)
    assert job.submitted_at is not None
    assert job.started_at is not None
    assert job.ends_at is not None
    assert 3600 == (job.ends_at - job.started_at).total_seconds()


async def test_user_and_group_are_the_specs_and_not_roots(
    client: SlurmClient, submit: Submit, slurm: Sandbox
) -> None:
    job_id = await submit(spec(hold=True))

    shown = slurm.run("scontrol", "show", "job", str(job_id))
    assert f"UserId={USER}(1) GroupId={USER}(1)" in shown


async def test_everything_a_spec_can_ask_for_is_what_slurm_notes(
    client: SlurmClient, submit: Submit, slurm: Sandbox
) -> None:
    before = await submit(spec(hold=True))
    job_id = await submit(
        spec(
            name="all-of-it",
            partition="slurm-bridge",
            cpus_per_task=3,
            memory_mib_per_node=500,
            gres_per_node="gres/gpu:2",
            constraints="slurm-bridge",
            excluded_nodes=(SlurmNode("node-0"),),
            dependency=f"afterok:{before}",
            nice=5,
            priority=77,
            hold=False,
            switches="1@4",
            comment="sweep 7/ü",
            extra={"a": "b"},
            exclusive=True,
        )
    )

    shown = slurm.run("scontrol", "show", "job", str(job_id))
    for expected in (
        "JobName=all-of-it",
        "Priority=77 Nice=5",
        "Partition=slurm-bridge",
        "ExcNodeList=node-0",
        "mem=500M",
        "gres/gpu:2",
        "Features=slurm-bridge",
        f"Dependency=afterok:{before}(unfulfilled)",
        "OverSubscribe=NO",
        "Switches=1@00:04:00",
        "Comment=sweep 7/ü",
        'Extra={"a": "b"}',
        "CPUs/Task=3",
        "WorkDir=/",
    ):
        assert expected in shown


async def test_who_names_a_node_is_seen_in_the_list_of_jobs(
    client: SlurmClient, submit: Submit
) -> None:
    """Whoever deletes a node looks first."""
    a, b, c = (SlurmNode(f"node-{number}") for number in range(3))
    job_id = await submit(spec(hold=True, required_nodes=(a,), excluded_nodes=(b, c)))

    named, unreadable = await queue.jobs_naming(client, (a, c, SlurmNode("node-7")))

    assert ({a: job_id, c: job_id}, "") == (named, unreadable)
    await jobs.cancel(client, job_id)
    assert ({}, "") == await queue.jobs_naming(client, (a, c))


async def test_one_of_several_required_nodes_is_taken(client: SlurmClient, submit: Submit) -> None:
    nodes = (SlurmNode("node-2"), SlurmNode("node-3"))
    job = await in_phase(client, await submit(spec(required_nodes=nodes)), JobPhase.RUNNING)

    assert 1 == len(job.nodes)
    assert set(job.nodes) < set(nodes)


async def test_a_held_job_is_held_and_says_why(client: SlurmClient, submit: Submit) -> None:
    job = await in_phase(client, await submit(spec(hold=True)), JobPhase.WAITING)

    assert (True, "JobHeldUser") == (job.held, job.reason)
    assert (None, ()) == (job.started_at, job.nodes)


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        pytest.param({"partition": "nope"}, 2000, id="unknown partition"),
        pytest.param({"memory_mib_per_node": 10**7}, 2014, id="more memory than any node has"),
        pytest.param({"gres_per_node": "gres/gpu:99"}, 2014, id="more GPUs than any node has"),
        pytest.param({"gres_per_node": "gres/quantum:1"}, 2072, id="unknown GRES"),
        pytest.param({"constraints": "nope"}, 2029, id="unknown feature"),
        pytest.param({"licenses": "nope:1"}, 2048, id="unknown licence"),
        pytest.param({"reservation": "nope"}, 2053, id="unknown reservation"),
        pytest.param({"required_nodes": ("nope",)}, 2018, id="unknown node"),
        pytest.param({"dependency": "afterok:999999"}, 2038, id="unknown job to depend on"),
        pytest.param({"user": "nobody-at-all"}, 2166, id="unknown user"),
        pytest.param({"group": "nobody-at-all"}, 2164, id="unknown group"),
        pytest.param({"comment": "x" * 1025}, 2012, id="text too long"),
    ],
)
async def test_a_refused_submit_has_slurms_number_and_words(
    client: SlurmClient, changes: dict[str, Any], number: int
) -> None:
    with pytest.raises(Declined) as error:
        await jobs.submit(client, spec(**changes))

    assert (number, None) == (error.value.error_number, error.value.job_id)
    assert error.value.words


async def test_more_cpus_than_any_node_has_are_refused_at_once(client: SlurmClient) -> None:
    with pytest.raises(Declined) as error:
        await jobs.submit(client, spec(cpus_per_task=1000))

    assert 2005 == error.value.error_number
    assert "processors" in error.value.words


async def test_an_id_with_another_sluid_is_another_job(client: SlurmClient, submit: Submit) -> None:
    job = await jobs.job(client, await submit(spec(hold=True)))
    assert job.sluid is not None

    assert job == await jobs.job(client, job.id, sluid=job.sluid)
    with pytest.raises(TargetNotFound) as error:
        await jobs.job(client, job.id, sluid=NEVER_WAS_EITHER)
    assert f"job {job.id} is another job by now: {NEVER_WAS_EITHER} is gone" == error.value.words
    assert Ending.NO_SUCH_JOB is await jobs.cancel(client, job.id, sluid=NEVER_WAS_EITHER)
    assert job == await jobs.job(client, job.id), "another job that has its id was left alone"


async def test_an_unknown_job_is_not_found(client: SlurmClient) -> None:
    with pytest.raises(TargetNotFound) as error:
        await jobs.job(client, NEVER_WAS, sluid=NEVER_WAS_EITHER)

    assert (404, 2017) == (error.value.status, error.value.error_number)


async def test_everybody_elses_jobs_are_strangers(client: SlurmClient, slurm: Sandbox) -> None:
    printed = slurm.run("sbatch", "--external", "--hold", "--parsable", "-t", "5", "--mem=10")
    job_id = JobId(int(printed.split(";")[0]))

    job = await jobs.job(client, job_id)

    assert isinstance(job, ForeignJob)
    assert (job_id, "") == (job.id, job.unreadable)
    await jobs.cancel(client, job_id)


async def test_cancelling_ends_a_running_job_at_once(client: SlurmClient, submit: Submit) -> None:
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    assert running.sluid

    assert Ending.ENDED is await jobs.cancel(client, running.id, sluid=running.sluid)
    job = await in_phase(client, running.id, JobPhase.ENDED)
    assert (JobEnd.CANCELLED, 0, 0) == (job.end, job.exit_code, job.signal)


async def test_cancelling_answers_200_for_a_job_that_has_ended_already(
    client: SlurmClient, submit: Submit
) -> None:
    job_id = await submit(spec(hold=True))
    await jobs.cancel(client, job_id)

    assert Ending.ALREADY_ENDED is await jobs.cancel(client, job_id)


@pytest.mark.parametrize("sluid", [None, NEVER_WAS_EITHER])
async def test_cancelling_answers_200_for_a_job_that_never_was(
    client: SlurmClient, sluid: Sluid | None
) -> None:
    assert Ending.NO_SUCH_JOB is await jobs.cancel(client, NEVER_WAS, sluid=sluid)


async def test_states_are_read_of_all_jobs_or_of_some(client: SlurmClient, submit: Submit) -> None:
    held = await submit(spec(hold=True))
    running = (await in_phase(client, await submit(spec()), JobPhase.RUNNING)).id

    some = await listing.states(client, {held, running, NEVER_WAS})
    assert {held: {"PENDING"}, running: {"RUNNING"}} == some
    assert some.items() <= (await listing.all_jobs(client)).states.items()
    assert {} == await listing.states(client, [])


async def test_states_of_many_jobs_are_asked_for_in_batches(slurm: Sandbox) -> None:
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file) as client,
    ):
        await listing.states(client, [JobId(900_000 + i) for i in range(2500)])

    assert 3 == proxy.count("GET", "/jobs/state")


async def test_a_heterogeneous_placeholder_is_one_job(client: SlurmClient, submit: Submit) -> None:
    launcher = spec(memory_mib_per_node=100)
    workers = replace(
        launcher,
        tasks=4,
        nodes_min=None,
        nodes_max=None,
        memory_mib_per_node=None,
        memory_mib_per_cpu=100,
        gres_per_task="gres/gpu:1",
    )
    waiting = await submit(replace(launcher, hold=True, also=(replace(workers, hold=True),)))
    assert {waiting: {"PENDING", "1:PENDING"}} == await listing.states(client, [waiting])
    await jobs.cancel(client, waiting)

    job = await in_phase(client, await submit(replace(launcher, also=(workers,))), JobPhase.RUNNING)
    assert (5, [1, 4]) == (job.tasks, [part.tasks for part in job.parts])
    assert [1, 4] == [sum(share.tasks for share in part.shares) for part in job.parts]
    assert job.sluid is not None

    await jobs.set_time_limit(client, job, minutes=90, true_min=60, expected_min=60)
    changed = [
        await client.call("job.get", "slurm_get_job", {"job_id": id_}, answer=wire.Jobs)
        for id_ in job.ids
    ]
    shown = [
        reading.decode(bytes(raw), wire.Job) for answer in changed for raw in answer.jobs or ()
    ]
    assert {90} == {each.time_limit.positive for each in shown}

    await jobs.cancel(client, JobId(job.id + 1))
    broken = await jobs.job(client, job.id, sluid=job.sluid)
    assert isinstance(broken, SlurmJob)
    assert (JobPhase.ENDED, True) == (broken.phase, broken.remains)
    await jobs.cancel(client, job.id, sluid=job.sluid)
    over = await jobs.job(client, job.id, sluid=job.sluid)
    assert isinstance(over, SlurmJob)
    assert (JobPhase.ENDED, False) == (over.phase, over.remains)


def cancelled(identity: Identity) -> Identity:
    return replace(identity, cause="Misfit")


async def test_a_new_identity_replaces_the_old_one_and_lifts_no_limit(
    client: SlurmClient, submit: Submit
) -> None:
    whose = identity()
    job_id = await submit(spec(whose, hold=True))
    renewed = identity(whose.key, cause="Misfit")

    await jobs.amend_identity(client, job_id, whose, lambda _: renewed)

    job = await jobs.job(client, job_id)
    assert isinstance(job, SlurmJob)
    assert renewed == job.identity
    assert "JobHeldUser" == job.reason


async def test_an_identity_is_never_written_onto_another_workloads_job(
    client: SlurmClient, submit: Submit
) -> None:
    theirs = identity()
    job_id = await submit(spec(theirs, hold=True))

    with pytest.raises(TargetNotFound):
        await jobs.amend_identity(client, job_id, identity(), cancelled)
    with pytest.raises(TargetNotFound):
        await jobs.amend_identity(client, job_id, theirs, cancelled, sluid=NEVER_WAS_EITHER)

    job = await jobs.job(client, job_id)
    assert isinstance(job, SlurmJob)
    assert theirs == job.identity


async def limited_and_running(client: SlurmClient, submit: Submit) -> SlurmJob:
    return await in_phase(client, await submit(spec(time_limit_min=10)), JobPhase.RUNNING)


async def test_an_extended_job_ends_later_and_remembers_its_true_limit(
    client: SlurmClient, submit: Submit
) -> None:
    running = await limited_and_running(client, submit)

    await jobs.set_time_limit(client, running, minutes=13, true_min=10, expected_min=10)

    extended = await in_phase(client, running.id, JobPhase.RUNNING)
    before, after = (time_limits.of(job, timedelta(0)) for job in (running, extended))
    assert before is not None
    assert after is not None
    assert (13, 10, True) == (after.shown_min, after.true_min, after.is_extended)
    assert before.runs_out_at == after.runs_out_at == before.slurm_ends_at
    assert timedelta(minutes=3) == after.slurm_ends_at - before.slurm_ends_at

    await jobs.set_time_limit(client, extended, minutes=10, true_min=10, expected_min=13)

    back = await in_phase(client, running.id, JobPhase.RUNNING)
    assert (running.identity, running.ends_at) == (back.identity, back.ends_at)


async def test_a_time_limit_that_an_administrator_changed_stands(
    client: SlurmClient, submit: Submit, slurm: Sandbox
) -> None:
    running = await limited_and_running(client, submit)
    slurm.run("scontrol", "update", f"JobId={running.id}", "TimeLimit=20")

    done = await jobs.set_time_limit(client, running, minutes=13, true_min=10, expected_min=10)

    now = await in_phase(client, running.id, JobPhase.RUNNING)
    assert (False, 20, running.identity) == (done, now.time_limit_min, now.identity)


async def test_the_time_limit_of_another_workloads_job_is_left_alone(
    client: SlurmClient, submit: Submit
) -> None:
    running = await limited_and_running(client, submit)
    mistaken = replace(running, identity=identity())

    with pytest.raises(TargetNotFound):
        await jobs.set_time_limit(client, mistaken, minutes=13, true_min=10, expected_min=10)

    assert running == await jobs.job(client, running.id)


async def test_the_identity_of_a_finished_job_cannot_be_written(
    client: SlurmClient, submit: Submit
) -> None:
    whose = identity()
    job_id = await submit(spec(whose, hold=True))
    await jobs.cancel(client, job_id)

    with pytest.raises(Declined) as error:
        await jobs.amend_identity(client, job_id, whose, cancelled)

    assert 2084 == error.value.error_number
