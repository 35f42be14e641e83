"""What our services have asked of either system, counted by themselves."""

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import httpx
import pytest

from sandbox.client import Sandbox
from slurmruntime.process.health import EXPOSITION_S
from tests.integration.worlds import Worlds, is_released
from tests.servers import SERVICES

ATTEMPTS = 3
T = TypeVar("T")
_stale_at: dict[str, float] = {}
"""From when on a service writes its metrics anew."""


def calls(sandbox: Sandbox, peer: str, service: str = "extender") -> Counter[str]:
    """How often one of our services has asked a peer, by operation."""
    return calls_at(sandbox.instance.url(f"{service}-health"), peer)


def calls_at(health: str, peer: str) -> Counter[str]:
    """How often the process with this address has asked a peer, by operation."""
    found = re.findall(
        rf'^slurm_bridge_{peer}_requests_total{{operation="([^"]+)",.*}} (\S+)$',
        _metrics(health),
        re.MULTILINE,
    )
    counts: Counter[str] = Counter()
    for operation, value in found:
        counts[operation] += int(float(value))
    return counts


def looks(sandbox: Sandbox, service: str) -> int:
    """How often a service has looked at a pod."""
    return _total(sandbox, service, r'slurm_bridge_reconciles_total{.*queue="pods".*}')


def reviews(sandbox: Sandbox) -> int:
    """How often the webhook was asked."""
    return _total(sandbox, "webhook", r"slurm_bridge_admission_reviews_total{.*}")


def _total(sandbox: Sandbox, service: str, series: str) -> int:
    text = _metrics(sandbox.instance.url(f"{service}-health"))
    return int(sum(map(float, re.findall(rf"^{series} (\S+)$", text, re.MULTILINE))))


def _metrics(health: str) -> str:
    """What a process has counted until now.

    It gives the same text for a second, and in less than that a gang has started.
    """
    url = f"{health}/metrics"
    time.sleep(max(0.0, _stale_at.get(url, 0.0) - time.monotonic()))
    text = httpx.get(url, trust_env=False).text
    _stale_at[url] = time.monotonic() + EXPOSITION_S
    return text


def undisturbed(sandbox: Sandbox, count: Callable[[int], T]) -> T:
    """What was counted while no service was started anew and no kube_node changed.

    On a busy machine a service may lose its lease, and its counters; and a kubelet may be late with
    its own, so that its node is not ready for a while and is drained.
    """
    for attempt in range(ATTEMPTS):
        before = pids(sandbox), kube_nodes(sandbox)
        counted = count(attempt)
        if before == (pids(sandbox), kube_nodes(sandbox)):
            return counted
    pytest.fail(f"a service was started anew, or a node changed, in each of {ATTEMPTS} attempts")


def kube_nodes(sandbox: Sandbox) -> dict[str, tuple[object, ...]]:
    """What drains a node: since when it has its readiness, and whether it is cordoned."""
    return {
        node["metadata"]["name"]: (
            node["spec"].get("unschedulable", False),
            *(
                (condition["status"], condition["lastTransitionTime"])
                for condition in node["status"]["conditions"]
                if condition["type"] == "Ready"
            ),
        )
        for node in sandbox.admin.get("/api/v1/nodes")["items"]
    }


def pids(sandbox: Sandbox) -> dict[str, int | None]:
    return {name: sandbox.status()[name].pid for name in SERVICES}


def only_bridged(worlds: Worlds, count: int) -> bool:
    """No pod that another test has left is in our hands any more."""
    pods = worlds.sandbox.admin.get("/api/v1/pods")["items"]
    return count == len([pod for pod in pods if not is_released(pod)])
