from bridge.reconcile.completion import FORGOTTEN_S, PATIENCE_S, TAKEOVER_S, Silence


def test_a_port_that_stays_out_of_reach_is_hopeless_after_a_while() -> None:
    silence = Silence()

    assert [False, False, True] == [
        silence.is_hopeless(at) for at in (0, PATIENCE_S - 1, PATIENCE_S)
    ]


def test_an_answer_in_between_begins_anew() -> None:
    silence = Silence()
    silence.is_hopeless(0)
    silence.ends()

    assert not silence.is_hopeless(PATIENCE_S)


def test_an_outage_of_long_ago_does_not_count_for_a_new_one() -> None:
    """Its retries may have stopped without an answer: the placeholder ended some other way."""
    silence = Silence()
    silence.is_hopeless(0)
    later = FORGOTTEN_S + 1

    assert not silence.is_hopeless(later)
    assert silence.is_hopeless(later + PATIENCE_S)


def test_while_a_backup_takes_over_nothing_is_hopeless() -> None:
    """It can be reached all the time, but for the moment when it takes over."""
    silence = Silence()
    while_in_standby = [
        silence.is_hopeless(at, reached=True) for at in (0, PATIENCE_S, 4 * PATIENCE_S)
    ]

    assert [False] * 3 == while_in_standby
    assert not silence.is_hopeless(5 * PATIENCE_S - 1)
    assert silence.is_hopeless(5 * PATIENCE_S)


def test_a_backup_that_never_takes_over_is_hopeless_in_the_end() -> None:
    silence = Silence()
    step_s = int(FORGOTTEN_S)
    found = [silence.is_hopeless(at, reached=True) for at in range(0, int(TAKEOVER_S) + 1, step_s)]

    assert [False, False, True] == found
