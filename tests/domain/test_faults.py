import itertools

from hypothesis import given
from hypothesis import strategies as st

from slurmruntime.values import faults
from slurmruntime.values.faults import Fault


def test_few_short_faults_stay_as_they_are() -> None:
    few = (Fault("a", "one"), Fault("b", "two"))

    assert few == faults.bounded(few)
    assert "a: one; b: two" == faults.one_line(few)


def test_of_many_faults_the_first_are_told_and_that_there_are_more() -> None:
    told = faults.bounded(Fault(f"f{n}", "wrong") for n in itertools.count())

    assert faults.MOST_FAULTS == len(told)
    assert "f0" == told[0].path
    assert "and more" == told[-1].path


@given(st.lists(st.builds(Fault, st.text(max_size=2000), st.text(max_size=6000)), max_size=30))
def test_whatever_is_wrong_is_told_in_4_kb(found: list[Fault]) -> None:
    assert len(faults.one_line(found).encode(errors="replace")) <= faults.LONGEST_TEXT


@given(st.text(max_size=3000), st.integers(min_value=3, max_value=2000))
def test_a_text_cut_off_is_cut_off_once(text: str, most: int) -> None:
    short = faults.shortened(text, most)

    assert len(short.encode(errors="replace")) <= most
    assert short == faults.shortened(short, most)
