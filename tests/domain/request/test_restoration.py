"""Whether Slurm lost a placeholder, what is asked for in its place, and which nodes take no strangers meanwhile."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bridge.domain import names
from bridge.domain.ids import ClusterId, JobId, PodUid, SlurmNode, WorkloadKey
from bridge.domain.lifecycle.decision import SubmitRefusal
from bridge.domain.lifecycle.table import Column, Row
from bridge.domain.model import grant as grants
from bridge.domain.model.grant import Grant
from bridge.domain.model.placeholder import Frozen, Identity, PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import Evidence
from bridge.domain.request import restoration
from bridge.domain.request.restoration import AccountedJob, Hold, Numbering
from tests.make import lives as build

BEGAN = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WHOSE = Identity(
    cluster=ClusterId("c"),
    kind="JobSet",
    namespace="ns",
    name="train",
    uid=WorkloadKey("w"),
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
RUNNING = AccountedJob(
    states=frozenset({"RUNNING"}), started_at=BEGAN, ended_at=None, time_limit_min=90
)


def ended(state: str, *, after: timedelta = HOUR, by: str = "") -> AccountedJob:
    return replace(RUNNING, states=frozenset({state}), ended_at=BEGAN + after, ended_by=by)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(RUNNING, Evidence.LOST, id="slurmdbd waits for its end"),
        pytest.param(
            replace(RUNNING, states=frozenset({"PENDING"}), started_at=None),
            Evidence.LOST,
            id="its start was lost too",
        ),
        pytest.param(ended("CANCELLED", by="root"), Evidence.ENDED, id="somebody cancelled it"),
        pytest.param(ended("CANCELLED"), Evidence.LOST, id="slurmctld -c cancelled it"),
        pytest.param(ended("COMPLETED"), Evidence.ENDED, id="it was completed"),
        pytest.param(
            ended("COMPLETED", after=timedelta(0)), Evidence.LOST, id="it was fixed as a runaway"
        ),
        pytest.param(ended("TIMEOUT"), Evidence.ENDED, id="its time was over"),
        pytest.param(ended("NODE_FAIL"), Evidence.ENDED, id="its node failed"),
        pytest.param(ended("PREEMPTED"), Evidence.ENDED, id="it was preempted"),
    ],
)
def test_what_slurmdbd_says_is_evidence(record: AccountedJob, expected: Evidence) -> None:
    assert expected is restoration.verdict(record, is_up_to_date=True)


def test_while_slurmdbd_lags_behind_only_an_end_is_evidence() -> None:
    cancelled = ended("CANCELLED", by="root")

    assert Evidence.PENDING is restoration.verdict(RUNNING, is_up_to_date=False)
    assert Evidence.ENDED is restoration.verdict(cancelled, is_up_to_date=False)


def test_a_job_that_was_cancelled_before_it_began_has_ended() -> None:
    assert Evidence.ENDED is restoration.verdict(
        replace(ended("CANCELLED"), started_at=None), is_up_to_date=True
    )


@pytest.mark.parametrize(
    ("job_id", "next_id", "expected"),
    [
        pytest.param(7, 8, False, id="given out, the next one is another"),
        pytest.param(7, 7, True, id="about to be given out again"),
        pytest.param(7, 1, True, id="all is forgotten"),
        pytest.param(995, 3, False, id="they may have begun again after the last"),
        pytest.param(995, 300, True, id="too far to have begun again"),
        pytest.param(500, 3, True, id="too early to have been among the last"),
    ],
)
def test_job_ids_went_backwards(job_id: int, next_id: int, *, expected: bool) -> None:
    numbering = Numbering(next_id=JobId(next_id), last_id=JobId(1000))

    assert expected == restoration.went_backwards(JobId(job_id), numbering)


def asked(
    *,
    nodes: tuple[str, ...] = ("n1", "n2"),
    record: AccountedJob | None = None,
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
    frozen = Frozen(requester="r", rule="", user="alice", account="a", asked={"exclusive": "true"})
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
    record: AccountedJob | None, limit_min: int | None, expected: int | None
) -> None:
    spec = asked(record=record, grant=replace(GRANT, time_limit_min=limit_min))

    assert expected == spec.time_limit_min


GRANTED = replace(
    build.bound(),
    annotations={names.GRANT_ANNOTATION: grants.encode(WHOSE, GRANT)},
)
REFUSAL = SubmitRefusal(attempts=1, at=BEGAN, text="no")


def told(word: str) -> Pod:
    notes = {**GRANTED.annotations, names.WHEN_LOST_ANNOTATION: word}
    return replace(GRANTED, annotations=notes)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        pytest.param((Row.BOUND, Column.RUNNING), Hold.HELD, id="runs"),
        pytest.param((Row.BOUND, Column.PAUSED), Hold.HELD, id="suspended"),
        pytest.param((Row.BOUND, Column.ENDED), Hold.HELD, id="given to others"),
        pytest.param((Row.STOPPING, Column.NONE), Hold.HELD, id="goes anyway"),
        pytest.param((Row.GATED, Column.NONE), Hold.HELD, id="waits for Slurm"),
        pytest.param((Row.BOUND, Column.WAITING), Hold.RESTORING, id="to start again"),
        pytest.param((Row.BOUND, Column.UNKNOWN), Hold.UNSURE, id="not known yet"),
        pytest.param((Row.PLACED, Column.NONE), Hold.MISSING, id="placed, forgotten"),
        pytest.param((Row.BOUND, Column.NONE), Hold.MISSING, id="bound, forgotten"),
    ],
)
def test_slurm_holds_a_node_for_a_pod(cell: tuple[Row, Column], expected: Hold) -> None:
    assert expected is restoration.hold_for(GRANTED, cell, Evidence.LOST, None)


@pytest.mark.parametrize(
    ("pod", "evidence", "refusal", "expected"),
    [
        pytest.param(GRANTED, Evidence.LOST, None, Hold.MISSING, id="lost"),
        pytest.param(GRANTED, Evidence.PENDING, None, Hold.MISSING, id="perhaps lost"),
        pytest.param(GRANTED, Evidence.NONE, None, Hold.UNDECIDED, id="an operator is asked"),
        pytest.param(told("restore"), Evidence.NONE, None, Hold.MISSING, id="and said restore"),
        pytest.param(told("let-go"), Evidence.NONE, None, Hold.UNDECIDED, id="and said let-go"),
        pytest.param(GRANTED, Evidence.LOST, REFUSAL, Hold.UNDECIDED, id="refused"),
        pytest.param(build.bound(), Evidence.LOST, None, Hold.UNDECIDED, id="nobody knows what"),
        pytest.param(GRANTED, Evidence.ENDED, None, Hold.UNDECIDED, id="ended: it is to go"),
    ],
)
def test_a_forgotten_pods_placeholder_comes_back_or_people_decide(
    pod: Pod, evidence: Evidence, refusal: SubmitRefusal | None, expected: Hold
) -> None:
    assert expected is restoration.hold_for(pod, (Row.BOUND, Column.NONE), evidence, refusal)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], Hold.HELD),
        ([Hold.HELD, Hold.UNDECIDED], Hold.UNDECIDED),
        ([Hold.UNDECIDED, Hold.RESTORING], Hold.RESTORING),
        ([Hold.RESTORING, Hold.UNSURE], Hold.UNSURE),
        ([Hold.UNSURE, Hold.MISSING, Hold.HELD], Hold.MISSING),
    ],
)
def test_the_worst_of_a_nodes_pods_counts_and_who_waits_for_people_last(
    pods: list[Hold], expected: Hold
) -> None:
    assert expected is restoration.hold(pods)
