"""Every row of the table under every column, and what holds in all of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.actions import (
    Action,
    Assign,
    Cancel,
    Complete,
    EndPod,
    Evict,
    OwnCause,
    Release,
    Submit,
    Tell,
    Wait,
)
from bridge.domain.lifecycle.decision import Actor, Facts, Fit
from bridge.domain.lifecycle.table import Column, Row
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import View
from tests.make import lives as build

PODS: Mapping[Row, Pod] = {
    Row.GATED: build.gated(),
    Row.GATED_DELETING: build.deleting(build.gated()),
    Row.UNPLACED: replace(build.placed(job_id=None), annotations={}),
    Row.PLACED: build.placed(),
    Row.BOUND: build.bound(),
    Row.STOPPING: build.deleting(build.bound()),
    Row.TERMINAL: build.failed(3),
    Row.DELETED: build.deleting(build.placed()),
}

VIEWS: Mapping[Column, View] = {
    Column.NONE: build.view(),
    Column.WAITING: build.view(build.waiting()),
    Column.RUNNING: build.view(build.job(JobPhase.RUNNING)),
    Column.PAUSED: build.view(build.job(JobPhase.PAUSED)),
    Column.ENDED: build.view(build.ended(JobEnd.CANCELLED)),
    Column.UNKNOWN: build.view(surely_none=False),
}

# fmt: off
EXPECTED: Mapping[Row, tuple[type[Action], ...]] = {
    #                    surely none  waiting  running   paused    ended    unknown
    Row.GATED:          (Submit,      Tell,    Assign,   Tell,     EndPod,  Wait),
    Row.GATED_DELETING: (Release,     Cancel,  Cancel,   Cancel,   Release, Wait),
    Row.UNPLACED:       (Tell,        Cancel,  Cancel,   Cancel,   Tell,    Wait),
    Row.PLACED:         (Tell,        Tell,    Wait,     Tell,     Evict,   Wait),
    Row.BOUND:          (Tell,        Tell,    Wait,     Tell,     Evict,   Wait),
    Row.STOPPING:       (Wait,        Wait,    Wait,     Wait,     Wait,    Wait),
    Row.TERMINAL:       (Release,     Cancel,  Complete, Complete, Release, Wait),
    Row.DELETED:        (Release,     Cancel,  Cancel,   Cancel,   Release, Wait),
}
# fmt: on

RESTING = {
    (Row.GATED, Column.WAITING),
    (Row.PLACED, Column.RUNNING),
    (Row.BOUND, Column.RUNNING),
}
"""Where what happens for a moment may be looked at together."""

CAUSED = replace(build.waiting().identity, cause=OwnCause.MISFIT.value)

every_cell = pytest.mark.parametrize(
    ("row", "column"),
    [
        pytest.param(row, column, id=f"{row.value} / {column.value}")
        for row in Row
        for column in Column
    ],
)


def in_cell(row: Row, column: Column) -> Facts:
    return Facts(
        pod=PODS[row],
        view=VIEWS[column],
        now=build.NOW,
        since=build.NOW - timedelta(seconds=10),
        kube_node=build.KUBE_NODE,
        fit=Fit.FITS,
    )


def actions(facts: Facts) -> tuple[Action, ...]:
    return lifecycle.decide(facts, build.POLICY).actions


@every_cell
def test_does_what_the_table_says(row: Row, column: Column) -> None:
    expected = EXPECTED[row][list(Column).index(column)]

    (action,) = actions(in_cell(row, column))

    assert expected is type(action)


@every_cell
def test_the_examples_are_in_the_cells_they_stand_for(row: Row, column: Column) -> None:
    assert (row, column) == lifecycle.cell(PODS[row], VIEWS[column])


@every_cell
def test_may_rest_only_where_nothing_is_done_but_told(row: Row, column: Column) -> None:
    facts = in_cell(row, column)
    rests = lifecycle.may_rest(facts.pod, facts.view.jobs)

    assert ((row, column) in RESTING) is rests
    assert not rests or {type(action) for action in actions(facts)} <= {Wait, Tell}


@pytest.mark.parametrize(
    "jobs",
    [
        pytest.param((build.waiting(), build.waiting(number=8)), id="a spare one"),
        pytest.param((replace(build.waiting(), identity=CAUSED),), id="a cancel that was begun"),
    ],
)
def test_a_gated_pod_does_not_rest_while_a_placeholder_is_to_go(jobs: tuple[SlurmJob, ...]) -> None:
    assert not lifecycle.may_rest(build.gated(), jobs)


@pytest.mark.parametrize(
    ("pod", "rests"),
    [
        pytest.param(build.placed(), True, id="placed"),
        pytest.param(build.bound(), True, id="bound"),
        pytest.param(replace(build.succeeded(), finalizers=()), True, id="released"),
        pytest.param(build.gated(), False, id="gated"),
        pytest.param(PODS[Row.UNPLACED], False, id="un-gated by hand"),
        pytest.param(build.succeeded(), False, id="ended"),
        pytest.param(build.deleting(build.bound()), False, id="deleting"),
    ],
)
def test_what_kubernetes_says_of_a_pod_that_has_its_node_is_not_urgent(
    pod: Pod, *, rests: bool
) -> None:
    assert rests is lifecycle.is_at_rest(pod)


@every_cell
def test_says_why_in_one_line(row: Row, column: Column) -> None:
    reason = lifecycle.decide(in_cell(row, column), build.POLICY).reason

    assert reason
    assert "\n" not in reason


@every_cell
def test_does_and_says_nothing_on_a_view_older_than_our_last_write(
    row: Row, column: Column
) -> None:
    facts = in_cell(row, column)
    decision = lifecycle.decide(replace(facts, view=replace(facts.view, fresh=False)), build.POLICY)

    assert (Wait(),) == decision.actions


@every_cell
def test_concludes_nothing_while_slurm_cannot_be_read(row: Row, column: Column) -> None:
    facts = in_cell(row, column)
    blind = replace(facts, view=replace(facts.view, reachable=False))

    assert (Wait(),) == actions(blind)


@pytest.mark.parametrize(
    ("row", "column"),
    [
        pytest.param(row, column, id=f"{row.value} / {column.value}")
        for row in Row
        for column in Column
        if PODS[row].job_id is not None or VIEWS[column].live
    ],
)
def test_cancels_a_placeholder_it_was_not_placed_by_before_anything_else(
    row: Row, column: Column
) -> None:
    facts = in_cell(row, column)
    spare = build.waiting(number=9999)
    crowded = replace(facts, view=replace(facts.view, jobs=(*facts.view.jobs, spare)))

    assert (Cancel(job_id=spare.id, sluid=spare.sluid, cause=OwnCause.SPARE),) == actions(crowded)


@pytest.mark.parametrize("column", Column, ids=lambda column: column.value)
@pytest.mark.parametrize("row", Row, ids=lambda row: row.value)
def test_never_releases_a_pod_that_carries_no_finalizer(row: Row, column: Column) -> None:
    facts = in_cell(row, column)
    bare = replace(facts, pod=replace(facts.pod, finalizers=()))

    assert not any(isinstance(action, Release | Submit) for action in actions(bare))


@pytest.mark.parametrize(
    ("row", "changes", "node_is_gone"),
    [
        pytest.param(Row.TERMINAL, lambda pod: replace(pod, gates=build.gated().gates), False,
                     id="a pod that was ended at the gate is terminal"),
        pytest.param(Row.STOPPING, lambda pod: replace(pod, containers=(build.MAIN_RUNNING,)), False,
                     id="a failed pod whose container still runs has not stopped"),
        pytest.param(Row.TERMINAL, lambda pod: replace(pod, containers=(build.MAIN_RUNNING,)), True,
                     id="nothing runs on a node that is gone"),
    ],
)  # fmt: skip
def test_a_failed_pod_is_in_its_row(
    row: Row, changes: Callable[[Pod], Pod], node_is_gone: bool
) -> None:
    assert row is lifecycle.row_of(changes(build.failed()), node_is_gone=node_is_gone)


@pytest.mark.parametrize(
    ("row", "pod"),
    [
        pytest.param(Row.STOPPING, build.bound(), id="while its containers run"),
        pytest.param(
            Row.STOPPING,
            replace(build.bound(), containers=build.gated().containers),
            id="while the kubelet has taken it and may be starting a container unseen",
        ),
        pytest.param(
            Row.DELETED,
            replace(build.bound(), containers=build.gated().containers, start_time=None),
            id="gone, if no kubelet ever took it",
        ),
        pytest.param(
            Row.DELETED,
            replace(build.bound(), containers=(build.exited(143),)),
            id="gone, once every container has terminated",
        ),
        pytest.param(Row.DELETED, build.placed(), id="gone, if it was never bound"),
    ],
)
def test_a_deleted_pod_stops_before_its_placeholder_ends(row: Row, pod: Pod) -> None:
    assert row is lifecycle.row_of(build.deleting(pod), node_is_gone=False)


def test_the_extender_owns_gated_pods_and_the_controllers_the_others() -> None:
    owners = {row: lifecycle.actor(pod) for row, pod in PODS.items()}

    gated = {Row.GATED, Row.GATED_DELETING}
    assert {row: Actor.EXTENDER if row in gated else Actor.CONTROLLERS for row in Row} == owners
