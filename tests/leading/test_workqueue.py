"""The queue's promises, in virtual time: no key lost, none worked on twice at a time, none kept for nothing."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmruntime.leading.workqueue import ShutDown, WorkQueue
from tests import virtual_time
from tests.virtual_time import VirtualClock


def queue(**options: timedelta) -> WorkQueue[str]:
    return WorkQueue(rng=random.Random(1), **options)  # noqa: S311  # jitter needs no secrecy


def in_virtual_time(
    test: Callable[[VirtualClock], Coroutine[Any, Any, None]],
) -> Callable[[], None]:
    """Run a test on the virtual loop."""

    def run() -> None:
        virtual_time.run(test)

    run.__name__ = test.__name__
    return run


@in_virtual_time
async def test_a_key_that_waits_is_one_key_however_often_it_is_added(clock: VirtualClock) -> None:
    keys = queue()
    for key in "abab":
        keys.add(key)

    assert 2 == len(keys)
    assert ["a", "b"] == [await keys.get(), await keys.get()]
    assert 0 == len(keys)


@in_virtual_time
async def test_a_key_that_is_added_while_it_is_worked_on_comes_again_afterwards(
    clock: VirtualClock,
) -> None:
    keys = queue()
    keys.add("a")
    key = await keys.get()
    keys.add("a")
    keys.add("a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await keys.get()
    keys.done(key)

    assert "a" == await keys.get()
    keys.done("a")
    assert 0 == len(keys)


@in_virtual_time
async def test_a_delayed_key_comes_at_the_earliest_of_its_times(clock: VirtualClock) -> None:
    keys = queue()
    keys.add_after("a", 30)
    keys.add_after("a", 10)
    keys.add_after("a", 20)
    await keys.get()
    keys.done("a")

    assert 10 == clock.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3600):
            await keys.get()


@in_virtual_time
async def test_who_comes_after_a_thousand_of_another_lane_waits_for_one_of_them(
    clock: VirtualClock,
) -> None:
    keys = queue()
    keys.serve_by(lambda key: key[0])
    for number in range(1000):
        keys.add(f"a{number}")
    keys.add("b0")
    keys.add("b1")
    keys.add("c0")

    assert ["a0", "b0", "c0", "a1", "b1", "a2", "a3"] == [await keys.get() for _ in range(7)]


@in_virtual_time
async def test_who_gives_up_waiting_takes_no_key_away(clock: VirtualClock) -> None:
    keys = queue()
    waiting = [asyncio.get_running_loop().create_task(keys.get()) for _ in range(2)]
    await clock.sleep(1)
    keys.add("a")
    waiting[0].cancel()

    assert "a" == await waiting[1]


@in_virtual_time
async def test_a_key_that_is_taken_up_is_no_longer_due_later(clock: VirtualClock) -> None:
    keys = queue()
    keys.add_after("a", 30)
    keys.add("a")
    key = await keys.get()
    keys.add_after(key, 50)
    keys.done(key)
    await keys.get()

    assert 50 == clock.monotonic()


@in_virtual_time
async def test_a_key_is_worked_on_until_it_is_done(clock: VirtualClock) -> None:
    keys = queue()
    keys.add("a")
    before = keys.is_worked_on("a")
    key = await keys.get()
    meanwhile = keys.is_worked_on(key)
    keys.done(key)

    assert [False, True, False] == [before, meanwhile, keys.is_worked_on(key)]


@in_virtual_time
async def test_retries_back_off_up_to_a_cap_until_forgotten(clock: VirtualClock) -> None:
    keys = queue(first_retry=timedelta(seconds=1), slowest_retry=timedelta(seconds=10))
    delays = [keys.retry("a") for _ in range(100)]
    keys.forget("a")
    after_success = keys.retry("a")

    for delay, longest in zip(delays, [1, 2, 4, 8, *itertools.repeat(10, 96)], strict=True):
        assert longest / 2 <= delay <= longest
    assert after_success <= 1
    assert len(set(delays[4:])) > 90, "there is jitter"


@in_virtual_time
async def test_a_key_with_news_is_retried_as_if_it_had_never_failed(clock: VirtualClock) -> None:
    keys = queue(first_retry=timedelta(seconds=1), slowest_retry=timedelta(seconds=60))
    for _ in range(8):
        keys.retry("a")
    keys.add("a")
    keys.done(await keys.get())
    assert keys.retry("a") >= 30  # it came up again, but nobody had news

    keys.add_afresh("a")
    keys.done(await keys.get())
    assert keys.retry("a") <= 1


async def reminded(keys: WorkQueue[str], clock: VirtualClock, *, seconds: float) -> int:
    """Look at a key whose every look is refused, and remind of it all the time; return how often."""
    looks = 0
    keys.add("a")
    end = clock.monotonic() + seconds
    while clock.monotonic() < end:
        if len(keys):
            looks += 1
            key = await keys.get()
            if looks % 2:  # each refused look has the key reminded of, at once or a little later
                keys.remind(key)
            keys.retry(key, refused=True)
            keys.done(key)
        await clock.sleep(0.1)
        keys.remind("a")
    return looks


@in_virtual_time
async def test_what_was_refused_waits_for_its_retry_whatever_reminds_of_it(
    clock: VirtualClock,
) -> None:
    keys = queue(first_retry=timedelta(seconds=1), slowest_retry=timedelta(seconds=60))

    assert await reminded(keys, clock, seconds=120) <= 9

    keys.add("a")
    assert len(keys) == 1, "news is looked at at once"


@in_virtual_time
async def test_a_reminder_is_as_good_as_news_unless_something_was_refused(
    clock: VirtualClock,
) -> None:
    keys = queue(first_retry=timedelta(seconds=60))
    keys.remind("a")
    key = await keys.get()
    keys.remind(key)
    keys.done(key)
    key = await keys.get()
    keys.retry(key)  # the peer is away: an answer shows that it is back
    keys.done(key)
    keys.remind(key)

    assert len(keys) == 1


@in_virtual_time
async def test_a_look_that_only_waits_ends_no_series_of_refusals(clock: VirtualClock) -> None:
    keys = queue(first_retry=timedelta(seconds=1), slowest_retry=timedelta(seconds=60))
    for _ in range(6):
        keys.retry("a", refused=True)
    keys.undecided("a")
    keys.succeeded("a")
    assert keys.retry("a", refused=True) >= 30

    keys.succeeded("a")
    assert keys.retry("a", refused=True) <= 1


@in_virtual_time
async def test_one_keys_failures_do_not_slow_down_another(clock: VirtualClock) -> None:
    keys = queue(first_retry=timedelta(seconds=1))
    for _ in range(5):
        keys.retry("a")

    assert keys.retry("b") <= 1


@in_virtual_time
async def test_nothing_is_kept_of_keys_that_went_well(clock: VirtualClock) -> None:
    keys = queue()
    for n in range(1000):
        keys.add(str(n))
        key = await keys.get()
        keys.retry(key, refused=True)
        keys.undecided(key)
        keys.remind(key)
        keys.succeeded(key)
        keys.succeeded(key)
        keys.done(key)
    for _ in range(1000):  # the retries
        keys.done(await keys.get())

    kept = (keys._dirty, keys._processing, keys._later, keys._failures)
    more = (keys._refused, keys._undecided, keys._reminded)
    assert [0] * 7 == [len(each) for each in (*kept, *more)]


@in_virtual_time
async def test_shut_down_wakes_whoever_waits_and_hands_out_nothing_more(
    clock: VirtualClock,
) -> None:
    keys = queue()
    keys.add("a")
    key = await keys.get()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(is_refused(keys)) for _ in range(3)]
        await clock.sleep(1)
        keys.add("b")
        keys.add_after("c", 1)
        keys.shut_down()
    keys.add(key)
    keys.done(key)
    keys.add_after(key, 0)
    await clock.sleep(10)

    assert [True, True, True] == [task.result() for task in waiting]
    assert await is_refused(keys)
    assert 0 == len(keys)


async def is_refused(keys: WorkQueue[str]) -> bool:
    try:
        await keys.get()
    except ShutDown:
        return True
    return False


OPERATIONS: dict[str, Callable[[WorkQueue[str], str, float], object]] = {
    "add": lambda keys, key, _delay_s: keys.add(key),
    "add after": lambda keys, key, delay_s: keys.add_after(key, delay_s),
    "retry": lambda keys, key, _delay_s: keys.retry(key),
    "be refused": lambda keys, key, _delay_s: keys.retry(key, refused=True),
    "forget": lambda keys, key, _delay_s: keys.forget(key),
}

HISTORY = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(sorted(OPERATIONS)), st.floats(0, 5)),
    max_size=40,
)
"""Keys, what is done with them, and seconds (until the next one, and of delays)."""


class Workers:
    """Work on keys for so long each, and watch over it."""

    def __init__(self, keys: WorkQueue[str], durations_s: list[float]) -> None:
        self._keys = keys
        self._durations_s = itertools.cycle(durations_s)
        self._at_work: Counter[str] = Counter()
        self._moments = itertools.count()
        self.added: list[tuple[str, int]] = []
        self.begun: list[tuple[str, int]] = []

    def add(self, key: str) -> None:
        self.added.append((key, next(self._moments)))

    async def work(self) -> None:
        while True:
            try:
                key = await self._keys.get()
            except ShutDown:
                return
            self.begun.append((key, next(self._moments)))
            self._at_work[key] += 1
            assert 1 == self._at_work[key]
            await asyncio.sleep(next(self._durations_s))
            self._at_work[key] -= 1
            self._keys.done(key)


@settings(deadline=None)
@given(history=HISTORY, count=st.integers(1, 4), durations_s=st.lists(st.floats(0, 3), min_size=1))
def test_no_key_is_lost_and_none_is_worked_on_twice_at_once(
    history: list[tuple[str, str, float]], count: int, durations_s: list[float]
) -> None:
    """Whatever is added is looked at by somebody who began after it was added."""

    async def main(clock: VirtualClock) -> Workers:
        keys = queue()
        keys.serve_by(lambda key: key in "ab")
        workers = Workers(keys, durations_s)
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(workers.work())
            for key, operation, seconds in history:
                if operation != "forget":
                    workers.add(key)
                OPERATIONS[operation](keys, key, seconds)
                await clock.sleep(seconds)
            await clock.sleep(1000)
            assert 0 == len(keys)
            keys.shut_down()
        return workers

    workers = virtual_time.run(main)

    for key, at in workers.added:
        assert any(key == other and began > at for other, began in workers.begun)
    assert len(workers.begun) <= len(workers.added)
