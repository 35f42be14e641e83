"""How far a worker's pod is, and by which name Slurm knows it."""

from collections.abc import Sequence
from typing import Any

import pytest

from slurmoperator.workers.situation import PodStage
from tests.slurmoperator.nodesets.given import BOUND, READY, pod

BEHIND = "PodInitializing"


def waiting(*reasons: str, restarts: int = 0, first: Sequence[str] = ()) -> dict[str, Any]:
    """Say why containers wait, and `first` why init containers do; "" is one that runs."""

    def said(of: Sequence[str]) -> list[dict[str, Any]]:
        return [
            {
                "state": {"waiting": {"reason": each}} if each else {"running": {}},
                "restartCount": restarts,
            }
            for each in of
        ]

    return {
        "phase": "Pending",
        "initContainerStatuses": said(first),
        "containerStatuses": said(reasons),
    }


@pytest.mark.parametrize(
    ("expected", "parts"),
    [
        (PodStage.UNSTARTED, {}),
        (PodStage.UNSTARTED, {"status": {"phase": "Pending"}}),
        (PodStage.UNSTARTED, {"spec": BOUND, "status": waiting("ImagePullBackOff")}),
        (
            PodStage.UNSTARTED,
            {"spec": BOUND, "status": waiting(BEHIND, first=["ImagePullBackOff", BEHIND])},
        ),
        # Its init containers have run, or one of them does.
        (PodStage.STARTING, {"spec": BOUND, "status": waiting(BEHIND, first=[BEHIND])}),
        (PodStage.STARTING, {"spec": BOUND, "status": waiting(BEHIND)}),
        (PodStage.STARTING, {"spec": BOUND, "status": waiting(BEHIND, "ErrImagePull")}),
        (PodStage.STARTING, {"spec": BOUND, "status": waiting(BEHIND, first=["", "ErrImagePull"])}),
        (PodStage.STARTING, {"spec": BOUND, "status": waiting("", first=["ErrImagePull"])}),
        (
            PodStage.STARTING,
            {"spec": BOUND, "status": waiting(BEHIND, first=["ErrImagePull"], restarts=1)},
        ),
        # Its kubelet may have started it and be cut off before it could say so.
        (PodStage.STARTING, {"spec": BOUND}),
        (PodStage.STARTING, {"spec": BOUND, "status": waiting("ContainerCreating")}),
        (PodStage.STARTING, {"spec": BOUND, "status": waiting("ErrImagePull", "CrashLoopBackOff")}),
        (PodStage.STARTING, {"spec": BOUND, "status": waiting("ErrImagePull", restarts=1)}),
        (PodStage.STARTING, {"spec": BOUND, "status": {"phase": "Running"}}),
        (PodStage.READY, {"spec": BOUND, "status": READY}),
        (PodStage.OVER, {"spec": BOUND, "status": {"phase": "Failed"}}),
        (PodStage.OVER, {"status": {"phase": "Succeeded"}}),
        (
            PodStage.TERMINATING,
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": READY},
        ),
    ],
)
def test_a_pod_counts_as_never_started_only_if_that_is_sure(
    expected: PodStage, parts: dict[str, Any]
) -> None:
    assert expected is pod(**parts).facts.stage


@pytest.mark.parametrize(
    ("expected", "spec"),
    [
        ("gpu-0", {}),
        ("a100-0", {"hostname": "a100-0"}),
        ("a100-0", {"hostname": "a100-0", "hostNetwork": True, **BOUND}),
    ],
)
def test_slurm_knows_it_by_its_host_name(expected: str, spec: dict[str, Any]) -> None:
    assert expected == pod(spec=spec).slurm_node
