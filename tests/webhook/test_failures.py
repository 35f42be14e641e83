"""A review that fails by a bug of ours is a refusal in words, about the object it concerns."""

import json

import httpx
import pytest
from structlog.testing import capture_logs

from bridge.domain.admission.review import Verdict
from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import Policy
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.ids import ClusterId
from webhook import app, wire
from webhook.app import PodReviewer
from webhook.reviewing import ReviewResult

BUG = ValueError("Exceeds the limit (4300 digits)")


class Failing:
    """A reviewer with a bug."""

    created = "SlurmJob.slurm-bridge.dev"
    kind = "SlurmJob"
    called = "slurm_job"

    def mutate(self, review: wire.Review) -> ReviewResult:
        return ReviewResult(name=review.namespace, verdict=Verdict())

    def validate(self, review: wire.Review) -> ReviewResult:
        raise BUG


def policy() -> Policy:
    raise BUG


def review(kind: dict[str, str], metadata: dict[str, str]) -> bytes:
    request = {
        "uid": "7",
        "kind": kind,
        "operation": "CREATE",
        "namespace": "lab",
        "object": {"metadata": metadata, "spec": {}},
    }
    document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (
            review({"group": "slurm-bridge.dev", "kind": "SlurmJob"}, {"name": "train"}),
            "SlurmJob lab/train",
        ),
        (
            review({"group": "slurm-bridge.dev", "kind": "SlurmJob"}, {"generateName": "a-"}),
            "SlurmJob lab/a-…",
        ),
        (review({"group": "", "kind": "Pod"}, {"name": "p"}), "Pod lab/p"),
    ],
)
async def test_a_bug_is_told_with_the_object(body: bytes, named: str) -> None:
    defaults = Defaults(cluster=ClusterId("c"), milli_per_cpu=1000)
    pods = PodReviewer(policy, defaults=defaults, scheduler_name="slurm-bridge-scheduler")
    served = app.create(pods, Failing(), metrics=Metrics("webhook"))
    transport = httpx.ASGITransport(served)
    with capture_logs() as log:
        async with httpx.AsyncClient(transport=transport, base_url="http://webhook") as client:
            answer = await client.post(
                "/validate", content=body, headers={"content-type": "application/json"}
            )

    response = answer.json()["response"]
    assert (200, "7", False, 500) == (
        answer.status_code,
        response["uid"],
        response["allowed"],
        response["status"]["code"],
    )
    assert response["status"]["message"].startswith(f"{named} was not created")
    assert "ValueError: Exceeds the limit" in response["status"]["message"]
    assert ["admission.crashed"] == [each["event"] for each in log]
