"""Our services are killed at random moments while pods live: none is lost, none has two placeholders, none is forgotten."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from tests.integration.worlds import LIVE, Worlds, is_released, played
from tests.servers import SERVICES, wait_until

_PODS = 100
_SEED = 20
_SETTLED_WITHIN_S = 60.0


def test_pods_live_through_the_crashes_of_every_service(
    worlds: Worlds, full_sandbox: Sandbox
) -> None:
    dice = random.Random(_SEED)  # noqa: S311  # seeded: a failure comes again
    exit_codes = {f"pod-{number}": dice.choice((0, 0, 3)) for number in range(_PODS)}

    with _created(worlds, exit_codes, dice) as uids:
        while len(uids) < _PODS:
            full_sandbox.restart(dice.choice(SERVICES), signal="KILL", wait=False)
            time.sleep(dice.uniform(0.5, 2.0))  # the moments are random: that is the test
            _nobody_has_two(worlds)

    def over() -> bool:
        _nobody_has_two(worlds)
        pods = full_sandbox.admin.get(f"{worlds.path}/pods")["items"]
        assert _PODS == len(pods)
        return all(map(is_released, pods))

    wait_until(over, _SETTLED_WITHIN_S, sandbox=full_sandbox)

    assert [] == [job for job in worlds.queue() if job.state in LIVE]
    ends: dict[str, list[tuple[str, str]]] = {uid: [] for uid in uids}
    for job in worlds.accounted(*uids):
        ends[job.uid].append((job.state, job.exit_code))
    meant = {0: [("COMPLETED", "0:0")], 3: [("FAILED", "3:0")]}
    assert {uid: meant[exit_codes[name]] for uid, name in uids.items()} == ends


@contextmanager
def _created(
    worlds: Worlds, exit_codes: dict[str, int], dice: random.Random
) -> Iterator[dict[str, str]]:
    """Pods come one after the other meanwhile; name by uid, as they come."""
    uids: dict[str, str] = {}
    lives = {
        name: played(seconds=dice.randint(1, 3), exit_code=code)
        for name, code in exit_codes.items()
    }

    def create_all() -> None:
        with Api(worlds.sandbox.kubeconfig) as api:
            for name, life in lives.items():
                while True:
                    try:
                        uids[worlds.submit(name, annotations=life, by=api)] = name
                        break
                    except ApiError as error:
                        if "webhook" not in error.message:
                            raise
                        time.sleep(0.1)  # it is away, and nothing gets past it
                time.sleep(0.12)

    with ThreadPoolExecutor(1) as creator:
        creating = creator.submit(create_all)
        yield uids
        creating.result()


def _nobody_has_two(worlds: Worlds) -> None:
    counts = Counter(job.uid for job in worlds.queue() if job.state in LIVE)
    assert [] == [uid for uid, count in counts.items() if uid and count > 1]
