"""Placeholders against the real slurmrestd, its odd answers included (each is named by what Slurm does)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bridge.domain.ids import JobId, Sluid, SlurmNode
from bridge.domain.lifecycle.rules import time_limits
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.request import restoration
from bridge.slurm import encode, jobs, lenient, wire
from bridge.slurm.client import SlurmClient
from bridge.slurm.decode import Stranger
from bridge.slurm.errors import LostReply, Malformed, NotFound, Rejected
from bridge.slurm.jobs import Ending
from sandbox.client import Sandbox
from tests import faults
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


async def test_what_slurm_granted_is_read_of_a_running_job(
    client: SlurmClient, submit: Submit
) -> None:
    asked = spec(cpus_per_task=2, memory_mib_per_node=200, gres_per_node="gres/gpu:1")
    waiting = await jobs.job(client, await submit(replace(asked, hold=True)))
    running = await in_phase(client, await submit(asked), JobPhase.RUNNING)

    assert isinstance(waiting, SlurmJob)
    assert waiting.grant is None
    assert running.started_at is not None
    assert (
        Grant(
            name="train",
            user=USER,
            group=USER,
            partition="slurm-bridge",
            cpus_per_task=2,
            memory_mib_per_node=200,
            gres_per_node="gres/gpu:1",
            started_s=int(running.started_at.timestamp()),
            time_limit_min=60,
        )
        == running.grant
    )


def restored(lost: SlurmJob) -> PlaceholderSpec:
    """What is asked for in the place of one that has just started."""
    assert lost.grant is not None
    assert lost.started_at is not None
    return restoration.placeholder(
        lost.identity,
        lost.grant,
        lost="lost",
        pods=lost.identity.pods,
        nodes=lost.nodes,
        record=None,
        now=lost.started_at,
    )


async def test_what_a_gang_was_granted_says_where_its_tasks_are_and_brings_them_back_there(
    client: SlurmClient, submit: Submit
) -> None:
    """One CPU on the first node is somebody else's at first: so the tasks are spread in no even way."""
    other = await submit(spec(cpus_per_task=3, required_nodes=(SlurmNode("node-0"),)))
    await in_phase(client, other, JobPhase.RUNNING)
    asked = replace(
        spec(tasks=5, cpus_per_task=2),
        memory_mib_per_node=None,
        memory_mib_per_cpu=100,
        gres_per_task="gres/gpu:1",
        required_nodes=(SlurmNode("node-0"), SlurmNode("node-2")),
        nodes_min=2,
        nodes_max=2,
    )
    first = await submit(asked)
    before = await in_phase(client, first, JobPhase.RUNNING)
    assert before.grant is not None
    assert {"node-0": 2, "node-2": 3} == dict(before.grant.tasks_on)
    for job_id in (first, other):
        await jobs.cancel(client, job_id)

    after = await in_phase(client, await submit(restored(before)), JobPhase.RUNNING)

    assert before.shares == after.shares
    assert before.nodes == after.nodes
    assert after.grant is not None
    assert before.grant.tasks_on == after.grant.tasks_on


async def test_both_sizes_of_a_lost_gang_run_where_they_ran(
    client: SlurmClient, submit: Submit
) -> None:
    launcher = spec(memory_mib_per_node=100, required_nodes=(SlurmNode("node-3"),))
    workers = replace(
        launcher,
        tasks=3,
        nodes_min=2,
        nodes_max=2,
        memory_mib_per_node=None,
        memory_mib_per_cpu=100,
        gres_per_task="gres/gpu:1",
        required_nodes=(SlurmNode("node-2"), SlurmNode("node-0")),
    )
    first = await submit(replace(launcher, also=(workers,)))
    before = await in_phase(client, first, JobPhase.RUNNING)
    assert before.grant is not None
    await jobs.cancel(client, first)

    after = await in_phase(client, await submit(restored(before)), JobPhase.RUNNING)

    assert before.parts == after.parts
    assert after.grant is not None
    assert before.grant.tasks_on == after.grant.tasks_on == {"node-3": 1}
    (was,), (is_,) = before.grant.also, after.grant.also
    assert was.tasks_on == is_.tasks_on == {"node-0": 2, "node-2": 1}


async def test_a_whole_node_was_granted_with_all_its_cpus(
    client: SlurmClient, submit: Submit
) -> None:
    running = await in_phase(client, await submit(spec(exclusive=True)), JobPhase.RUNNING)

    assert running.grant is not None
    assert 8 == running.grant.cpus_per_task


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
    with pytest.raises(Rejected) as error:
        await jobs.submit(client, spec(**changes))

    assert (number, None) == (error.value.error_number, error.value.job_id)
    assert error.value.words


