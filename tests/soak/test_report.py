"""What a soak has found is kept, and told in its own section of the page; the pace it keeps."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.soak import report
from tests.soak.churn import Memory, Pace, Result

PAGE = """\
Before.

<!-- soak model: begin; written by `make soak` -->
as it was
<!-- soak model: end -->

<!-- soak churn: begin; written by `make soak` -->
out of date
<!-- soak churn: end -->

After.
"""
RESULT = Result(
    minutes=30,
    rate=20,
    seed=1,
    took_s=1800,
    created=36000,
    most_alive=500,
    faults={"one of ours killed": 2, "connections cut": 3},
    weather=["extender is killed"],
    ends=[("Succeeded", "COMPLETED 0:0", 20000)],
    warm={"extender": Memory(pid=7, mib=100), "webhook": Memory(pid=8, mib=50)},
    over={"extender": Memory(pid=7, mib=105), "webhook": Memory(pid=9, mib=40)},
)


def test_a_part_renews_its_own_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    found = {"commit": "abc", "at": "today", **asdict(RESULT)}

    report.keep("churn", found, page)

    told = page.read_text()
    assert "as it was" in told
    assert "out of date" not in told
    assert "36000 pods in 30.0 minutes, 20.0 a second" in told
    assert "| connections cut | 3 |" in told
    assert "| Succeeded | COMPLETED 0:0 | 20000 |" in told
    assert "| extender | 100 | 105 | +5.0% |" in told
    assert "| webhook | 50 | | another process by then |" in told
    assert "Contracts broken: none." in told
    kept = report.kept("churn")
    assert kept is not None
    assert 36000 == kept["created"]


def test_what_odd_objects_were_there_is_told() -> None:
    run = replace(RESULT, poison=["job with an odd name"])

    told = report.section("poison", {"commit": "abc", "at": "today", **asdict(run)})

    assert "| connections cut | 3 |" in told
    assert "* job with an odd name" in told


def test_a_page_without_the_section_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.md").write_text("nothing")

    with pytest.raises(ValueError, match="has no section"):
        report.keep("model", {}, tmp_path / "page.md")


def test_only_a_process_that_lived_on_is_said_to_have_grown() -> None:
    assert {"extender": pytest.approx(0.05)} == RESULT.growth


def test_what_was_held_up_is_made_up_for_but_not_at_once() -> None:
    pace = Pace(rate=10, pods=100, began_s=1000)
    assert 1000 + 1 / 20 == pace.due_s(last_s=1000)

    pace.number = 20
    assert 1002 == pace.due_s(last_s=1001.5)
    assert 1012 + 1 / 20 == pace.due_s(last_s=1012)
