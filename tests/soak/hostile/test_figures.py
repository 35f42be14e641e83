"""What counts in a hostile run: whose standstill it was, what was used, which goal was missed, and how it is told."""

from dataclasses import asdict

import pytest

from benchmarks.results import Spread
from tests.soak.hostile import figures, page, samples
from tests.soak.hostile.figures import ALONE, BESIDE, Account, Burst, Goal, Reading, Stretch

STRETCHES = (Stretch(ALONE, 100, 200), Stretch(BESIDE, 200, 1000))


def reading(at_s: float, **changes: float) -> Reading:
    fields = {"pid": 7, "memory_mib": 50.0, "cpu_s": 0.0} | changes
    return Reading(at_s=at_s, **fields)  # type: ignore[arg-type]  # of several types


def summed(*readings: Reading) -> Account:
    return figures.account("webhook", 256, readings, STRETCHES)


def test_a_standstill_of_before_is_not_counted_until_it_is_forgotten() -> None:
    """The metric shows one for five to ten minutes."""
    shown = summed(
        reading(50, stand_s=0.9),
        reading(150, stand_s=0.9),
        reading(300, stand_s=0.9),
        reading(700, stand_s=0.1),
    )

    assert (0.0, 0.0) == (shown.stand_alone_s, shown.stand_s)


def test_a_longer_standstill_counts_at_once_and_any_after_ten_minutes() -> None:
    longer = summed(reading(150, stand_s=0.1), reading(300, stand_s=0.4))
    later = summed(reading(150, stand_s=0.9), reading(850, stand_s=0.4))

    assert 0.4 == longer.stand_s
    assert 0.4 == later.stand_s


def test_all_that_a_new_process_shows_is_its_own() -> None:
    shown = summed(reading(150, stand_s=0.9), reading(300, stand_s=0.3, pid=8))

    assert 0.3 == shown.stand_s
    assert 1 == shown.restarts


def test_a_program_without_a_loop_has_no_standstill() -> None:
    assert summed(reading(150), reading(300)).stand_s is None


def test_processor_time_is_counted_over_restarts() -> None:
    shown = summed(
        reading(110, cpu_s=1),
        reading(190, cpu_s=9),
        reading(210, cpu_s=10),
        reading(220, cpu_s=2, pid=8),
        reading(230, cpu_s=6, pid=8),
    )

    assert 8 / 80 == shown.cpu_alone
    assert 6 / 20 == shown.cpu


def test_failed_probes_count_in_a_row() -> None:
    answers = (False, True, False, False, True)
    shown = summed(*(reading(210 + at, is_alive=so) for at, so in enumerate(answers)), reading(220))

    assert 2 == shown.failed_probes


def test_pods_belong_to_the_stretch_in_which_they_were_sent() -> None:
    sent = {"a": 150.0, "b": 199.0, "c": 210.0, "d": 220.0}
    bound = {"a": 151.0, "b": 202.0, "c": 214.0}

    spread, unbound = figures.times(sent, bound, STRETCHES[0])
    assert (3.0, 0) == (spread.longest_s if spread else None, unbound)
    spread, unbound = figures.times(sent, bound, STRETCHES[1])
    assert (4.0, 1) == (spread.longest_s if spread else None, unbound)


def test_attacks_are_told_with_what_they_cost_the_dearest_first() -> None:
    bursts = [
        Burst("a tenant", "floods", 200, 210),
        Burst("a tenant", "floods", 300, 310, "ApiError: 429"),
        Burst("a Slurm user", "crowds", 400, 410),
    ]
    sent = {"a": 201.0, "b": 305.0, "c": 405.0, "d": 500.0}
    bound = {
        name: moment + took for (name, moment), took in zip(sent.items(), (1, 2, 5, 9), strict=True)
    }

    dearest, other = figures.attacks(bursts, sent, bound)

    assert ("crowds", 5.0) == (dearest.what, dearest.p99_s)
    assert ("floods", 2, 1, "ApiError: 429", 2.0) == (
        other.what,
        other.bursts,
        other.failures,
        other.failure,
        other.p99_s,
    )


