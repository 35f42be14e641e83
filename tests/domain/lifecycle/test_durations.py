"""How long the steps of a pod's life take."""

from dataclasses import replace
from datetime import timedelta

from bridge.domain.lifecycle import durations
from bridge.domain.lifecycle.actions import Assign, Complete, Outcome, Wait
from bridge.domain.lifecycle.durations import Step
from tests.make import lives as build

ASSIGN = Assign(
    job_id=build.JOB_ID,
    slurm_node=build.SLURM_NODE,
    kube_node=build.KUBE_NODE,
    sluid=None,
    grant="",
)
COMPLETE = Complete(job_id=build.JOB_ID, sluid=None, outcome=Outcome())


def test_a_start_ends_the_queue_and_the_pin() -> None:
    submitted, started = build.NOW - timedelta(seconds=30), build.NOW - timedelta(seconds=2)
    job = replace(build.job(), submitted_at=submitted, started_at=started)

    found = dict(durations.done(build.gated(), ASSIGN, job, build.NOW))

    assert {Step.QUEUE: 28, Step.PIN: 2} == found


def test_an_end_is_measured_from_the_last_container() -> None:
    pod = replace(
        build.bound(),
        containers=(
            build.exited(at=build.NOW - timedelta(seconds=9)),
            build.exited(at=build.NOW - timedelta(seconds=3), name="sidecar"),
        ),
    )

    assert [(Step.COMPLETE, 3)] == list(durations.done(pod, COMPLETE, None, build.NOW))


def test_clocks_that_differ_make_no_negative_time() -> None:
    job = replace(build.job(), submitted_at=None, started_at=build.NOW + timedelta(seconds=1))

    assert [(Step.PIN, 0)] == list(durations.done(build.gated(), ASSIGN, job, build.NOW))


def test_nothing_else_ends_a_step() -> None:
    assert [] == list(durations.done(build.bound(), Wait(), build.job(), build.NOW))
    assert [] == list(durations.done(build.gated(), ASSIGN, None, build.NOW))


def test_what_terminating_pods_took_is_told_apart() -> None:
    waited = replace(ASSIGN, waited=timedelta(seconds=12))

    found = dict(durations.done(build.gated(), waited, build.job(), build.NOW))

    assert 12 == found[Step.ROOM]
