"""What an ordinary pod costs, from CREATE to its release: at most what `dev/benchmarks/costs_of_a_pod.json` says.

Counts do not depend on the machine, so cost cannot creep back unseen. Whoever makes a pod cheaper lowers the baseline;
whoever has to make it dearer raises it, in the same commit, and says why.
"""

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.counting import ATTEMPTS, calls, looks, only_bridged, reviews, undisturbed
from tests.integration.worlds import Worlds, is_released, played
from tests.servers import wait_until

BASELINE = Path(__file__).parents[2] / "dev" / "benchmarks" / "costs_of_a_pod.json"
PODS = 20
PATIENT_S = 90.0


def test_an_ordinary_pod_costs_no_more_than_the_baseline(worlds: Worlds) -> None:
    most: dict[str, float] = json.loads(BASELINE.read_text())
    worlds.await_accounted(worlds.submit("before", annotations=played(seconds=1)))
    batches = itertools.count()

    def lived(_attempt: int) -> Counter[str]:
        batch = next(batches)
        worlds.clear()
        wait_until(lambda: only_bridged(worlds, 0), PATIENT_S, sandbox=worlds.sandbox)
        before = counted(worlds)
        for n in range(PODS):
            worlds.submit(f"cheap-{batch}-{n}", annotations=played(seconds=2))
        for n in range(PODS):
            worlds.await_pod(f"cheap-{batch}-{n}", is_released, PATIENT_S)
        return counted(worlds) - before

    # On a busy machine pods wait long enough to be told so.
    found: list[dict[str, float]] = []
    for _ in range(ATTEMPTS):
        spent = undisturbed(worlds.sandbox, lived)
        found.append({name: spent[name] / PODS for name in most})
        if all(cost <= most[name] for name, cost in found[-1].items()):
            return
    pytest.fail(f"dearer than {BASELINE.name} in each attempt: {found}")


def counted(worlds: Worlds) -> Counter[str]:
    """Requests and looks of the extender and the controllers, and reviews."""
    found = Counter({"webhook: reviews": reviews(worlds.sandbox)})
    for service in ("extender", "controllers"):
        for peer in ("slurm", "kube"):
            for operation, value in calls(worlds.sandbox, peer, service).items():
                found[f"{service}: {operation}"] += value
        found[f"{service}: looks"] += looks(worlds.sandbox, service)
    return found
