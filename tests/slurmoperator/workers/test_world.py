"""Whatever goes wrong, no worker is deleted with its jobs, and in the end there are as many as wanted."""

import os

import pytest

from tests.slurmoperator.workers.node_world import play_on_nodes
from tests.slurmoperator.workers.update_world import play_update
from tests.slurmoperator.workers.world import play

pytestmark = pytest.mark.slow

HISTORIES = int(os.environ.get("SLURM_BRIDGE_WORLDS", "150"))


def test_what_must_hold_holds_in_every_history() -> None:
    for seed in range(HISTORIES):
        play(seed)
        play(seed, has_updates=True)


def test_on_nodes_each_that_fits_has_a_worker_in_the_end_and_none_is_deleted_on_doubt() -> None:
    for seed in range(HISTORIES):
        play_on_nodes(seed)


def test_an_update_takes_no_more_workers_away_than_it_may_and_comes_to_its_end() -> None:
    for seed in range(HISTORIES):
        play_update(seed)
