"""What of a waiting placeholder changes in place, and what takes another job."""

from dataclasses import replace

import pytest

from bridge.domain.model.allocation import Component, TaskSize
from bridge.domain.model.identities import FirstSubmission, Identity
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.placeholder import Changes, PlaceholderSpec
from bridge.domain.request import revision
from slurmruntime.values.ids import ClusterId, JobId, WorkloadKey
from tests.make import lives

FROZEN = FirstSubmission(requester="u", rule="r", user="alice", account="physics")
WHOSE = Identity(
    cluster=ClusterId("c"),
    kind="Job",
    namespace="ns",
    name="n",
    key=WorkloadKey("u"),
    pods=(),
    frozen=FROZEN,
)
SIZE = TaskSize(cpus=2, memory_mib_per_cpu=100, gres="gres/gpu:1")
SPEC = PlaceholderSpec(
    identity=WHOSE,
    name="n",
    user="alice",
    group="alice",
    account="physics",
    tasks=5,
    cpus_per_task=2,
    memory_mib_per_cpu=100,
    gres_per_task="gres/gpu:1",
)
LAUNCHER = replace(SPEC, tasks=1, cpus_per_task=1, gres_per_task="")
LAUNCHERS = TaskSize(cpus=1, memory_mib_per_cpu=100)
WAITS = replace(lives.job(JobPhase.WAITING, number=7), identity=WHOSE, tasks=3, task=SIZE)


def test_another_number_of_tasks_is_said_with_all_that_follows_from_it() -> None:
    expected = {JobId(7): Changes(tasks=5, cpus=10, memory_mib_per_cpu=100)}
    assert expected == revision.changes(SPEC, WAITS)


def test_nothing_is_said_where_nothing_differs() -> None:
    assert {} == revision.changes(replace(SPEC, tasks=3), WAITS)


def test_only_the_component_that_differs_is_changed() -> None:
    parts = (Component(tasks=1, task=LAUNCHERS), Component(tasks=4, task=SIZE))
    found = revision.changes(replace(LAUNCHER, also=(SPEC,)), replace(WAITS, parts=parts))
    assert {JobId(8): Changes(tasks=5, cpus=10, memory_mib_per_cpu=100)} == found


@pytest.mark.parametrize(
    ("spec", "job"),
    [
        pytest.param(replace(SPEC, cpus_per_task=3), WAITS, id="more CPUs each"),
        pytest.param(replace(SPEC, memory_mib_per_cpu=200), WAITS, id="more memory each"),
        pytest.param(replace(SPEC, gres_per_task="gres/gpu:2"), WAITS, id="more GPUs each"),
        pytest.param(replace(SPEC, also=(LAUNCHER,)), WAITS, id="two sizes now"),
        pytest.param(replace(SPEC, user="bob"), WAITS, id="another user"),
        pytest.param(replace(SPEC, account="chemistry"), WAITS, id="another account"),
        pytest.param(
            SPEC, replace(WAITS, identity=replace(WHOSE, frozen=None)), id="nobody knows whose"
        ),
        pytest.param(
            replace(SPEC, also=(LAUNCHER,)),
            replace(
                WAITS, parts=(Component(tasks=1, task=LAUNCHERS), Component(tasks=4, task=SIZE))
            ),
            id="the sizes have changed places",
        ),
    ],
)
def test_what_else_differs_takes_another_job(spec: PlaceholderSpec, job: SlurmJob) -> None:
    assert revision.changes(spec, job) is None
