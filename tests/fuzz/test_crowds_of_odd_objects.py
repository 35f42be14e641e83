"""So many odd objects that not all are remembered: nobody's keep those of others from being reported."""

from collections import Counter

import pytest
from structlog.testing import capture_logs

from bridge.reconcile.set_aside import MOST, SetAside
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.oddities import About
from tests.virtual_time import VirtualClock, run


@pytest.mark.attack(
    "create so many odd objects that those of other namespaces are set aside without a word",
    "namespaces share the room: for an object of one with less, one of the largest is forgotten",
)
def test_one_namespaces_odd_objects_leave_room_for_those_of_others() -> None:
    async def main(clock: VirtualClock) -> None:
        aside = SetAside(Metrics("test"), clock)

        def tell(namespace: str, number: int) -> None:
            name = f"odd-{number}"
            about = About(kind="Pod", namespace=namespace, name=name, uid=f"{namespace}-{number}")
            aside.tell("pod", about.full_name, "its grace is too long", about=about)

        for number in range(3 * MOST):
            tell("mallory", number)
        with capture_logs() as logs:
            for number in range(100):
                tell("team-a", number)
                aside.tell("slurm_job", str(number), "its comment is no JSON")
                tell("mallory", number)
        told = Counter(line["name"].partition("odd-")[0] for line in logs)
        assert 100 == told["team-a/"]
        assert 100 == sum(line["kind"] == "slurm_job" for line in logs)
        assert 0 == told["mallory/"], "what is beyond its share is no news"

        with capture_logs() as logs:
            for _ in range(2):
                for number in range(2 * MOST):
                    tell("mallory", number)
                    tell("team-a", number)
        assert MOST == len(aside)
        assert len(logs) < MOST, "two that have as many push out nobody"

    run(main)