def test_the_attacks_during_the_longest_standstill_are_named() -> None:
    readings = [reading(at, stand_s=stand) for at, stand in ((210, 0.1), (220, 0.5), (230, 0.5))]
    bursts = [
        Burst("a tenant", "floods", 200, 205),
        Burst("a tenant", "churn", 208, 213),
        Burst("a tenant", "scripts", 225, 228),
    ]

    assert ["churn"] == figures.suspects(readings, bursts, 200)
    assert () == figures.suspects(readings, bursts, 300)


def test_each_goal_is_missed_beyond_its_figure() -> None:
    quick, slow = (Spread(p50_s=0.1, p99_s=p99, longest_s=p99) for p99 in (0.5, 1.1))
    well = Account(
        name="webhook",
        limit_mib=256,
        peak_mib=0.8 * 256,
        stand_alone_s=0.0,
        stand_s=0.25,
        cpu_alone=0,
        cpu=0,
        restarts=0,
        failed_probes=5,
    )
    ill = Account(
        **{**asdict(well), "peak_mib": 210, "stand_s": 0.26, "restarts": 1, "failed_probes": 6}
    )

    assert all(
        goal.is_reached
        for goal in figures.goals(quick, quick, [well], unbound=0, held_back=0, breaches=0)
    )
    missed = [
        goal
        for goal in figures.goals(quick, slow, [ill], unbound=1, held_back=1, breaches=1)
        if not goal.is_reached
    ]
    assert 8 == len(missed)


def test_the_page_and_the_summary_tell_what_was_missed() -> None:
    goal = Goal(name="p99", value=3, most=2)
    quick = {"p50_s": 0.1, "p99_s": 0.2, "longest_s": 0.3}
    run = {
        "minutes": 60,
        "rate": 5,
        "most_alive": 40,
        "held_back": 0,
        "idle_s": 0.02,
        "cores": 2,
        "load": 3.0,
        "goals": [{**asdict(goal), "is_reached": goal.is_reached}],
        "times": [
            (page.HONEST, ALONE, 10, quick),
            (page.PLAIN, ALONE, 10, quick),
            (page.PLAIN, BESIDE, 10, {**quick, "p99_s": 0.3}),
        ],
        "accounts": [asdict(summed(reading(150), reading(300)))],
        "attacks": [],
        "wrong": [("half a JSON document", 3)],
        "suspects": [("webhook", ["floods", "crowds"])],
        "breaches": ["a pod is gone"],
    }

    told = "\n".join(page.section(run))
    assert "| p99 | 3 | 2 | **missed** |" in told
    assert "| honest, alone | 10 | 0.10 s | 0.20 s | 0.30 s |" in told
    assert "| half a JSON document | 3 |" in told
    missed, broken, stand, share, verdict = page.summary(run)
    assert "MISSED  p99: 3  (at most 2)" == missed
    assert "BROKEN  a pod is gone" == broken
    assert "during the longest stand of webhook: floods, crowds" == stand
    assert "bound after 1.5 times as long" in share
    assert "1 of 1 goals missed" == verdict


@pytest.mark.parametrize(("text", "mib"), [("256Mi", 256), ("1Gi", 1024)])
def test_limits_are_those_of_the_chart(text: str, mib: float) -> None:
    assert mib == samples.limit_mib({"resources": {"limits": {"memory": text}}})


def test_the_longest_loop_of_a_page_counts() -> None:
    shown = 'slurm_bridge_loop_longest_standstill_seconds{loop="%s"} %s\n'
    page_of_two = "# HELP a b\n" + shown % ("main", 0.1) + shown % ("scheduler", 0.3)

    assert 0.3 == samples.stand_in(page_of_two)
    assert samples.stand_in("nothing") is None
