"""Stored runs become one table of medians, which takes the place of the page's."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import apiserver, columns, micro, scenarios
from benchmarks.meter import SERVICES
from benchmarks.results import ApiWork, Machine, Micro, Phase, Run, Shape, Usage
from benchmarks.table import medians, page, plan

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
_TITLES = (
    scenarios.PLAIN,
    scenarios.BOUND,
    scenarios.ENDED,
    scenarios.LIFE,
    scenarios.WAITING,
    scenarios.FREED,
)


def run(bound_s: float = 2.0, *, column: str = "defaults", **shape: Any) -> Run:
    chosen = columns.column(column)
    measured = Shape(
        pods=200,
        nodes=100,
        waiting_s=40,
        is_profiled=False,
        column=chosen.name,
        values=chosen.values,
    )
    usage = Usage(
        cpu_s=dict.fromkeys(SERVICES, 0.2),
        memory_mib=dict.fromkeys(SERVICES, 100.0),
        calls={"kube-scheduler → filter": 200},
    )
    phases = {title: Phase(pods=200, wall_s=40, usage=usage) for title in _TITLES}
    phases[scenarios.PLAIN] = Phase(pods=200, wall_s=1.0, usage=usage)
    phases[scenarios.BOUND] = Phase(pods=200, wall_s=bound_s, usage=usage)
    return Run(
        commit="abc",
        began_at="2026-05-04T12:00:00+00:00",
        machine=Machine(cores=2, processor="x", memory_gib=24, python="3.11.7", load_before=0.1),
        shape=msgspec.structs.replace(measured, **shape),
        phases=phases,
        micro={name: Micro(count=1, cpu_ms=1) for name in (micro.WEBHOOK, micro.CACHES)},
        lives={
            apiserver.PLAIN: ApiWork(count=100, allocations=10, cpu_s=1, took_s=1),
            apiserver.BRIDGED: ApiWork(count=100, allocations=13, cpu_s=2, took_s=1),
        },
    )


def rows(table: str) -> dict[str, list[str]]:
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


def test_a_cell_is_the_median_of_its_runs_with_the_least_and_the_most() -> None:
    found = rows(medians.table([run(2.4), run(2.0), run(2.6)]))

    assert found["all bound ÷ kube-scheduler alone"] == ["≤ 2.5", "2.4 (2 to 2.6)"]


def test_the_median_alone_is_judged() -> None:
    found = rows(medians.table([run(2.4), run(2.6), run(2.6)]))

    assert found["all bound ÷ kube-scheduler alone"][1] == "2.6 (2.4 to 2.6), **missed**"


def test_columns_stand_by_size_then_defaults_first() -> None:
    many = [
        run(column="fastest"),
        run(pods=1000),
        run(),
        run(column="fastest", pods=1000),
        run(column="defaults", nodes=1000),
    ]

    assert rows(medians.table(many))["figure"] == [
        "goal",
        "defaults, 200 pods",
        "fastest, 200 pods",
        "defaults, 200 pods on 1000 nodes",
        "defaults, 1000 pods",
        "fastest, 1000 pods",
    ]


def test_goals_that_differ_by_size_are_all_told() -> None:
    found = rows(medians.table([run(), run(pods=1000)]))

    assert found["our CPU per pod, whole life, ms"][0] == "≤ 6 / 8"


def test_more_nodes_are_compared_with_the_fewest_of_the_same_column() -> None:
    other = run(9.0, column="fastest")
    found = rows(medians.table([run(2.0), run(2.1, nodes=1000), other]))

    assert found["all bound, 1000 nodes instead of 100, s"] == ["≤ 2.2", "", "", "2.1"]


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([], "no runs"),
        ([run(is_profiled=True)], "profiled"),
        ([run(column="defaults"), run(values=("admission.calls=one",))], "differ"),
    ],
)
def test_what_cannot_stand_beside_each_other_is_refused(runs: list[Run], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        medians.table(runs)


def test_a_run_of_before_the_columns_is_refused() -> None:
    old = run()
    shape = msgspec.structs.replace(old.shape, column="", values=())

    with pytest.raises(ValueError, match="no column"):
        medians.table([msgspec.structs.replace(old, shape=shape)])


def test_the_smallest_size_comes_first_and_the_columns_take_turns() -> None:
    names = [one.name for one in plan.planned(2, 10)]

    assert names == [
        f"{pods}-pods-100-nodes-{column}-{number}"
        for pods in (200, 1000)
        for number in (1, 2)
        for column in ("defaults", "fastest")
    ]


def test_each_column_rests_once() -> None:
    rested = [one.name for one in plan.planned(3, 10) if "--idle-minutes=10" in one.arguments()]

    assert rested == ["200-pods-100-nodes-defaults-1", "200-pods-100-nodes-fastest-1"]


def test_only_the_smallest_size_tells_what_does_not_depend_on_the_size() -> None:
    whole = {one.pods for one in plan.planned(3, 10) if "--short" not in one.arguments()}

    assert whole == {200}


@pytest.mark.parametrize("text", ["", "200", "x", "200x", "0x100", "-1x3", "1x2x3"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 200x100"):
        plan.size(text)


def test_the_page_has_a_place_for_the_table_and_keeps_the_rest() -> None:
    before = PAGE.read_text()
    after = page.with_table(before, "| new |\n")

    assert "<!-- table: make bench-table -->\n\n| new |\n\n<!-- end -->" in after
    assert before.split("<!-- table")[0] == after.split("<!-- table")[0]
    assert before.split("<!-- end -->")[1] == after.split("<!-- end -->")[1]
    assert after == page.with_table(after, "| new |\n")


def test_a_page_without_such_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no lines"):
        page.with_table("# Performance\n", "")
