"""A peer is away, or hangs, for ten minutes: no service of ours is restarted for it, and all goes on afterwards.

`make test-long` runs this, nobody else; OUTAGE_S says how long an outage lasts. The sandbox has no kubelet: what it would do
follows from `/livez`, which has to be 200 at every probe, and from the processes, which have to stay the same.
"""

import os
import time

import httpx
import pytest

from sandbox.client import Sandbox
from tests.integration.worlds import Worlds, played
from tests.servers import wait_until

_OUTAGE_S = float(os.environ.get("OUTAGE_S", "600"))
_PROBE_S = 1.0
_SERVICES = ("webhook", "extender", "controllers")
_ALL_IN_STEP_S = 120.0


def pids(sandbox: Sandbox) -> dict[str, int | None]:
    return {name: part.pid for name, part in sandbox.status().items() if name in _SERVICES}


def probe(sandbox: Sandbox) -> dict[str, str]:
    """What a kubelet would hear from those that do not say that they live."""
    answers = {
        name: httpx.get(f"{sandbox.instance.url(f'{name}-health')}/livez", trust_env=False)
        for name in _SERVICES
    }
    return {name: answer.text for name, answer in answers.items() if not answer.is_success}


@pytest.mark.long
@pytest.mark.parametrize("hangs", [False, True], ids=["away", "hangs"])
@pytest.mark.parametrize("peer", ["slurmctld", "slurmrestd", "apiserver", "bridge-scheduler"])
def test_a_peer_that_is_away_for_long_restarts_nobody(
    worlds: Worlds, full_sandbox: Sandbox, peer: str, *, hangs: bool
) -> None:
    """The leaders start afresh once an API server is back that has been away for longer than their lease: by themselves."""
    runs = worlds.submit("runs", annotations=played(seconds=_OUTAGE_S / 2))
    worlds.await_phase("runs", "Running")
    before = pids(full_sandbox)
    if hangs:
        full_sandbox.pause(peer)
    else:
        full_sandbox.stop(peer)
    try:
        end_s = time.monotonic() + _OUTAGE_S
        while time.monotonic() < end_s:
            assert {} == probe(full_sandbox)
            time.sleep(_PROBE_S)  # a kubelet's own pace, or faster
        assert before == pids(full_sandbox)
    finally:
        if hangs:
            full_sandbox.resume(peer)
        else:
            full_sandbox.start(peer)

    comes = worlds.submit("comes", annotations=played(seconds=1))
    for uid in (runs, comes):
        assert "COMPLETED" == worlds.await_accounted(uid, _ALL_IN_STEP_S).state
    if peer != "apiserver":
        assert before == pids(full_sandbox)
    wait_until(lambda: not probe(full_sandbox), _ALL_IN_STEP_S, sandbox=full_sandbox)
