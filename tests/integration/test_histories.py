"""Random histories against both clusters, a few of what `make soak` lives through."""

import asyncio

from tests.fault_bench import FaultBench
from tests.integration.worlds import Worlds
from tests.soak import histories

_SEED = 20


def test_ten_random_histories_break_no_contract(worlds: Worlds, bench: FaultBench) -> None:
    batch = asyncio.run(histories.live(bench, worlds.namespace, seed=_SEED, histories=10))

    assert not batch.breaches, str(batch)
