"""What is decided for a worker in each situation."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from slurmoperator.workers import rules, table
from slurmoperator.workers.actions import (
    CreateWorker,
    DeleteWorker,
    DrainWorker,
    ProtectWorker,
    ReleaseWorker,
    UndrainWorker,
    WorkerAction,
)
from slurmoperator.workers.choosing import (
    SCALED_IN,
    RemovalCandidate,
    ordinals_to_create,
    workers_to_remove,
)
from slurmoperator.workers.readings import WorkerReading, WorkerReadings
from slurmoperator.workers.situation import (
    REASON_PREFIX,
    PodStage,
    WorkerFacts,
    WorkerObservation,
    WorkerPod,
)
from slurmoperator.workers.table import WorkerColumn, WorkerRow
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode

OURS = f"{REASON_PREFIX}{SCALED_IN}"
CORDONED = f"{REASON_PREFIX}cordoned"
RELEASED = ReleaseWorker(uid="u1", resource_version="7")
DELETED = DeleteWorker(uid="u1", resource_version="7")


def pod(stage: PodStage = PodStage.READY, *, is_protected: bool = True) -> WorkerPod:
    return WorkerPod(uid="u1", resource_version="7", stage=stage, is_protected=is_protected)


def seen(
    *states: str, reason: str = "", quiet: int = 2, has_jobs: bool = False
) -> WorkerObservation:
    node = SlurmNodeFacts(name=SlurmNode("gpu-0"), states=frozenset(states), reason=reason)
    return WorkerObservation(is_sure=True, node=node, has_jobs=has_jobs, quiet_readings=quiet)


IDLE = seen("IDLE")
MISSING = WorkerObservation(is_sure=True)
UNKNOWN = WorkerObservation(is_sure=False)
DRAINED = seen("IDLE", "DRAIN", reason=OURS)


def facts(
    seen: WorkerObservation = IDLE,
    stage: PodStage | None = PodStage.READY,
    *,
    goes: str = "",
    cordoned: str = "",
) -> WorkerFacts:
    found = None if stage is None else pod(stage)
    return WorkerFacts(name="gpu-0", pod=found, seen=seen, goes=goes, cordoned=cordoned)


def acted(given: WorkerFacts) -> tuple[WorkerAction, ...]:
    return table.decide(given).actions


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (facts(), ()),
        (facts(UNKNOWN, None), (CreateWorker(),)),
        (facts(goes=SCALED_IN), (DrainWorker(reason=OURS),)),
        (facts(seen("DOWN"), goes=SCALED_IN), (DrainWorker(reason=OURS),)),
        (facts(DRAINED, goes=SCALED_IN), (DELETED,)),
        (facts(seen("IDLE", "DRAIN", reason="fan"), goes=SCALED_IN), (DELETED,)),
        (facts(seen("DOWN", "DRAIN", reason=OURS), goes=SCALED_IN), (DELETED,)),
        (facts(replace(DRAINED, quiet_readings=1), goes=SCALED_IN), ()),
        (facts(replace(DRAINED, has_jobs=True), goes=SCALED_IN), ()),
        (facts(seen("MIXED", "DRAIN", reason=OURS), goes=SCALED_IN), ()),
        (facts(seen("IDLE", "COMPLETING", "DRAIN", reason=OURS), goes=SCALED_IN), ()),
        (facts(seen("IDLE", "DRAIN", "UNDRAIN"), goes=SCALED_IN), (DrainWorker(reason=OURS),)),
        (facts(UNKNOWN, goes=SCALED_IN), ()),
        (facts(MISSING, goes=SCALED_IN), ()),
        (facts(MISSING, PodStage.STARTING, goes=SCALED_IN), ()),
        (facts(UNKNOWN, PodStage.UNSTARTED, goes=SCALED_IN), (DELETED,)),
        (facts(UNKNOWN, PodStage.OVER), (DELETED,)),
        (facts(DRAINED, PodStage.TERMINATING, goes=SCALED_IN), ()),
        (facts(MISSING), ()),
        (facts(DRAINED), (UndrainWorker(),)),
        (facts(seen("IDLE", "DRAIN", reason="fan")), ()),
        (facts(seen("IDLE", "DRAIN", reason="fan"), cordoned="cordoned"), (RELEASED,)),
        (facts(seen("IDLE", "DRAIN", reason=CORDONED), cordoned="cordoned"), (RELEASED,)),
        (facts(seen("IDLE", "DRAIN", reason=CORDONED, quiet=1), cordoned="cordoned"), ()),
        (facts(seen("IDLE", "DRAIN", reason=CORDONED, has_jobs=True), cordoned="cordoned"), ()),
        (facts(seen("MIXED", "DRAIN", reason=CORDONED), cordoned="cordoned"), ()),
        (facts(cordoned="cordoned"), (DrainWorker(reason=f"{REASON_PREFIX}cordoned"),)),
        (facts(DRAINED, cordoned="cordoned"), (DrainWorker(reason=f"{REASON_PREFIX}cordoned"),)),
        (facts(UNKNOWN, cordoned="cordoned"), ()),
    ],
)
def test_what_is_done(given: WorkerFacts, expected: tuple[WorkerAction, ...]) -> None:
    assert expected == acted(given)


def test_what_is_kept_is_protected() -> None:
    for seen_, stage in ((IDLE, PodStage.READY), (MISSING, PodStage.STARTING)):
        given = replace(facts(seen_, stage), pod=pod(stage, is_protected=False))
        assert (ProtectWorker(),) == acted(given)


@pytest.mark.parametrize(
    ("seen_", "cordoned", "expected"),
    [
        pytest.param(seen("IDLE"), "", (ProtectWorker(),), id="in service"),
        pytest.param(
            seen("IDLE"),
            "cordoned",
            (ProtectWorker(), DrainWorker(reason=CORDONED)),
            id="in service again, on a cordoned node",
        ),
        pytest.param(
            seen("IDLE", "DRAIN", reason=CORDONED),
            "",
            (ProtectWorker(), UndrainWorker()),
            id="comes back: protected before it can have jobs",
        ),
        pytest.param(
            seen("IDLE", "DRAIN", reason=CORDONED, has_jobs=True),
            "cordoned",
            (),
            id="released, and jobs are not read any more",
        ),
        pytest.param(
            seen("MIXED", "DRAIN", reason=CORDONED),
            "cordoned",
            (ProtectWorker(),),
            id="surely busy",
        ),
        pytest.param(seen("IDLE", "DRAIN", reason=CORDONED), "cordoned", (), id="released"),
    ],
)
def test_what_was_released_is_protected_before_it_can_have_jobs(
    seen_: WorkerObservation, cordoned: str, expected: tuple[WorkerAction, ...]
) -> None:
    given = facts(seen_, cordoned=cordoned)

    assert expected == acted(replace(given, pod=pod(is_protected=False)))


def test_where_evictions_are_welcome_nothing_is_protected_or_released() -> None:
    for seen_ in (IDLE, seen("IDLE", "DRAIN", reason=CORDONED)):
        for is_protected in (False, True):
            given = replace(
                facts(seen_, cordoned="cordoned"),
                pod=pod(is_protected=is_protected),
                is_guarded=False,
            )
            assert not {type(each) for each in acted(given)} & {ProtectWorker, ReleaseWorker}


def test_after_doubt_it_is_looked_at_again() -> None:
    assert table.decide(facts(UNKNOWN)).retry_after
    assert table.decide(facts(MISSING)).retry_after
    assert table.decide(facts()).retry_after is None


def test_nothing_but_proof_deletes_a_worker_that_runs() -> None:
    deleting = {
        (row, column)
        for row, cells in table.TABLE.items()
        for column, rule in cells.items()
        if rule is rules.delete
    }
    assert {
        column for row, column in deleting if row not in (WorkerRow.OVER, WorkerRow.UNNEEDED)
    } == {WorkerColumn.DRAINED}


def candidate(ordinal: int, seen_: WorkerObservation = IDLE, **more: object) -> RemovalCandidate:
    plain = RemovalCandidate(name=f"gpu-{ordinal}", ordinal=ordinal, pod=pod(), seen=seen_)
    return replace(plain, **more)  # type: ignore[arg-type]


BUSY = seen("ALLOCATED", has_jobs=True)
SOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("candidates", "goes"),
    [
        ((candidate(0), candidate(1)), "gpu-1"),
        ((candidate(0), candidate(1, BUSY)), "gpu-0"),
        ((candidate(1), candidate(0, UNKNOWN)), "gpu-0"),
        ((candidate(1, UNKNOWN), candidate(0, seen("MIXED", "DRAIN", reason=OURS))), "gpu-0"),
        ((candidate(0, pod=pod(PodStage.UNSTARTED)), candidate(1)), "gpu-0"),
        ((candidate(0, pod=pod(PodStage.TERMINATING)), candidate(1)), "gpu-0"),
        ((candidate(0, seen("MIXED", "DRAIN", reason=OURS)), candidate(1)), "gpu-0"),
        ((candidate(0, deletion_cost=1), candidate(1, deletion_cost=2)), "gpu-0"),
        ((candidate(0, BUSY, free_at=SOON), candidate(1, BUSY)), "gpu-0"),
        (
            (
                candidate(0, BUSY, free_at=SOON),
                candidate(1, BUSY, free_at=SOON + timedelta(hours=1)),
            ),
            "gpu-0",
        ),
        ((candidate(0, is_cordoned=True), candidate(1)), "gpu-0"),
    ],
)
def test_who_goes_first(candidates: tuple[RemovalCandidate, ...], goes: str) -> None:
    assert {goes} == workers_to_remove(candidates, 1)
    assert set() == workers_to_remove(candidates, 2)


def test_the_lowest_numbers_come_first() -> None:
    assert (1, 3) == ordinals_to_create([0, 2], 4)
    assert () == ordinals_to_create([0, 1, 2], 2)


def reading(began_s: float, *, is_complete: bool = True) -> WorkerReading:
    node = SlurmNodeFacts(name=SlurmNode("a"), states=frozenset({"IDLE", "DRAIN"}))
    return WorkerReading(began_s=began_s, is_complete=is_complete, nodes={"a": node}, with_jobs=())


def test_a_reading_proves_nothing_about_a_write_that_it_may_not_show() -> None:
    readings = WorkerReadings(lost_reply_s=10)
    readings.read(reading(1))
    assert readings.seen("a").is_sure

    readings.wrote("a", 2, is_lost=True)
    assert not readings.seen("a").is_sure
    readings.read(reading(11))
    assert not readings.seen("a").is_sure
    readings.read(reading(12))
    assert (True, 1) == (readings.seen("a").is_sure, readings.seen("a").quiet_readings)
    readings.read(reading(13))
    assert 2 == readings.seen("a").quiet_readings
    readings.read(reading(13))
    assert 2 == readings.seen("a").quiet_readings, "the same reading counts once"
    readings.read(reading(14, is_complete=False))
    assert not readings.seen("a").is_sure
    readings.read(reading(15))
    assert 1 == readings.seen("a").quiet_readings
    readings.failed()
    assert not readings.seen("a").is_sure


def test_counting_begins_anew_after_a_write() -> None:
    readings = WorkerReadings(lost_reply_s=10)
    readings.read(reading(1))
    readings.wrote("a", 2)
    readings.read(reading(3))

    assert 1 == readings.seen("a").quiet_readings
