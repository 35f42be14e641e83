"""What is done for a pod whose job has begun where native jobs might start beside it."""

from dataclasses import replace
from datetime import timedelta

from bridge.domain.lifecycle.actions import Cancel, OwnCause, Tell, Wait
from bridge.domain.lifecycle.decision import Fit
from tests.make import lives as build

SECOND = timedelta(seconds=1)


def test_it_waits_some_seconds_for_the_scripts_question_and_goes_elsewhere() -> None:
    facts = replace(
        build.facts(build.gated(), build.job()), fit=Fit.UNHELD, fit_text="the script is silent"
    )
    early = build.decide(replace(facts, since=build.NOW - 9 * SECOND))
    cancel, tell = build.actions(replace(facts, since=build.NOW - 10 * SECOND))

    assert (Wait(),) == early.actions
    assert isinstance(cancel, Cancel)
    assert cancel.cause is OwnCause.MISFIT
    assert isinstance(tell, Tell)
    assert "the script is silent: looking for another" in tell.message