async def test_more_cpus_than_any_node_has_are_refused_at_once(client: SlurmClient) -> None:
    with pytest.raises(Rejected) as error:
        await jobs.submit(client, spec(cpus_per_task=1000))

    assert 2005 == error.value.error_number
    assert "processors" in error.value.words


def bend(monkeypatch: pytest.MonkeyPatch, **fields: object) -> None:
    """Let submissions have fields that our encoder would never write."""
    honest = encode.submission

    def bent(spec_: Any) -> dict[str, object]:
        body: dict[str, Any] = honest(spec_)
        body["job"].update(fields)
        return body

    monkeypatch.setattr(encode, "submission", bent)


async def test_an_unknown_flag_is_http_500_and_the_job_is_submitted_all_the_same(
    client: SlurmClient, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    bend(monkeypatch, flags=["EXTERNAL_JOB", "NOT_A_FLAG"])

    job = await jobs.job(client, await submit(spec(hold=True)))

    assert isinstance(job, SlurmJob)


async def test_a_wrong_type_is_http_200_without_a_job_id(
    client: SlurmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    bend(monkeypatch, minimum_nodes="abc")

    with pytest.raises(Rejected, match="got OpenAPI type=string"):
        await jobs.submit(client, spec())


async def test_an_unknown_field_is_ignored_with_a_warning(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    bend(monkeypatch, not_a_field=1)

    assert await submit(spec(hold=True))


async def test_a_script_is_refused_for_an_external_job(
    client: SlurmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    bend(monkeypatch, script="#!/bin/sh\n")

    with pytest.raises(Rejected) as error:
        await jobs.submit(client, spec())

    assert (500, 2189) == (error.value.status, error.value.error_number)


async def test_a_body_that_is_no_object_is_refused(client: SlurmClient) -> None:
    bodies: list[object] = [[], {}]
    for body in bodies:
        with pytest.raises(Rejected):
            await client.call("job.submit", "POST", "/job/submit", body=body, answer=wire.Answer)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(faults.LOST_REPLY, id="dropped connection"),
        pytest.param(faults.TRUNCATED, id="cut off"),
        pytest.param(faults.slow(30), id="timeout"),
    ],
)
async def test_a_submit_whose_reply_got_lost_says_so_and_is_found_by_identity(
    slurm: Sandbox, client: SlurmClient, fault: faults.Fault
) -> None:
    whose = identity()
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(
            proxy.url, token_file=slurm.token_file, request_timeout_s=1
        ) as behind_proxy,
    ):
        proxy.inject(fault, "POST", "/job/submit")
        with pytest.raises(LostReply):
            await jobs.submit(behind_proxy, spec(whose, hold=True))
    assert 1 == proxy.count("POST", "/job/submit")

    newest = max((await jobs.listing(client)).states)
    job = await jobs.job(client, newest)
    assert isinstance(job, SlurmJob)
    assert whose == job.identity
    await jobs.cancel(client, newest)


async def test_a_submit_answered_with_garbage_may_have_been_accepted(slurm: Sandbox) -> None:
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file) as client,
    ):
        proxy.inject(faults.answers(200, "<html>"), "POST", "/job/submit")
        with pytest.raises(LostReply):
            await jobs.submit(client, spec())


async def test_a_sluid_names_the_same_job_as_its_id(client: SlurmClient, submit: Submit) -> None:
    by_id = await jobs.job(client, await submit(spec(hold=True)))
    assert by_id.sluid is not None

    assert by_id == await jobs.job(client, by_id.sluid)


@pytest.mark.parametrize("ref", [NEVER_WAS, NEVER_WAS_EITHER])
async def test_an_unknown_job_is_not_found(client: SlurmClient, ref: JobId | Sluid) -> None:
    with pytest.raises(NotFound) as error:
        await jobs.job(client, ref)

    assert (404, 2017) == (error.value.status, error.value.error_number)


async def test_a_text_that_is_no_id_is_rejected_and_hits_nobody(client: SlurmClient) -> None:
    for call in (jobs.job, jobs.cancel):
        with pytest.raises(Rejected):
            await call(client, Sluid("nonsense"))


async def test_everybody_elses_jobs_are_strangers(client: SlurmClient, slurm: Sandbox) -> None:
    printed = slurm.run("sbatch", "--external", "--hold", "--parsable", "-t", "5", "--mem=10")
    job_id = JobId(int(printed.split(";")[0]))

    job = await jobs.job(client, job_id)

    assert isinstance(job, Stranger)
    assert (job_id, "") == (job.id, job.unreadable)
    await jobs.cancel(client, job_id)


async def test_cancelling_ends_a_running_job_at_once(client: SlurmClient, submit: Submit) -> None:
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    assert running.sluid

    assert Ending.ENDED is await jobs.cancel(client, running.sluid)
    job = await in_phase(client, running.id, JobPhase.ENDED)
    assert (JobEnd.CANCELLED, 0, 0) == (job.end, job.exit_code, job.signal)


