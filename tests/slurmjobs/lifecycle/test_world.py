"""Whatever goes wrong, a SlurmJob has one job an attempt, an end that stays, and leaves nothing behind."""

import os

import pytest

from tests.slurmjobs.lifecycle.world import play

HISTORIES = int(os.environ.get("SLURM_BRIDGE_WORLDS", "400"))


def test_what_must_hold_holds_in_every_history() -> None:
    for seed in range(HISTORIES):
        play(seed)


@pytest.mark.long
def test_what_must_hold_holds_in_five_thousand_histories() -> None:
    for seed in range(HISTORIES, 5000):
        play(seed)
