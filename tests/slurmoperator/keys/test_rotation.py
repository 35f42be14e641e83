"""When the next step of a key is due: never too early, and always in the end."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.keys import rings, rotation
from slurmoperator.keys.rotation import KeyHolder, RotationDecision, RotationFacts, decide
from slurmoperator.objects.labels import KEY_NUMBER_ANNOTATION

BAD = "metadata.annotations[x]: expected a number"
NONE = RotationDecision()


def pods(*steps: int | None) -> tuple[KeyHolder, ...]:
    return tuple(KeyHolder(name=f"pod {at}", step=step) for at, step in enumerate(steps))


@pytest.mark.parametrize(
    ("facts", "writes", "reason"),
    [
        (RotationFacts(step=0, wanted=None, holders=pods(0)), None, ""),
        (RotationFacts(step=0, wanted=1), None, "InForce"),
        (RotationFacts(step=0, wanted=3), None, "BadInput"),
        (RotationFacts(step=0, wanted=None, bad_request=BAD), None, "BadInput"),
        (RotationFacts(step=0, wanted=2, holders=pods(0, 0)), 1, "Rotating"),
        (RotationFacts(step=0, wanted=2, holders=pods(0, None)), None, "Waiting"),
        (RotationFacts(step=0, wanted=2, elsewhere=("Accounting a",)), None, "Elsewhere"),
        (RotationFacts(step=1, wanted=2, holders=pods(1, 0)), None, "Waiting"),
        (RotationFacts(step=1, wanted=2, holders=pods(1, 1)), 2, "Rotating"),
        (RotationFacts(step=2, wanted=2, holders=pods(2, 1)), None, "Waiting"),
        (RotationFacts(step=2, wanted=2, holders=pods(2)), 3, "Rotating"),
        # What has begun goes on, whatever is asked for.
        (RotationFacts(step=1, wanted=None, holders=pods(1)), 2, "Rotating"),
        (RotationFacts(step=2, wanted=1, holders=pods(2)), 3, "Rotating"),
        (RotationFacts(step=2, wanted=None, bad_request=BAD, holders=pods(2)), 3, "Rotating"),
        (RotationFacts(step=2, wanted=2, holders=pods(2), elsewhere=("x",)), None, "Elsewhere"),
        # The last step is over when all have it.
        (RotationFacts(step=3, wanted=2, holders=pods(3, 2)), None, "Waiting"),
        (RotationFacts(step=3, wanted=2, holders=pods(3, 3)), None, "InForce"),
        (RotationFacts(step=3, wanted=None, holders=pods(3)), None, "InForce"),
        (RotationFacts(step=3, wanted=1), None, "BadInput"),
        (RotationFacts(step=3, wanted=4), None, "BadInput"),
        (RotationFacts(step=3, wanted=3, holders=pods(3)), 4, "Rotating"),
        (RotationFacts(step=3, wanted=2, elsewhere=("x",)), None, "InForce"),
        # A Secret of that name that is not ours is told once it would be written, and not before.
        (RotationFacts(step=0, wanted=2, holders=pods(0), unwritable="a"), None, "Failing"),
        (RotationFacts(step=0, wanted=2, holders=pods(1), unwritable="a"), None, "Waiting"),
        (RotationFacts(step=0, wanted=1, unwritable="a"), None, "InForce"),
    ],
)
def test_what_is_done(facts: RotationFacts, writes: int | None, reason: str) -> None:
    found = decide(facts)
    assert (writes, reason) == (found.writes, found.reason)
    assert found.truth == ("True" if reason in ("", "InForce") else "False")
    assert bool(found.message) is bool(reason)


def test_a_person_is_told_what_it_is_about_and_for_whom_it_waits() -> None:
    def said(**facts: object) -> str:
        return decide(RotationFacts(**facts)).message  # type: ignore[arg-type]  # what a test gives

    assert said(step=1, wanted=2, holders=pods(1, 0, 0, 0, 0)) == (
        "key 2, step 1 of 3: every daemon accepts the new key, the old one signs; waiting for "
        "pod 1, pod 2, pod 3 and 1 more"
    )
    assert said(step=4, wanted=3, holders=pods(4)).startswith(
        "key 3, step 2 of 3: the new key signs"
    )
    assert said(step=3, wanted=2, holders=pods(2)).startswith(
        "key 2, step 3 of 3: the old key is gone"
    )
    assert "every daemon uses key 2" == said(step=3, wanted=2)
    assert "expected 2, the key in force, or 3, the next one, found 1" in said(step=3, wanted=1)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, None),
        ({KEY_NUMBER_ANNOTATION: "1"}, 1),
        ({KEY_NUMBER_ANNOTATION: "27"}, 27),
        ({KEY_NUMBER_ANNOTATION: "0"}, "bad"),
        ({KEY_NUMBER_ANNOTATION: "-2"}, "bad"),
        ({KEY_NUMBER_ANNOTATION: "two"}, "bad"),
        ({KEY_NUMBER_ANNOTATION: ""}, "bad"),
        ({KEY_NUMBER_ANNOTATION: "9" * 5000}, "bad"),
    ],
)
def test_a_key_is_asked_for_by_its_number(
    annotations: dict[str, str], expected: int | str | None
) -> None:
    found = rotation.requested(3, annotations)
    assert found.step == 3
    assert found.wanted == (None if expected == "bad" else expected)
    assert (KEY_NUMBER_ANNOTATION in found.bad_request) is (expected == "bad")


@pytest.mark.parametrize(
    ("step", "wanted", "told", "expected"),
    [
        (0, None, "", False),
        (0, 1, "", False),
        (0, 2, "", True),
        (1, None, "", True),
        (3, 2, "", True),
        (3, 2, "every daemon uses key 2", False),
        (3, None, "every daemon uses key 2", False),
        (3, 3, "every daemon uses key 2", True),
        (6, 3, "every daemon uses key 2", True),
    ],
)
def test_nobody_is_asked_who_has_which_step_while_that_does_not_matter(
    step: int, wanted: int | None, told: str, *, expected: bool
) -> None:
    assert expected is rotation.is_open(step, wanted, told)


# -- a world ---------------------------------------------------------------------------------------


@dataclass
class World:
    """Daemons that are restarted one by one, some of which get the step in force late."""

    daemons: dict[str, int] = field(default_factory=dict)
    """The step that each one has; whoever starts gets that of its maker."""
    makers: dict[str, int] = field(default_factory=dict)
    """The step that each one gives to a daemon that it makes now."""
    step: int = 0
    wanted: int | None = None

    def look(self) -> RotationDecision:
        """What the leader does; it sees all makers and daemons as they are."""
        holders = [*self.makers.items(), *self.daemons.items()]
        found = decide(
            RotationFacts(
                step=self.step,
                wanted=self.wanted,
                holders=tuple(KeyHolder(name=name, step=step) for name, step in holders),
            )
        )
        if found.writes is not None:
            assert self.step + 1 == found.writes
            self.step = found.writes
        return found

    def check(self) -> None:
        """Everybody understands everybody, and those who start now, too."""
        steps = {*self.daemons.values(), *self.makers.values(), self.step}
        for one in steps:
            for other in steps:
                assert rings.signing_key(one) in rings.accepted_keys(other), (one, other)
        assert max(steps) - min(steps) <= 1


HAPPENS = st.one_of(
    st.tuples(st.just("look"), st.just(0)),
    st.tuples(st.just("maker follows"), st.integers(0, 2)),
    st.tuples(st.just("restart"), st.integers(0, 5)),
    st.tuples(st.just("another daemon"), st.integers(0, 2)),
    st.tuples(st.just("a daemon goes"), st.integers(0, 5)),
    st.tuples(st.just("ask"), st.sampled_from([None, 1, 2, 3, 4])),
)


def happen(world: World, what: str, which: int | None) -> None:
    """One thing; a daemon belongs to the maker whose number its name begins with."""
    makers, daemons = list(world.makers), list(world.daemons)
    match what:
        case "look":
            world.look()
        case "ask":
            world.wanted = which
        case "maker follows":
            world.makers[makers[(which or 0) % len(makers)]] = world.step
        case "another daemon":
            maker = makers[(which or 0) % len(makers)]
            world.daemons[f"{maker}-{len(daemons)}-{world.step}"] = world.makers[maker]
        case "restart" if daemons:
            name = daemons[(which or 0) % len(daemons)]
            world.daemons[name] = world.makers[name.partition("-")[0]]
        case "a daemon goes" if daemons:
            del world.daemons[daemons[(which or 0) % len(daemons)]]
        case _:
            return


def a_world() -> World:
    makers = dict.fromkeys("abc", 0)
    return World(daemons={f"{maker}-0": 0 for maker in makers}, makers=makers)


@given(st.lists(HAPPENS, max_size=120))
def test_nobody_is_ever_without_a_common_key_and_it_always_ends(
    happens: list[tuple[str, int | None]],
) -> None:
    world = a_world()
    for what, which in happens:
        happen(world, what, which)
        world.check()
    # From wherever that was, it comes to its end once all follow.
    for _ in range(2 * rings.STEPS_PER_KEY):
        world.makers = dict.fromkeys(world.makers, world.step)
        for name in list(world.daemons):
            happen(world, "restart", list(world.daemons).index(name))
            world.check()
        world.look()
        world.check()
    assert rings.is_complete(world.step)
    assert world.look().writes is None
    assert {world.step} == {*world.makers.values(), *world.daemons.values()}


def test_the_world_finds_a_step_that_is_too_early() -> None:
    world = a_world()
    world.step = 2
    with pytest.raises(AssertionError):
        world.check()


@given(st.integers(0, 9), st.integers(0, 9), st.lists(st.none() | st.integers(0, 9), max_size=5))
def test_no_step_is_taken_while_anybody_has_another_one(
    step: int, wanted: int, steps: list[int | None]
) -> None:
    facts = RotationFacts(step=step, wanted=wanted, holders=pods(*steps))
    found = decide(facts)
    if found.writes is not None:
        assert {step} >= {*steps}
        assert decide(replace(facts, elsewhere=("x",))).writes is None
