"""What replicas know of the last question of slurmctld's script."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bridge.escrow.questions import LEASE, Questions
from slurmruntime.kube.errors import Conflict, Unavailable
from slurmruntime.model.leases import LeaseRecord
from tests import virtual_time
from tests.virtual_time import VirtualClock


class Store:
    """The API server's Lease."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.writes = 0
        self.is_away = False
        self.wins: Callable[[], None] = lambda: None
        """What another replica does between our reading and our writing."""

    async def get(self, name: str) -> LeaseRecord | None:
        assert LEASE == name
        if self.is_away:
            raise Unavailable("lease.get", "no connection")
        return self.record

    async def create(self, name: str, record: LeaseRecord) -> None:
        await self.replace(name, record)

    async def replace(self, name: str, record: LeaseRecord) -> LeaseRecord:
        assert LEASE == name
        self.wins()
        version = self.record.resource_version if self.record else ""
        if version != record.resource_version:
            raise Conflict("lease.replace", "written by another")
        self.writes += 1
        self.record = replace(record, resource_version=str(self.writes))
        return self.record


def played(play: Callable[[Store, VirtualClock], Awaitable[None]]) -> None:
    async def main(clock: VirtualClock) -> None:
        await play(Store(), clock)

    virtual_time.run(main)


def test_one_replica_is_asked_and_another_one_knows() -> None:
    async def play(store: Store, clock: VirtualClock) -> None:
        asked, leads = (Questions(store, name, clock) for name in ("a", "b"))
        await leads.read()
        assert leads.asked_at is None

        await asked.note()
        await leads.read()
        assert clock.now() == leads.asked_at

    played(play)


def test_many_questions_cost_few_writes() -> None:
    async def play(store: Store, clock: VirtualClock) -> None:
        replicas = [Questions(store, name, clock) for name in "ab"]
        for _ in range(600):
            for questions in replicas:
                await questions.note()
            await clock.sleep(0.1)
        assert 2 <= store.writes <= 2 * len(replicas)
        assert store.record is not None
        assert (clock.now() - store.record.renewed_at).total_seconds() <= 31

    played(play)


def test_a_question_that_could_not_be_written_is_written_at_the_next() -> None:
    async def play(store: Store, clock: VirtualClock) -> None:
        questions = Questions(store, "a", clock)
        store.is_away = True
        await questions.note()
        await questions.read()
        assert questions.asked_at is None

        store.is_away = False
        await questions.note()
        store.is_away = True
        await questions.read()
        assert questions.asked_at is None, "nothing was read"
        store.is_away = False
        await questions.read()
        before = questions.asked_at
        store.is_away = True
        await questions.read()
        assert before == questions.asked_at is not None

    played(play)


def test_of_two_replicas_that_write_at_once_one_is_enough() -> None:
    async def play(store: Store, clock: VirtualClock) -> None:
        def other() -> None:
            store.wins = lambda: None
            store.record = LeaseRecord(
                holder="b",
                acquired_at=clock.now(),
                renewed_at=clock.now(),
                duration_s=30,
                resource_version="9",
            )

        store.wins = other
        questions = Questions(store, "a", clock)
        await questions.note()
        await questions.note()
        assert store.record is not None
        assert ("b", 0) == (store.record.holder, store.writes)

    played(play)


@pytest.mark.attack(
    "with a stolen token of ours, write once that slurmctld's script asks in the year 9999, so that pods run beside native jobs for ever",
    "a question from the future is none, and the next one replaces it",
)
def test_a_question_of_the_future_is_none() -> None:
    async def play(store: Store, clock: VirtualClock) -> None:
        later = datetime(9999, 12, 31, tzinfo=UTC)
        store.record = LeaseRecord(holder="t", acquired_at=later, renewed_at=later, duration_s=30)
        asked, leads = (Questions(store, name, clock) for name in ("a", "b"))
        await leads.read()
        assert leads.asked_at is None

        await asked.note()
        await leads.read()
        assert clock.now() == leads.asked_at

    played(play)
