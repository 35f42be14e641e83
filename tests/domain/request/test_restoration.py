"""What is requested in place of a lost placeholder."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bridge.domain.lifecycle.evidence import AccountingRecord
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import FirstSubmission, Identity
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.request import restoration
from slurmruntime.values.ids import ClusterId, PodUid, SlurmNode, WorkloadKey

BEGAN = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WHOSE = Identity(
    cluster=ClusterId("c"),
    kind="JobSet",
    namespace="ns",
    name="train",
    key=WorkloadKey("w"),
    pods=(),
)
GRANT = Grant(
    name="train",
    user="alice",
    group="team",
    account="a",
    qos="q",
    nodes=2,
    tasks=8,
    cpus_per_task=3,
    memory_mib_per_node=512,
    gres_per_node="gres/gpu:2",
    started_s=int(BEGAN.timestamp()),
    time_limit_min=90,
)
RUNNING = AccountingRecord(
    states=frozenset({"RUNNING"}), started_at=BEGAN, ended_at=None, time_limit_min=90
)


def asked(
    *,
    nodes: tuple[str, ...] = ("n1", "n2"),
    record: AccountingRecord | None = None,
    grant: Grant = GRANT,
) -> PlaceholderSpec:
    return restoration.placeholder(
        WHOSE,
        grant,
        lost="s1",
        pods=[PodUid("p1"), PodUid("p2")],
        nodes=[SlurmNode(name) for name in nodes],
        record=record,
        now=BEGAN + HOUR + timedelta(seconds=30),
    )


def test_the_same_is_asked_for_again_on_the_very_nodes() -> None:
    spec = asked()

    assert ("n1", "n2") == spec.required_nodes
    assert (2, 2, 8, 3) == (spec.nodes_min, spec.nodes_max, spec.tasks, spec.cpus_per_task)
    assert (512, "gres/gpu:2") == (spec.memory_mib_per_node, spec.gres_per_node)
    assert ("alice", "team", "a", "q") == (spec.user, spec.group, spec.account, spec.qos)
    assert replace(WHOSE, pods=(PodUid("p1"), PodUid("p2")), restores="s1") == spec.identity


def test_it_goes_before_everybody_who_waits() -> None:
    assert restoration.TOP_PRIORITY == asked().priority
    assert restoration.TOP_PRIORITY < 0xFFFFFFFE, "Slurm reads that as nothing"


OF_A_GANG = replace(
    GRANT,
    tasks=6,
    nodes=3,
    memory_mib_per_node=0,
    memory_mib_per_cpu=64,
    gres_per_node="",
    gres_per_task="gres/gpu:1",
    layout="n2*3,n1,n3*2",
)


def test_a_gangs_tasks_are_asked_for_where_they_were() -> None:
    spec = asked(nodes=("n1", "n2", "n3"), grant=OF_A_GANG)

    assert ("n2", "n2", "n2", "n1", "n3", "n3") == spec.required_nodes
    assert spec.is_laid_out
    assert (3, 3, 6, 3) == (spec.nodes_min, spec.nodes_max, spec.tasks, spec.cpus_per_task)
    assert (None, 64) == (spec.memory_mib_per_node, spec.memory_mib_per_cpu)
    assert ("", "gres/gpu:1") == (spec.gres_per_node, spec.gres_per_task)


def test_of_a_gang_only_nodes_where_somebody_is_left_are_asked_for() -> None:
    """Strangers may have the others by now; a free slot beside a pod is kept, as its node takes nobody."""
    spec = asked(nodes=("n2", "n3"), grant=OF_A_GANG)

    assert ("n2", "n2", "n2", "n3", "n3") == spec.required_nodes
    assert (2, 2, 5) == (spec.nodes_min, spec.nodes_max, spec.tasks)


OF_TWO_SIZES = replace(GRANT, nodes=1, tasks=1, layout="n4", also=(OF_A_GANG,))


def test_each_size_of_a_gang_is_asked_for_where_it_was() -> None:
    launcher = asked(nodes=("n1", "n2", "n3", "n4"), grant=OF_TWO_SIZES)
    (workers,) = launcher.also

    assert (("n4",), 1, 512) == (
        launcher.required_nodes,
        launcher.tasks,
        launcher.memory_mib_per_node,
    )
    assert ("n2", "n2", "n2", "n1", "n3", "n3") == workers.required_nodes
    assert (False, False) == (launcher.exclusive, workers.exclusive)
    assert launcher.identity == workers.identity
    assert {restoration.TOP_PRIORITY} == {launcher.priority, workers.priority}
    assert {30} == {launcher.time_limit_min, workers.time_limit_min}


def test_whole_nodes_are_asked_for_as_such() -> None:
    frozen = FirstSubmission(
        requester="r", rule="", user="alice", account="a", asked={"exclusive": "true"}
    )
    spec = restoration.placeholder(
        replace(WHOSE, frozen=frozen),
        OF_TWO_SIZES,
        lost="s1",
        pods=[PodUid("p1")],
        nodes=[SlurmNode("n2"), SlurmNode("n4")],
        record=None,
        now=BEGAN,
    )

    assert [True, True] == [each.exclusive for each in (spec, *spec.also)]


def test_a_size_of_which_nobody_is_left_is_not_asked_for_again() -> None:
    workers = asked(nodes=("n1", "n3"), grant=OF_TWO_SIZES)

    assert (("n1", "n3", "n3"), ()) == (workers.required_nodes, workers.also)


def test_what_ended_members_had_is_not_asked_for_again() -> None:
    spec = asked(nodes=("n2",))

    assert (1, 1, 4) == (spec.nodes_min, spec.nodes_max, spec.tasks)


@pytest.mark.parametrize(
    ("record", "limit_min", "expected"),
    [
        pytest.param(None, 90, 30, id="what is left of what was granted, rounded up"),
        pytest.param(None, None, None, id="no limit"),
        pytest.param(replace(RUNNING, time_limit_min=120), 90, 60, id="as an admin changed it"),
        pytest.param(replace(RUNNING, time_limit_min=None), 90, None, id="an admin lifted it"),
        pytest.param(
            replace(RUNNING, time_limit_min=None, says_time_limit=False), 90, 30, id="not told"
        ),
        pytest.param(
            replace(RUNNING, started_at=None, time_limit_min=120), 90, 30, id="start unknown"
        ),
        pytest.param(None, 15, 1, id="over already: Slurm itself ends it"),
    ],
)
def test_it_gets_the_time_that_is_left(
    record: AccountingRecord | None, limit_min: int | None, expected: int | None
) -> None:
    spec = asked(record=record, grant=replace(GRANT, time_limit_min=limit_min))

    assert expected == spec.time_limit_min
