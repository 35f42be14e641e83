from bridge.domain.observation import kicks
from bridge.domain.observation.kicks import KickTimes


def test_what_is_wanted_at_once_is_served_by_one_kick() -> None:
    wanted = KickTimes().at(3.0).at(1.0).at(2.0)

    assert 1.0 == wanted.next_at
    assert 3.0 not in (wanted.first_at, wanted.again_at)
    assert None is wanted.after(1.0).next_at


def test_a_series_ends_with_one_kick_after_the_last() -> None:
    wanted = KickTimes().at(0.1).again(1.0).at(0.2).again(1.1).after(0.1)

    assert 1.1 == wanted.next_at
    assert None is wanted.after(1.1).next_at


def test_kicks_are_twenty_a_second_at_most_and_two_percent_of_a_core() -> None:
    assert 0.05 == kicks.pause_s(0.0)
    assert 0.05 == kicks.pause_s(0.001)
    assert 5.0 == kicks.pause_s(0.1)
    assert kicks.LONGEST_PAUSE_S == kicks.pause_s(1e9)


def test_the_effect_of_a_kick_is_read_when_the_scheduler_has_run() -> None:
    assert 0.02 == kicks.settles_s(0.0)
    assert 1.02 == kicks.settles_s(1.0)
    assert 2.0 == kicks.settles_s(1e9)
