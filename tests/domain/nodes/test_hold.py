"""Which nodes take no other jobs while the placeholders of their pods are missing."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bridge.domain.lifecycle.decision import SubmitRefusal
from bridge.domain.lifecycle.table import Column, Row
from bridge.domain.model import grant as grants
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity
from bridge.domain.model.pods import Pod
from bridge.domain.nodes import hold as node_hold
from bridge.domain.nodes.hold import Backing, Hold
from bridge.domain.observation.view import Evidence
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, WorkloadKey
from tests.make import lives as build

BEGAN = datetime(2026, 5, 4, 12, tzinfo=UTC)
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
GRANTED = replace(
    build.bound(),
    annotations={names.GRANT_ANNOTATION: grants.encode(WHOSE, GRANT)},
)
REFUSAL = SubmitRefusal(attempts=1, at=BEGAN, text="no")


def held(
    pod: Pod, cell: tuple[Row, Column], evidence: Evidence, refusal: SubmitRefusal | None = None
) -> Hold:
    return node_hold.hold_for(Backing(pod=pod, cell=cell, evidence=evidence, refusal=refusal))


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
    assert expected is held(GRANTED, cell, Evidence.LOST)


@pytest.mark.safeguard(
    "hold",
    "a Slurm user ends an own job, so that its node is kept for the pod that still runs there",
    "nothing: Slurm gives the node to others at once; it is kept only for jobs that have not ended",
)
@pytest.mark.parametrize("row", Row)
def test_nothing_is_kept_for_a_pod_whose_job_has_ended(row: Row) -> None:
    assert Hold.HELD is held(GRANTED, (row, Column.ENDED), Evidence.NONE)


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
    assert expected is held(pod, (Row.BOUND, Column.NONE), evidence, refusal)


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
    assert expected is node_hold.hold(pods)
