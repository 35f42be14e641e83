"""The example manifests: the API server takes them, and so does the webhook."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from bridge.domain.request import overrides
from bridge.domain.request.build import Defaults
from bridge.settings import policy_file
from bridge.settings.schema import Settings
from bridge.settings.slurm import Slurm
from sandbox.client import Sandbox
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId
from tests.chart.policed import make_namespaces
from webhook import app

EXAMPLES = Path(__file__).parents[2] / "deploy/examples"
WORKLOADS = sorted(path for path in EXAMPLES.glob("*.yaml") if path.stem != "namespace")


def load(path: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load(path.read_text())
    return manifest


@pytest.fixture(scope="module")
def namespace(control_plane: Sandbox) -> Iterator[str]:
    example = load(EXAMPLES / "namespace.yaml")["metadata"]
    assert example["labels"] == {names.ENABLED_LABEL: "true"}
    make_namespaces(control_plane, {example["name"]: {}})
    yield example["name"]
    control_plane.admin.delete(f"/api/v1/namespaces/{example['name']}")


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
def test_api_server_takes_the_example(control_plane: Sandbox, namespace: str, path: Path) -> None:
    said = control_plane.kubectl(
        "apply", "--dry-run=server", "--validate=strict", f"--filename={path}"
    )

    assert "created" in said
    assert load(path)["metadata"]["namespace"] == namespace


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
async def test_webhook_takes_the_example(path: Path) -> None:
    manifest = load(path)
    pod = manifest if manifest["kind"] == "Pod" else manifest["spec"]["template"]
    metadata = pod.get("metadata", {})
    annotations = {**metadata.get("annotations", {}), names.REQUESTER_ANNOTATION: "alice"}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "operation": "CREATE",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "namespace": "research",
            "userInfo": {"username": "alice", "groups": []},
            "object": {**pod, "metadata": {**metadata, "annotations": annotations}},
        },
    }
    settings = Settings(slurm=Slurm(user="kubernetes", group="kubernetes"))
    pods = app.PodReviewer(
        lambda: policy_file.compiled(settings),
        defaults=Defaults(cluster=ClusterId(""), gpu_resources=settings.controllers.gpu_resources),
        scheduler_name=names.SCHEDULER_NAME,
    )
    webhook = app.create(pods, metrics=Metrics("webhook"))
    transport = httpx.ASGITransport(app=webhook)
    async with httpx.AsyncClient(transport=transport, base_url="https://webhook") as client:
        answer = (await client.post("/validate", json=review)).json()["response"]

    assert answer["allowed"], answer["status"]["message"]
    assert not overrides.parse(manifest["metadata"]["annotations"])[1]
