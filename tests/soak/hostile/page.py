"""The section of docs/reliability.md about a hostile run, and what is printed at its end. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.soak.hostile.figures import ALONE, BESIDE

Row = Mapping[str, Any]
HONEST, ANSWERED, PLAIN = "honest", "honest, until CREATE is answered", "not Slurm's"
"""Whose times are told."""


def section(run: Row) -> Sequence[str]:
    """The lines of the page."""
    return [
        (
            f"{run['minutes']:g} minutes, {run['rate']:g} honest pods a second; at most {run['most_alive']} were alive at once,"
            f" {run['held_back']} were held back for that."
        ),
        (
            f"Meanwhile a process that only waits was late by up to {1000 * run['idle_s']:.0f} ms on this machine of {run['cores']} cores,"
            f" and {run['load']:.0f} processes wanted to run."
        ),
        "",
        "| goal | measured | at most | |",
        "| --- | --- | --- | --- |",
        *(_goal(goal) for goal in run["goals"]),
        "",
        "| CREATE → bound | pods | p50 | p99 | longest |",
        "| --- | --- | --- | --- | --- |",
        *(_times(*row) for row in run["times"]),
        "",
        "| program | peak of memory | limit | longest stand, alone | beside | cores, alone | beside |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(_account(one) for one in run["accounts"]),
        "",
        "| who | attack | times | failed | p99 of honest pods meanwhile |",
        "| --- | --- | --- | --- | --- |",
        *(_attack(attack) for attack in run["attacks"]),
        "",
        "| Slurm's wrong answers | times |",
        "| --- | --- |",
        *(f"| {what} | {times} |" for what, times in run["wrong"]),
    ]


def summary(run: Row) -> Sequence[str]:
    """What a person wants to know at once."""
    missed = [goal for goal in run["goals"] if not goal["is_reached"]]
    lines = [
        f"{'MISSED ' if not goal['is_reached'] else 'reached'} {goal['name']}:"
        f" {_figure(goal['value'])} {goal['unit']} (at most {_figure(goal['most'])})"
        for goal in run["goals"]
    ]
    lines += [f"BROKEN  {breach}" for breach in run["breaches"]]
    lines += [
        f"during the longest stand of {name}: {', '.join(attacks) or 'no attack'}"
        for name, attacks in run["suspects"]
    ]
    lines.append(_machines_share(run))
    return [
        *lines,
        f"{len(missed)} of {len(run['goals'])} goals missed" if missed else "all goals reached",
    ]


def _machines_share(run: Row) -> str:
    """How much of all that is not ours: other pods wait longer as well, and so does a process that does nothing."""
    plain = {stretch: spread for who, stretch, _, spread in run["times"] if who == PLAIN}
    alone, beside = plain.get(ALONE), plain.get(BESIDE)
    share = (
        f"{beside['p99_s'] / alone['p99_s']:.1f} times as long" if alone and beside else "nowhere"
    )
    return (
        f"meanwhile, 99 % of pods that are not Slurm's were bound after {share},"
        f" and a process that only waits was late by up to {1000 * run['idle_s']:.0f} ms (load {run['load']:.1f})"
    )


def _goal(goal: Row) -> str:
    unit = f" {goal['unit']}" if goal["unit"] else ""
    verdict = "" if goal["is_reached"] else "**missed**"
    return f"| {goal['name']} | {_figure(goal['value'])}{unit} | {_figure(goal['most'])}{unit} | {verdict} |"


def _figure(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _times(who: str, stretch: str, pods: int, spread: Row | None) -> str:
    if spread is None:
        return f"| {who}, {stretch} | {pods} | | | |"
    return f"| {who}, {stretch} | {pods} | {spread['p50_s']:.2f} s | {spread['p99_s']:.2f} s | {spread['longest_s']:.2f} s |"


def _account(one: Row) -> str:
    return (
        f"| {one['name']} | {one['peak_mib']:.0f} MiB | {one['limit_mib']:g} MiB"
        f" | {_ms(one['stand_alone_s'])} | {_ms(one['stand_s'])} | {one['cpu_alone']:.2f} | {one['cpu']:.2f} |"
    )


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{1000 * seconds:.0f} ms"


def _attack(attack: Row) -> str:
    p99 = "" if attack["p99_s"] is None else f"{attack['p99_s']:.2f} s"
    return f"| {attack['actor']} | {attack['what']} | {attack['bursts']} | {attack['failures']} | {p99} |"
