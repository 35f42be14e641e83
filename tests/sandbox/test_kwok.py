"""KWOK's pods start, end and stop as a kubelet's do: the bridge reads their container states as the truth."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from sandbox.api import ApiError
from sandbox.client import Sandbox
from tests.servers import wait_until

PREFIX = "sandbox.slurm-bridge.dev"
HOLD = "example.test/hold"
START_S = 60


def create(
    sandbox: Sandbox,
    namespace: str,
    *,
    annotations: dict[str, str],
    finalizers: tuple[str, ...] = (),
    **spec: Any,
) -> str:
    """Create an ordinary pod; its path."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "pod-",
            "annotations": {f"{PREFIX}/{key}": value for key, value in annotations.items()},
            "finalizers": list(finalizers),
        },
        "spec": {
            "containers": [{"name": "main", "image": "example.test/image"}],
            "restartPolicy": "Never",
            **spec,
        },
    }
    pods = f"/api/v1/namespaces/{namespace}/pods"
    return f"{pods}/{sandbox.admin.create(pods, pod)['metadata']['name']}"


def wait_for_phase(sandbox: Sandbox, path: str, *phases: str) -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        pod = sandbox.admin.get(path)
        return pod if pod["status"].get("phase") in phases else None

    pod = wait_until(reached, START_S, sandbox=sandbox)
    assert pod is not None
    return pod


def states(pod: dict[str, Any], field: str = "containerStatuses") -> dict[str, Any]:
    return {status["name"]: status["state"] for status in pod["status"].get(field, [])}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def exists(sandbox: Sandbox, path: str) -> bool:
    try:
        return bool(sandbox.admin.get(path))
    except ApiError as error:
        if error.status != 404:
            raise
        return False


def test_a_pod_ends_after_its_time_with_its_exit_code(
    control_plane: Sandbox, namespace: str
) -> None:
    path = create(control_plane, namespace, annotations={"run-seconds": "2", "exit-code": "3"})

    pod = wait_for_phase(control_plane, path, "Failed")

    end = states(pod)["main"]["terminated"]
    assert (end["exitCode"], end["reason"]) == (3, "Error")
    assert timedelta(seconds=2) == moment(end["finishedAt"]) - moment(end["startedAt"])


def test_an_edit_does_not_lengthen_a_pods_time(control_plane: Sandbox, namespace: str) -> None:
    path = create(control_plane, namespace, annotations={"run-seconds": "3"})
    wait_for_phase(control_plane, path, "Running")

    for number in range(3):
        control_plane.admin.patch(path, {"metadata": {"labels": {"edit": str(number)}}})
    pod = wait_for_phase(control_plane, path, "Succeeded")

    end = states(pod)["main"]["terminated"]
    assert (end["exitCode"], end["reason"]) == (0, "Completed")
    assert timedelta(seconds=3) == moment(end["finishedAt"]) - moment(end["startedAt"])


def test_containers_end_each_in_its_own_way(control_plane: Sandbox, namespace: str) -> None:
    image = "example.test/image"
    path = create(
        control_plane,
        namespace,
        annotations={"run-seconds": "1", "exit-code.second": "7", "reason.third": "OOMKilled"},
        initContainers=[
            {"name": "setup", "image": image},
            {"name": "sidecar", "image": image, "restartPolicy": "Always"},
        ],
        containers=[{"name": name, "image": image} for name in ("first", "second", "third")],
    )

    pod = wait_for_phase(control_plane, path, "Failed")

    ends = {name: state["terminated"] for name, state in states(pod).items()}
    assert {n: end["exitCode"] for n, end in ends.items()} == {
        "first": 0,
        "second": 7,
        "third": 137,
    }
    assert ends["third"]["reason"] == "OOMKilled"
    assert all("terminated" in state for state in states(pod, "initContainerStatuses").values())


def test_a_running_pod_shows_its_sidecar_running_and_its_set_up_done(
    control_plane: Sandbox, namespace: str
) -> None:
    image = "example.test/image"
    path = create(
        control_plane,
        namespace,
        annotations={},
        initContainers=[
            {"name": "setup", "image": image},
            {"name": "sidecar", "image": image, "restartPolicy": "Always"},
        ],
    )

    pod = wait_for_phase(control_plane, path, "Running")

    assert {n: list(state) for n, state in states(pod).items()} == {"main": ["running"]}
    assert {name: list(state) for name, state in states(pod, "initContainerStatuses").items()} == {
        "setup": ["terminated"],
        "sidecar": ["running"],
    }


@pytest.mark.parametrize(
    ("stop_seconds", "exit_code"),
    [
        pytest.param("1", 143, id="stops within its grace period"),
        pytest.param("60", 137, id="is killed when its grace period ends"),
    ],
)
def test_a_deleted_pod_says_how_its_containers_ended_before_it_goes(
    control_plane: Sandbox, namespace: str, stop_seconds: str, exit_code: int
) -> None:
    path = create(
        control_plane,
        namespace,
        annotations={"stop-seconds": stop_seconds},
        finalizers=(HOLD,),
        terminationGracePeriodSeconds=3,
    )
    wait_for_phase(control_plane, path, "Running")

    deleted = control_plane.admin.delete(path)
    assert "running" in states(control_plane.admin.get(path))["main"]
    pod = wait_for_phase(control_plane, path, "Failed")

    end = states(pod)["main"]["terminated"]
    grace_ends = moment(deleted["metadata"]["deletionTimestamp"])
    stopped = grace_ends - timedelta(seconds=3) + timedelta(seconds=min(int(stop_seconds), 3))
    assert exit_code == end["exitCode"]
    assert timedelta(0) <= moment(end["finishedAt"]) - stopped <= timedelta(seconds=1)
    wait_until(
        lambda: control_plane.admin.get(path)["metadata"]["deletionGracePeriodSeconds"] == 0, 5
    )
    control_plane.admin.patch(path, {"metadata": {"finalizers": None}})
    wait_until(lambda: not exists(control_plane, path), 5, sandbox=control_plane)


def test_a_deleted_pod_nobody_holds_goes_at_once(control_plane: Sandbox, namespace: str) -> None:
    path = create(control_plane, namespace, annotations={"stop-seconds": "0"})
    wait_for_phase(control_plane, path, "Running")

    control_plane.admin.delete(path)

    wait_until(lambda: not exists(control_plane, path), 5, sandbox=control_plane)


def test_a_pod_whose_image_cannot_be_pulled_stays_pending(
    control_plane: Sandbox, namespace: str
) -> None:
    path = create(control_plane, namespace, annotations={"waiting-reason": "ImagePullBackOff"})

    wait_until(lambda: states(control_plane.admin.get(path)), START_S, sandbox=control_plane)

    pod = control_plane.admin.get(path)
    assert pod["status"]["phase"] == "Pending"
    assert states(pod) == {"main": {"waiting": {"reason": "ImagePullBackOff"}}}
    control_plane.admin.delete(path)
    wait_until(lambda: not exists(control_plane, path), START_S, sandbox=control_plane)
