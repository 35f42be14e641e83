"""The steps from one key of Slurm's daemons to the next: what each says, and who understands whom."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.keys import rings

KEY = "slurm.key"
steps = st.integers(0, 1000)


def understands(one: int, other: int) -> bool:
    """Whether daemons of two steps accept what the other one signs."""
    return rings.signing_key(one) in rings.accepted_keys(other) and rings.signing_key(
        other
    ) in rings.accepted_keys(one)


@pytest.mark.parametrize(
    ("step", "signs", "known"),
    [
        (0, 1, {1}),
        (1, 1, {1, 2}),
        (2, 2, {1, 2}),
        (3, 2, {2}),
        (4, 2, {2, 3}),
        (5, 3, {2, 3}),
        (6, 3, {3}),
    ],
)
def test_each_step_has_its_keys(step: int, signs: int, known: set[int]) -> None:
    assert (signs, known) == (rings.signing_key(step), {*rings.accepted_keys(step)})


@given(steps)
def test_neighbours_understand_each_other_and_others_may_not(step: int) -> None:
    assert understands(step, step)
    assert understands(step, step + 1)
    assert not understands(step, step + 3)
    # 0 and 2, 1 and 3: whoever has one key only does not know the other one. From 2 to 4 both sign with the same.
    assert understands(step, step + 2) is (step % rings.STEPS_PER_KEY == 2)


@given(st.integers(1, 1000))
def test_what_a_step_says_is_what_is_read_of_it(step: int) -> None:
    keys = {number: bytes([number % 256]) * 32 for number in rings.accepted_keys(step)}
    text = rings.step_text(step, keys)
    assert keys == rings.keys_of(step, text)
    assert rings.keys_of(step + 1, text) is None


def test_a_step_is_as_slurm_reads_it() -> None:
    """`slurm.jwks` in <https://slurm.schedmd.com/authentication.html>."""
    found = json.loads(rings.step_text(2, {1: b"a" * 16, 2: b"\xff" * 16}))

    assert [{"alg", "kid", "kty", "k"}, {"alg", "kid", "kty", "k", "use"}] == [
        key.keys() for key in found["keys"]
    ]
    assert {("HS256", "oct")} == {(key["alg"], key["kty"]) for key in found["keys"]}
    assert "default" == found["keys"][1]["use"]
    assert b"\xff" * 16 == base64.urlsafe_b64decode(found["keys"][1]["k"] + "==")
    assert "=" not in found["keys"][1]["k"]


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b'{"keys":[]}', b"\xff", b'{"keys":[{"kid":"key-x","k":"YQ"}]}', b"[" * 5000],
)
def test_what_is_no_step_has_no_keys(text: bytes) -> None:
    assert rings.keys_of(1, text) is None


def test_a_damaged_step_has_no_keys() -> None:
    text = rings.step_text(1, {1: b"a" * 16, 2: b"b" * 16})
    assert rings.keys_of(1, text.replace(b"default", b"other")) is None
    assert rings.keys_of(1, text + b"\n") is None


def test_steps_are_found_by_their_names() -> None:
    assert "slurm.key.12.jwks" == rings.ring_item(KEY, 12)
    items = ["slurm.key.2.jwks", "slurm.key.10.jwks", "other.11.jwks", "slurm.key.012.jwks", "x"]
    assert 10 == rings.last_step(KEY, items)
    assert 0 == rings.last_step(KEY, [])
    for odd in (
        "slurm.key.0.jwks",
        "slurm.key..jwks",
        "slurm.key.-1.jwks",
        "slurm.key.1",
        "1.jwks",
    ):
        assert rings.step_of(KEY, odd) is None
