"""Slurm's reasons in words."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.lifecycle import reasons
from bridge.domain.model.jobs import JobEnd
from tests.make import lives as build


@pytest.mark.parametrize(
    ("slurm", "reason"),
    [
        ("Priority", "Priority"),
        ("QOSMaxGRESPerUser", "QOSMaxGRESPerUser"),
        ("", "WaitingForSlurm"),
        ("None", "WaitingForSlurm"),
        ("(null)", "WaitingForSlurm"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-9]", "ReqNodeNotAvail"),
        ("launch failed requeued held", "LaunchFailedRequeuedHeld"),
        ("1st", "Slurm1st"),
        ("Größe", "GrE"),
    ],
)
def test_makes_a_condition_reason_of_what_slurm_says(slurm: str, reason: str) -> None:
    assert reason == reasons.condition_reason(slurm)


def test_says_all_that_slurm_knows_of_a_job_that_waits() -> None:
    job = replace(
        build.waiting("Resources"),
        reason_text="waiting for nodes",
        expected_start=build.NOW + timedelta(minutes=11),
    )

    assert reasons.why_it_waits(job, build.NOW) == (
        "Slurm job 4711 waits: the resources it needs are not free (Resources), Slurm says: waiting for nodes;"
        " expected start about 2026-05-04 12:15 UTC"
    )


def test_says_what_can_be_done() -> None:
    assert reasons.why_it_waits(build.waiting("JobHeldUser"), build.NOW) == (
        "Slurm job 4711 waits: its user holds it (JobHeldUser); release it: scontrol release"
    )


def test_passes_on_what_it_does_not_know() -> None:
    assert reasons.why_it_waits(build.waiting("SomethingNew"), build.NOW) == (
        "Slurm job 4711 waits: SomethingNew (SomethingNew)"
    )


def test_does_not_name_a_reason_that_slurm_has_not_given() -> None:
    assert reasons.why_it_waits(build.waiting(""), build.NOW) == (
        "Slurm job 4711 waits: Slurm has not given a reason yet"
    )


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        pytest.param(4, "12:05", id="to five minutes"),
        pytest.param(4.5, "12:10", id="never too early"),
        pytest.param(90, "14:00", id="to the hour where it is far away"),
        pytest.param(-5, "", id="an estimate that has passed is none"),
    ],
)
def test_rounds_the_expected_start(minutes: float, expected: str) -> None:
    job = replace(build.waiting(), expected_start=build.NOW + timedelta(minutes=minutes))

    _, _, start = reasons.why_it_waits(job, build.NOW).partition("expected start about ")

    assert expected == start.removesuffix(" UTC").removeprefix("2026-05-04 ")


@pytest.mark.parametrize("end", JobEnd, ids=lambda end: end.value)
def test_every_end_has_words_and_a_cause(end: JobEnd) -> None:
    assert reasons.how_it_ended(build.ended(end)).startswith("Slurm job 4711 ")
    assert reasons.cause_of(end).value.startswith("Slurm")


def test_passes_slurms_own_words_on_with_an_end() -> None:
    job = replace(build.ended(JobEnd.NODE_FAIL), reason_text="node s1 not responding")

    assert reasons.how_it_ended(job).endswith(", Slurm says: node s1 not responding")


def test_a_node_is_blamed_only_as_one_of_the_possible_causes() -> None:
    """At a restart Slurm also ends so what names something that is gone: it does not say which it was."""
    text = reasons.how_it_ended(build.ended(JobEnd.NODE_FAIL))

    assert "its node failed or was set DOWN, or its partition, or a node that it names" in text
