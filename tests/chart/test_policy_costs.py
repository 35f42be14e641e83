"""What the policies cost the API server: they are evaluated within budgets, and refuse what exceeds one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.domain import caps
from sandbox.client import Sandbox
from tests.chart.policed import BREAK_GLASS, Cluster, pod, pods, policed, policies, refusal

VERY_MANY = {f"k{n}": "" for n in range(40_000)}
"""As many short labels as fit into an object."""


@pytest.mark.parametrize(
    ("config", "most"), [({}, caps.DEFAULT.labels), ({"caps": {"labels": 7}}, 7)]
)
def test_without_the_webhook_a_policy_caps_labels(
    helm: Path, config: dict[str, Any], most: int
) -> None:
    values = {"webhook": {"failurePolicy": "Ignore"}, "config": config}
    found = [
        m
        for m in policies(helm, "slurm-bridge", values)
        if m["metadata"]["name"] == "slurm-bridge-impossible"
    ]

    assert f"object.metadata.?labels.orValue({{}}).size() <= {most}" in str(found[0]["spec"])


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    with policed(control_plane, helm) as cluster:
        yield cluster


@pytest.mark.attack(
    "keep the kubelet from reporting a pod's end, by 40 000 labels",
    "[caps](caps.md); policy `keys` compares labels only if one has changed",
)
def test_the_status_of_a_pod_with_very_many_labels_can_be_written(cluster: Cluster) -> None:
    """Else the kubelet could never report its end."""
    root = cluster.user("root", "system:masters", BREAK_GLASS)
    fat = cluster.create(pod("fat", metadata={"labels": VERY_MANY}), by=root)
    status = {"status": {"message": "it has ended"}}

    assert "" == refusal(cluster.admin, "PATCH", pods(cluster.bridged, fat, "status"), status)
