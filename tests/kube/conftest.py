"""A client for each test, on the event loop of that test, and pods that do not outlive it."""

import json
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from bridge.domain.model.pods import Pod
from bridge.kube import decode
from sandbox.client import Sandbox
from slurmruntime.kube.client import KubeClient
from tests.kube.manifests import Manifest

CreatePod = Callable[[Manifest], Pod]


Calls = list[tuple[str, str]]
"""Operation and outcome of each."""


@pytest.fixture
def calls() -> Calls:
    """What `client` has done."""
    return []


@pytest.fixture
async def client(control_plane: Sandbox, calls: Calls) -> AsyncIterator[KubeClient]:
    async with KubeClient.open(
        str(control_plane.kubeconfig),
        request_timeout_s=10,
        user_agent="slurm-bridge-tests/1",
        on_call=lambda operation, _, outcome: calls.append((operation, outcome)),
    ) as client:
        yield client


@pytest.fixture
def create_pod(control_plane: Sandbox, namespace: str) -> Iterator[CreatePod]:
    """Creates a pod as an administrator and reads the answer as the bridge does."""
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def create(manifest: Manifest) -> Pod:
        return decode.pod(json.dumps(control_plane.admin.create(pods, manifest)).encode())

    yield create
    for found in control_plane.admin.get(pods)["items"]:
        name = found["metadata"]["name"]
        control_plane.admin.patch(f"{pods}/{name}", {"metadata": {"finalizers": None}})
