"""What a cache makes of lists, watch events and our own writes, in whatever order they come."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmruntime.kube.cache import Cache
from slurmruntime.kube.resource import Json, ObjectVersion, ResourceKind
from slurmruntime.values.oddities import About
from slurmruntime.values.oddities import Kind as Called


@dataclass(frozen=True, slots=True)
class Thing:
    key: str
    version: str
    colour: str = "red"


def read(_: Json) -> Thing:
    raise NotImplementedError


THINGS = ResourceKind(
    path="/things", read=read, identify=lambda t: ObjectVersion(t.key, t.version, t.key)
)
FIRST, SECOND, THIRD = (Thing("a", version) for version in ("17", "9", "x"))


def cache_of(*things: Thing) -> Cache[Thing]:
    cache = Cache(THINGS)
    for thing in things:
        cache.put_listed(thing)
    return cache


def test_every_change_is_told_once() -> None:
    cache = cache_of()
    told: list[tuple[Thing | None, Thing | None]] = []
    cache.subscribe(lambda old, new: told.append((old, new)))

    cache.put(FIRST)
    cache.put(FIRST)
    cache.put(SECOND)
    cache.remove("a")
    cache.remove("a")

    assert [(None, FIRST), (FIRST, SECOND), (SECOND, None)] == told


def test_who_subscribes_late_is_told_what_is_there() -> None:
    told: list[tuple[Thing | None, Thing | None]] = []

    cache_of(FIRST).subscribe(lambda old, new: told.append((old, new)))

    assert [(None, FIRST)] == told


def test_what_a_list_lacks_is_gone() -> None:
    other = Thing("b", "1")
    cache = cache_of(FIRST, other)

    cache.retain({"b"})

    assert [other] == cache.values()


def test_an_index_follows_every_change() -> None:
    cache = cache_of(FIRST)
    by_colour = cache.index(lambda thing: [thing.colour, thing.colour[0]])
    assert [FIRST] == by_colour.get("red")

    blue = replace(SECOND, colour="blue")
    cache.put(blue)
    assert [] == by_colour.get("red")
    assert [blue] == by_colour.get("b")

    cache.remove("a")
    assert [] == by_colour.get("blue")


def test_our_own_write_is_seen_before_the_watch_delivers_it() -> None:
    cache = cache_of(FIRST)

    cache.observe(SECOND, base=FIRST.version)

    assert SECOND == cache.get("a")


def test_what_lies_between_base_and_our_write_does_not_take_it_back() -> None:
    cache = cache_of(FIRST)
    cache.observe(THIRD, base=FIRST.version)

    cache.put(SECOND)
    assert THIRD == cache.get("a")
    cache.put(THIRD)
    fourth = Thing("a", "4")
    cache.put(fourth)

    assert fourth == cache.get("a")


def test_a_write_that_the_watch_has_overtaken_changes_nothing() -> None:
    cache = cache_of(FIRST)
    cache.put(SECOND)
    cache.put(THIRD)

    cache.observe(SECOND, base=FIRST.version)

    assert THIRD == cache.get("a")


def test_a_write_does_not_bring_back_what_is_gone() -> None:
    cache = cache_of(FIRST)
    cache.remove("a")

    cache.observe(SECOND, base=FIRST.version)

    assert cache.get("a") is None


def test_a_write_that_changed_nothing_does_not_block_the_watch() -> None:
    cache = cache_of(FIRST)
    cache.observe(FIRST, base=FIRST.version)

    cache.put(SECOND)

    assert SECOND == cache.get("a")


def test_a_list_wins_over_a_write_it_may_have_skipped() -> None:
    cache = cache_of(FIRST)
    cache.observe(SECOND, base=FIRST.version)

    cache.put_listed(THIRD)
    cache.put(fourth := Thing("a", "4"))

    assert fourth == cache.get("a")


class History:
    """One object as etcd, the watch and its writers see it, each at its own pace."""

    def __init__(self, versions: list[str]) -> None:
        self.things = [Thing("a", version) for version in versions]
        self.cache = cache_of(self.things[0])
        self.written = 0
        """Index of the newest version in etcd."""
        self.delivered = 0
        """Index of the newest version the watch has delivered."""
        self.decided: list[str] = []
        """What the cache showed to each of us who has decided to write and not written yet."""
        self.answers: list[tuple[Thing, str]] = []
        """What was written on which base, and the writer does not know yet."""

    def steps(self) -> dict[str, Callable[[], None]]:
        """What can happen next; nothing when all is written, delivered and answered."""
        more = self.written < len(self.things) - 1
        possible = {
            "decide": (more and len(self.decided) < 3, self.decide),
            "write": (more and bool(self.decided), self.write),
            "somebody writes": (more, self.somebody_writes),
            "deliver": (self.delivered < self.written, self.deliver),
            "answer": (bool(self.answers), self.answer),
        }
        return {name: step for name, (can, step) in possible.items() if can}

    def decide(self) -> None:
        self.decided.append(self.shown().version)

    def write(self) -> None:
        self.written += 1
        self.answers.append((self.things[self.written], self.decided.pop(0)))

    def somebody_writes(self) -> None:
        self.written += 1

    def deliver(self) -> None:
        self.delivered += 1
        self.cache.put(self.things[self.delivered])

    def answer(self) -> None:
        new, base = self.answers.pop()
        self.cache.observe(new, base=base)

    def shown(self) -> Thing:
        found = self.cache.get("a")
        assert found is not None
        return found


@given(st.lists(st.uuids().map(str), min_size=2, max_size=8, unique=True), st.data())
def test_the_cache_never_goes_back_and_ends_with_the_truth(
    versions: list[str], data: st.DataObject
) -> None:
    history = History(versions)
    shown = [0]
    while steps := history.steps():
        steps[data.draw(st.sampled_from(sorted(steps)))]()
        shown.append(history.things.index(history.shown()))

    assert sorted(shown) == shown
    assert history.things[-1] == history.shown()


class Aside:
    """Writes down what is set aside."""

    def __init__(self) -> None:
        self.crashes: list[str] = []
        self.now: set[str] = set()

    def tell(self, kind: Called, name: str, reason: str, *, about: About | None = None) -> None:
        raise NotImplementedError

    def crashed(
        self, kind: Called, name: str, error: Exception, *, about: About | None = None
    ) -> None:
        self.crashes.append(f"{kind} {name}: {error}")
        self.now.add(name)

    def settled(self, kind: Called, name: str) -> None:
        self.now.remove(name)


class Touchy:
    """A subscriber that cannot bear one colour."""

    def __init__(self) -> None:
        self.hated = "blue"
        self.told: list[tuple[Thing | None, Thing | None]] = []

    def __call__(self, old: Thing | None, new: Thing | None) -> None:
        if new is not None and new.colour == self.hated:
            raise ValueError(self.hated)
        self.told.append((old, new))


def test_a_subscriber_that_raises_costs_that_object_only() -> None:
    aside, touchy = Aside(), Touchy()
    told: list[tuple[Thing | None, Thing | None]] = []
    cache = Cache(THINGS, aside)
    blue, other = replace(FIRST, colour="blue"), Thing("b", "1")
    cache.put(blue)

    cache.subscribe(touchy)
    cache.subscribe(lambda old, new: told.append((old, new)))
    cache.put(other)

    assert blue == cache.get("a")
    assert [(None, other)] == touchy.told
    assert [(None, blue), (None, other)] == told
    assert ["object a: blue"] == aside.crashes
    assert {"a"} == aside.now


def test_what_a_subscriber_raised_over_is_told_again() -> None:
    aside, touchy = Aside(), Touchy()
    cache = Cache(THINGS, aside)
    cache.subscribe(touchy)
    blue = replace(FIRST, colour="blue")
    cache.put(blue)

    cache.try_again()
    assert 2 == len(aside.crashes)
    touchy.hated = "green"
    cache.try_again()
    cache.try_again()

    assert [(None, blue)] == touchy.told
    assert set() == aside.now


@pytest.mark.parametrize("then", [SECOND, None], ids=["its next version", "its end"])
def test_an_object_is_set_aside_no_longer_than_it_is_odd(then: Thing | None) -> None:
    aside, touchy = Aside(), Touchy()
    cache = Cache(THINGS, aside)
    cache.subscribe(touchy)
    blue = replace(FIRST, colour="blue")
    cache.put(blue)

    if then is None:
        cache.remove("a")
    else:
        cache.put(then)

    assert [(blue, then)] == touchy.told
    assert set() == aside.now


def test_an_object_that_cannot_be_indexed_is_in_no_index() -> None:
    aside = Aside()
    cache = Cache(THINGS, aside)
    by_number = cache.index(lambda thing: [str(int(thing.colour))])
    cache.put(FIRST)
    cache.put(replace(SECOND, key="b", colour="7"))

    assert FIRST == cache.get("a")
    assert ["b"] == [thing.key for thing in by_number.get("7")]
    assert {"a"} == aside.now
    cache.put(replace(SECOND, colour="7"))
    assert {"a", "b"} == {thing.key for thing in by_number.get("7")}
    assert set() == aside.now


def test_without_anybody_to_tell_an_error_comes_out() -> None:
    cache = Cache(THINGS)
    cache.subscribe(Touchy())

    with pytest.raises(ValueError, match="blue"):
        cache.put(replace(FIRST, colour="blue"))


def test_a_list_of_one_share_leaves_the_others_alone() -> None:
    cache = cache_of()
    one, other = cache.share(), cache.share()
    there = Thing("b", "1")
    one.put_listed(FIRST)
    other.put(there)

    one.retain([])
    one.remove("b")

    assert [there] == cache.values()


def test_what_a_list_of_a_share_lacks_is_gone() -> None:
    cache = cache_of()
    share, _ = cache.share(), cache.share()
    share.put_listed(FIRST)
    share.put(Thing("b", "1"))

    share.retain(["a"])

    assert [FIRST] == cache.values()


def test_a_cache_is_complete_when_all_its_shares_are() -> None:
    """Until then absence means nothing: pods of the other share would be taken for gone."""
    cache = cache_of()
    one, other = cache.share(), cache.share()

    one.listed()
    assert one.synced.is_set()
    assert not cache.synced.is_set()
    other.listed()
    assert cache.synced.is_set()


def test_our_own_write_is_seen_before_the_watch_tells_it_through_a_share() -> None:
    cache = cache_of()
    share = cache.share()
    share.put(FIRST)

    cache.observe(THIRD, base=FIRST.version)
    share.put(SECOND)

    assert [THIRD] == cache.values()
