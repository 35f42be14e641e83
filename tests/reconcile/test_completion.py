from bridge.reconcile.completion import FORGOTTEN_S, PATIENCE_S, TAKEOVER_S, Outage


def test_a_port_that_stays_out_of_reach_is_hopeless_after_a_while() -> None:
    outage = Outage()

    assert [False, False, True] == [
        outage.is_hopeless(at) for at in (0, PATIENCE_S - 1, PATIENCE_S)
    ]


def test_an_answer_in_between_begins_anew() -> None:
    outage = Outage()
    outage.is_hopeless(0)
    outage.ends()

    assert not outage.is_hopeless(PATIENCE_S)


def test_an_outage_of_long_ago_does_not_count_for_a_new_one() -> None:
    """Its retries may have stopped without an answer: the placeholder ended some other way."""
    outage = Outage()
    outage.is_hopeless(0)
    later = FORGOTTEN_S + 1

    assert not outage.is_hopeless(later)
    assert outage.is_hopeless(later + PATIENCE_S)


def test_while_a_backup_takes_over_nothing_is_hopeless() -> None:
    """It can be reached all the time, but for the moment when it takes over."""
    outage = Outage()
    while_in_standby = [
        outage.is_hopeless(at, reached=True) for at in (0, PATIENCE_S, 4 * PATIENCE_S)
    ]

    assert [False] * 3 == while_in_standby
    assert not outage.is_hopeless(5 * PATIENCE_S - 1)
    assert outage.is_hopeless(5 * PATIENCE_S)


def test_a_backup_that_never_takes_over_is_hopeless_in_the_end() -> None:
    outage = Outage()
    step_s = int(FORGOTTEN_S)
    found = [outage.is_hopeless(at, reached=True) for at in range(0, int(TAKEOVER_S) + 1, step_s)]

    assert [False, False, True] == found
