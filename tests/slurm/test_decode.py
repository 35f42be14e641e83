"""slurmrestd's JSON → domain values."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bridge.domain.model import identities
from bridge.domain.model.allocation import TaskGrant
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.slurm import decode
from bridge.slurm.decode import ForeignJob
from slurmclient.wire import reading
from slurmclient.wire.reading import DecodeResult
from slurmruntime.slurm import wire
from slurmruntime.values.ids import JobId, Sluid
from tests.slurm.placeholders import CLUSTER, identity

WHOSE = identity("3e9f")


def number(value: float, *, given: bool = True, infinite: bool = False) -> dict[str, object]:
    return {"set": given, "infinite": infinite, "number": value}


def told(fields: dict[str, object]) -> DecodeResult[wire.Job]:
    found = reading.lenient(json.dumps(fields).encode(), wire.Job, is_null_odd=True)
    assert isinstance(found, DecodeResult)
    return found


def read(**changes: Any) -> SlurmJob | ForeignJob:
    plain: dict[str, object] = {
        "job_id": 7,
        "job_state": ["RUNNING"],
        "step_id": {"sluid": "sAVSM7YPWFKK00", "job_id": number(7), "step_id": "entire"},
        "flags": ["EXACT_TASK_COUNT_REQUESTED", "EXTERNAL_JOB"],
        "admin_comment": identities.encode(WHOSE),
        "state_reason": "None",
        "nodes": "gpu[08-10],login",
        "priority": number(1),
        "submit_time": number(1_795_253_000),
        "start_time": number(1_795_253_223),
        "end_time": number(1_795_256_823),
        "time_limit": number(60),
    }
    return decode.job(told({**plain, **changes}))


def placeholder_of(**changes: Any) -> SlurmJob:
    job = read(**changes)
    assert isinstance(job, SlurmJob)
    return job


def test_a_running_placeholder_has_its_nodes_times_and_identity() -> None:
    job = placeholder_of()

    assert (JobId(7), Sluid("sAVSM7YPWFKK00"), WHOSE) == (job.id, job.sluid, job.identity)
    assert (JobPhase.RUNNING, None, "") == (job.phase, job.end, job.reason)
    assert ("gpu08", "gpu09", "gpu10", "login") == job.nodes
    assert datetime(2026, 11, 21, 9, 27, 3, tzinfo=UTC) == job.started_at
    assert datetime(2026, 11, 21, 10, 27, 3, tzinfo=UTC) == job.ends_at
    assert (60, None) == (job.time_limit_min, job.expected_start)


def test_a_waiting_placeholder_has_a_reason_and_maybe_an_expected_start() -> None:
    job = placeholder_of(job_state=["PENDING"], state_reason="Resources", nodes="")

    assert (JobPhase.WAITING, "Resources", ()) == (job.phase, job.reason, job.nodes)
    assert (None, None) == (job.started_at, job.ends_at)
    assert datetime(2026, 11, 21, 9, 27, 3, tzinfo=UTC) == job.expected_start


def test_zero_as_a_time_means_none() -> None:
    job = placeholder_of(job_state=["PENDING"], start_time=number(0), end_time=number(0))

    assert job.expected_start is None


@pytest.mark.parametrize(
    ("state", "priority", "held"),
    [("PENDING", 0, True), ("PENDING", 1, False), ("CANCELLED", 0, False)],
)
def test_priority_zero_is_held_while_it_waits(state: str, priority: int, held: bool) -> None:
    assert held is placeholder_of(job_state=[state], priority=number(priority)).held


def test_an_unlimited_job_has_no_time_limit_and_no_end() -> None:
    job = placeholder_of(time_limit=number(0, given=False, infinite=True))

    assert (None, None) == (job.time_limit_min, job.ends_at)


def test_an_unset_number_is_not_its_zero() -> None:
    job = placeholder_of(job_state=["PENDING"], priority=number(0, given=False))

    assert not job.held


def test_a_failed_job_keeps_exit_code_and_signal() -> None:
    code = {"return_code": number(3), "signal": {"id": number(9), "name": "KILL"}}
    job = placeholder_of(job_state=["FAILED"], exit_code=code)

    assert (JobPhase.ENDED, JobEnd.FAILED, 3, 9) == (job.phase, job.end, job.exit_code, job.signal)


def test_data_parser_43_knows_no_sluid() -> None:
    assert placeholder_of(step_id={}).sluid is None


@pytest.mark.parametrize(
    ("states", "phase"),
    [
        ("PENDING", JobPhase.WAITING),
        ("PENDING REQUEUED COMPLETING", JobPhase.WAITING),
        ("RUNNING CONFIGURING", JobPhase.WAITING),
        ("RUNNING", JobPhase.RUNNING),
        ("RUNNING SIGNALING", JobPhase.RUNNING),
        ("RUNNING STOPPED", JobPhase.PAUSED),
        ("SUSPENDED", JobPhase.PAUSED),
        ("CANCELLED COMPLETING", JobPhase.ENDED),
        *((end.value, JobPhase.ENDED) for end in JobEnd),
    ],
)
def test_base_state_and_flags_make_the_phase(states: str, phase: JobPhase) -> None:
    assert phase is decode.phase_of(frozenset(states.split()))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"flags": ["EXACT_TASK_COUNT_REQUESTED"]}, id="not an external job"),
        pytest.param({"admin_comment": ""}, id="no comment"),
        pytest.param({"admin_comment": '{"pods":["ns/a"]}'}, id="another bridge's comment"),
        pytest.param({"admin_comment": "slurm-bridge {"}, id="not JSON"),
    ],
)
def test_a_job_without_our_mark_is_a_stranger(changes: dict[str, object]) -> None:
    assert ForeignJob(id=JobId(7), sluid=Sluid("sAVSM7YPWFKK00")) == read(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"job_state": ["FROZEN"]}, id="a state we do not know"),
        pytest.param({"nodes": "gpu[1-"}, id="a broken hostlist"),
        pytest.param(
            {"admin_comment": json.dumps({"slurm-bridge": 99, "cluster": CLUSTER})},
            id="a newer mark",
        ),
    ],
)
def test_a_marked_job_that_makes_no_sense_is_a_stranger_who_says_why(
    changes: dict[str, object],
) -> None:
    job = read(**changes)

    assert isinstance(job, ForeignJob)
    assert job.unreadable
    assert CLUSTER == job.cluster


def component(offset: int, **changes: Any) -> DecodeResult[wire.Job]:
    plain: dict[str, object] = {
        "job_id": 7 + offset,
        "job_state": ["RUNNING"],
        "step_id": {"sluid": f"sAVSM7YPWFKK0{offset}"},
        "flags": ["EXTERNAL_JOB"],
        "admin_comment": identities.encode(WHOSE),
        "nodes": f"n{offset}",
        "tasks": number(1 + 3 * offset),
        "het_job_id": number(7),
        "het_job_offset": number(offset),
    }
    return told({**plain, **changes})


def test_a_heterogeneous_job_is_one_job() -> None:
    job = decode.job(component(0), component(1))
    assert isinstance(job, SlurmJob)
    assert (JobId(7), Sluid("sAVSM7YPWFKK00")) == (job.id, job.sluid)
    assert JobPhase.RUNNING is job.phase
    assert {"RUNNING", "1:RUNNING"} == job.states
    assert (5, ("n0", "n1"), [1, 4]) == (job.tasks, job.nodes, [part.tasks for part in job.parts])
    assert (JobId(7), JobId(8)) == job.ids


@pytest.mark.parametrize(
    ("states", "phase", "remains"),
    [
        (("RUNNING", "PENDING"), JobPhase.WAITING, False),
        (("RUNNING", "SUSPENDED"), JobPhase.PAUSED, False),
        (("RUNNING", "CANCELLED"), JobPhase.ENDED, True),
        (("NODE_FAIL", "RUNNING"), JobPhase.ENDED, True),
        (("CANCELLED", "CANCELLED"), JobPhase.ENDED, False),
    ],
)
def test_it_runs_when_all_of_it_runs_and_is_over_when_any_of_it_is(
    states: tuple[str, str], phase: JobPhase, remains: bool
) -> None:
    job = decode.job(*(component(n, job_state=[state]) for n, state in enumerate(states)))
    assert isinstance(job, SlurmJob)
    assert (phase, remains) == (job.phase, job.remains)


def test_a_component_that_is_not_ours_makes_the_job_unreadable() -> None:
    job = decode.job(component(0), component(1, admin_comment=""))
    assert isinstance(job, ForeignJob)
    assert job.unreadable


def test_room_on_a_node_is_what_cpus_memory_and_gres_have_in_common() -> None:
    def on(name: str, cpus: int, memory: int) -> dict[str, object]:
        return {"name": name, "cpus": {"count": cpus}, "memory": {"allocated": memory}}

    job = placeholder_of(
        nodes="n[0-2]",
        tasks=number(6),
        cpus_per_task=number(2),
        memory_per_cpu=number(100),
        tres_per_task="gres/gpu:1",
        gres_detail=["gpu:a100:4(IDX:0-3)", "gpu:a100:1(IDX:0)", "gpu:a100:2(IDX:0,2)"],
        job_resources={
            "nodes": {"allocation": [on("n0", 8, 800), on("n1", 8, 800), on("n2", 8, 300)]}
        },
    )
    assert [4, 1, 1] == [share.tasks for share in job.shares]
    assert () == placeholder_of(nodes="n[0-1]", tasks=number(6)).shares
    assert [1, 1] == [s.tasks for s in placeholder_of(nodes="n[0-1]", tasks=number(2)).shares]


ALONE = {
    "nodes": "n0",
    "node_count": number(1),
    "tasks": number(1),
    "cpus": number(8),
    "memory_per_node": number(16384),
    "tres_per_node": "gres/gpu:a100:4",
    "tres_alloc_str": "cpu=8,mem=16G,node=1,billing=8,gres/gpu=4,gres/gpu:a100=4",
}
GANG = {
    "nodes": "n[0-1]",
    "node_count": number(2),
    "tasks": number(4),
    "cpus": number(8),
    "cpus_per_task": number(2),
    "memory_per_cpu": number(100),
    "tres_per_task": "gres/gpu:1,gres/shard:3",
    "tres_alloc_str": "cpu=8,mem=800M,node=2,billing=8",
}


@pytest.mark.parametrize(
    ("job", "cpus", "memory_mib", "gres"),
    [
        pytest.param(ALONE, 8, 16384, {"gpu": 4}, id="alone"),
        pytest.param(
            {**ALONE, "cpus": number(1), "tres_alloc_str": "cpu=1,mem=1M", "tres_per_node": ""},
            *(1, 1, {}),
            id="alone, made smaller",
        ),
        pytest.param({**ALONE, "tres_alloc_str": ""}, 8, 16384, {"gpu": 4}, id="as promised"),
        pytest.param(GANG, 2, 200, {"gpu": 1, "shard": 3}, id="a gang"),
        pytest.param(
            {**GANG, "cpus_per_task": number(1)},
            *(1, 100, {"gpu": 1, "shard": 3}),
            id="tasks made smaller",
        ),
        pytest.param(
            {**GANG, "cpus": number(4), "tres_alloc_str": "cpu=4,mem=400M,node=2"},
            *(1, 100, {"gpu": 1, "shard": 3}),
            id="the whole made smaller",
        ),
        pytest.param(
            {**GANG, "gres_detail": ["gpu:a100:1(IDX:0),shard:6", "gpu:a100:1(IDX:1),shard:6"]},
            *(2, 200, {"gpu": 0, "shard": 3}),
            id="allocated less than promised",
        ),
    ],
)
def test_what_each_task_has_is_the_least_of_what_was_allocated_and_promised(
    job: dict[str, object], cpus: int, memory_mib: int, gres: dict[str, int]
) -> None:
    assert (
        TaskGrant(cpus=cpus, memory_mib=memory_mib, gres=gres) == placeholder_of(**job).task_grant
    )


def test_a_job_that_waits_has_nothing_and_cpus_that_cannot_be_read_are_none() -> None:
    assert placeholder_of(job_state=["PENDING"], nodes="").task_grant is None
    unread = placeholder_of(**{**ALONE, "cpus": "many"}).task_grant
    assert unread is not None
    assert 0 == unread.cpus
