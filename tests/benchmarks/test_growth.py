"""How growth is told from sameness, and that every dimension can be measured at all."""

import pytest

from benchmarks.dimensions import Dimension, all_of_them
from benchmarks.growth import Grown


def grown(*took_s: float, pods: int = 1) -> Grown:
    return Grown(name="pods", sizes=(10, 100, 1000), took_s=took_s, pods=pods)


def test_ten_times_as_much_for_ten_times_the_cost_is_linear() -> None:
    assert 1.0 == pytest.approx(grown(0.001, 0.01, 0.1).exponent)
    assert grown(0.001, 0.01, 0.1).is_linear


def test_a_hundred_times_the_cost_is_not() -> None:
    assert 2.0 == pytest.approx(grown(0.001, 0.01, 1.0).exponent)
    assert not grown(0.001, 0.01, 1.0).is_linear


def test_what_is_too_short_says_nothing() -> None:
    assert grown(0.00001, 0.00001, 0.0009).exponent is None
    assert grown(0.00001, 0.00001, 0.0009).is_linear


def test_a_look_at_many_pods_has_a_budget_for_each() -> None:
    assert grown(0.001, 0.01, 0.2, pods=1000).is_within_budget
    assert not grown(0.001, 0.01, 0.201, pods=1000).is_within_budget


@pytest.mark.parametrize("dimension", list(all_of_them()), ids=lambda dimension: dimension.name)
def test_every_dimension_can_be_measured(dimension: Dimension) -> None:
    smallest, *others = dimension.sizes
    dimension.prepare(smallest)()
    assert [10 * size for size in (smallest, *others[:-1])] == others
