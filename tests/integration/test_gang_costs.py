"""What a gang costs: one submit, a few looks, one pin for each pod."""

import re
from collections import Counter

import httpx

from sandbox.client import Sandbox
from tests.integration.test_gangs import submit, uid_of
from tests.integration.worlds import Worlds, played

SIZE = 24


def calls(sandbox: Sandbox, peer: str) -> Counter[str]:
    """How often the extender has asked a peer, by operation."""
    url = f"{sandbox.instance.url('extender-health')}/metrics"
    text = httpx.get(url, trust_env=False).text
    found = re.findall(
        rf'^slurm_bridge_{peer}_requests_total{{operation="([^"]+)",.*}} (\S+)$', text, re.MULTILINE
    )
    counts: Counter[str] = Counter()
    for operation, value in found:
        counts[operation] += int(float(value))
    return counts


def test_a_gang_is_submitted_once_looked_at_thrice_and_pinned_pod_by_pod(worlds: Worlds) -> None:
    worlds.await_accounted(worlds.submit("before", annotations=played(seconds=1)))
    slurm, kube = calls(worlds.sandbox, "slurm"), calls(worlds.sandbox, "kube")

    for rank in range(SIZE):
        submit(worlds, f"rank-{rank}", group="costs", size=SIZE)
    for rank in range(SIZE):
        worlds.await_phase(f"rank-{rank}", "Running")

    asked = calls(worlds.sandbox, "slurm") - slurm
    assert 1 == asked["job.submit"]
    assert asked["job.get"] <= 3
    assert 0 == asked["job.set_identity"]
    told = calls(worlds.sandbox, "kube") - kube
    assert SIZE == told["PATCH pods"]
    assert told["PATCH pods/status"] <= SIZE
    assert 1 == len(worlds.jobs(uid_of(worlds, "costs")))