async def test_cancelling_answers_200_for_a_job_that_has_ended_already(
    client: SlurmClient, submit: Submit
) -> None:
    job_id = await submit(spec(hold=True))
    await jobs.cancel(client, job_id)

    assert Ending.ALREADY_ENDED is await jobs.cancel(client, job_id)


@pytest.mark.parametrize("ref", [NEVER_WAS, NEVER_WAS_EITHER])
async def test_cancelling_answers_200_for_a_job_that_never_was(
    client: SlurmClient, ref: JobId | Sluid
) -> None:
    assert Ending.NO_SUCH_JOB is await jobs.cancel(client, ref)


async def test_states_are_read_of_all_jobs_or_of_some(client: SlurmClient, submit: Submit) -> None:
    held = await submit(spec(hold=True))
    running = (await in_phase(client, await submit(spec()), JobPhase.RUNNING)).id

    some = await jobs.states(client, {held, running, NEVER_WAS})
    assert {held: {"PENDING"}, running: {"RUNNING"}} == some
    assert some.items() <= (await jobs.listing(client)).states.items()
    assert {} == await jobs.states(client, [])


async def test_states_of_many_jobs_are_asked_for_in_batches(slurm: Sandbox) -> None:
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file) as client,
    ):
        await jobs.states(client, [JobId(900_000 + i) for i in range(2500)])

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
    assert {waiting: {"PENDING", "1:PENDING"}} == await jobs.states(client, [waiting])
    await jobs.cancel(client, waiting)

    job = await in_phase(client, await submit(replace(launcher, also=(workers,))), JobPhase.RUNNING)
    assert (5, [1, 4]) == (job.tasks, [part.tasks for part in job.parts])
    assert [1, 4] == [sum(share.tasks for share in part.shares) for part in job.parts]
    assert job.sluid is not None

    await jobs.set_time_limit(client, job, minutes=90, true_min=60, expected_min=60)
    changed = [
        await client.call("job.get", "GET", f"/job/{id_}", answer=wire.Jobs) for id_ in job.ids
    ]
    shown = [lenient.one(raw, wire.Job).value for answer in changed for raw in answer.jobs or ()]
    assert {90} == {each.time_limit.positive for each in shown}

    await jobs.cancel(client, JobId(job.id + 1))
    broken = await jobs.job(client, job.sluid)
    assert isinstance(broken, SlurmJob)
    assert (JobPhase.ENDED, True) == (broken.phase, broken.remains)
    await jobs.cancel(client, job.sluid)
    over = await jobs.job(client, job.sluid)
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

    with pytest.raises(NotFound):
        await jobs.amend_identity(client, job_id, identity(), cancelled)
    with pytest.raises(NotFound):
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

    with pytest.raises(NotFound):
        await jobs.set_time_limit(client, mistaken, minutes=13, true_min=10, expected_min=10)

    assert running == await jobs.job(client, running.id)


async def test_the_identity_of_a_finished_job_cannot_be_written(
    client: SlurmClient, submit: Submit
) -> None:
    whose = identity()
    job_id = await submit(spec(whose, hold=True))
    await jobs.cancel(client, job_id)

    with pytest.raises(Rejected) as error:
        await jobs.amend_identity(client, job_id, whose, cancelled)

    assert 2084 == error.value.error_number


@pytest.mark.parametrize("jobs_", ["[]", "null", '[{"job_id":8,"job_state":["RUNNING"]}]'])
async def test_an_answer_without_the_job_is_no_evidence_that_it_is_gone(
    slurm: Sandbox, jobs_: str
) -> None:
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file) as client,
    ):
        proxy.inject(faults.answers(200, f'{{"jobs":{jobs_}}}'), "GET", "/job/7")
        with pytest.raises(Malformed, match="does not contain job 7"):
            await jobs.job(client, JobId(7))


async def test_a_number_of_the_wrong_kind_is_malformed(slurm: Sandbox) -> None:
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file) as client,
    ):
        proxy.inject(faults.answers(200, '{"jobs":[{"job_id":"7"}]}'), "GET", "/job/7")
        with pytest.raises(Malformed, match=r"job\.get: job 7: job_id: Expected `int`"):
            await jobs.job(client, JobId(7))


async def test_a_bomb_instead_of_states_is_malformed(slurm: Sandbox) -> None:
    bomb = "[" * 100_000 + "]" * 100_000
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file) as client,
    ):
        proxy.inject(faults.answers(200, f'{{"jobs":[{{"x":{bomb}}}]}}'), "GET", "/jobs/state/")
        with pytest.raises(Malformed, match=r"job\.states"):
            await jobs.listing(client)
