"""The controllers' self-test before a real API server: it notices whichever half of the webhook does not work, in one call or in two."""

import asyncio
import base64
from collections.abc import Iterator, Mapping

import pytest

from bridge.domain.admission import selftest
from controllers.webhook.selftest import SelfTest
from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from tests.servers import fresh_namespace, until, wait_until
from tests.webhook.running import Webhook, running_webhook

ADMISSION = "admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
NOT_FOR_US = {"rules": [{"name": "staff", "match": {"users": ["alice"]}, "user": "staff"}]}
EFFECTIVE_S = 30
HANDS_OVER, REFUSES = {"admit", "mutate"}, {"admit", "validate"}
NAME = f"spec.schedulerName {names.SCHEDULER_NAME}"


@pytest.fixture(scope="module")
def tested(control_plane: Sandbox) -> Iterator[str]:
    """The namespace of the test."""
    with fresh_namespace(control_plane, labels={}) as namespace:
        yield namespace


@pytest.fixture(scope="module")
def strict(tested: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    """A webhook whose rules are for others than the controllers."""
    folder = tmp_path_factory.mktemp("strict")
    argument = f"--self-test-namespace={tested}"
    with running_webhook(folder, argument, policy=NOT_FOR_US) as running:
        yield running


@pytest.mark.parametrize(
    ("calls", "complaint"),
    [
        pytest.param({"Mutating": "admit"}, "", id="one call"),
        pytest.param({"Mutating": "mutate", "Validating": "validate"}, "", id="two calls"),
        pytest.param({"Mutating": "validate"}, f"without {NAME}, the gate", id="refuses only"),
        pytest.param({"Mutating": "mutate"}, "does not call the webhook", id="hands over only"),
    ],
)
def test_it_says_which_half_does_not_work(
    control_plane: Sandbox, strict: Webhook, tested: str, calls: Mapping[str, str], complaint: str
) -> None:
    for kind, path in calls.items():
        register(control_plane, strict, tested, kind, path)
    try:
        paths = set(calls.values())
        wait_until(
            lambda: (
                does(control_plane, tested)
                == (not paths.isdisjoint(HANDS_OVER), not paths.isdisjoint(REFUSES))
            ),
            EFFECTIVE_S,
        )
        found = asyncio.run(fault(control_plane, tested))
    finally:
        for kind in calls:
            control_plane.admin.delete(configuration(kind))
        wait_until(lambda: does(control_plane, tested) == (False, False), EFFECTIVE_S)

    assert complaint in (found or "")
    assert bool(complaint) == bool(found)


async def fault(sandbox: Sandbox, namespace: str) -> str | None:
    """What one test finds."""
    opened = KubeClient.open(str(sandbox.kubeconfig), request_timeout_s=10, user_agent="test")
    async with opened as kube, asyncio.TaskGroup() as group:
        test = SelfTest(kube, namespace=namespace, interval_s=60, metrics=Metrics("controllers"))
        untested, stop = test.fault(), asyncio.Event()
        group.create_task(test.run(stop))
        await until(lambda: test.fault() != untested, EFFECTIVE_S)
        stop.set()
    return test.fault()


def does(sandbox: Sandbox, namespace: str) -> tuple[bool, bool]:
    """Whether the API server has pods handed over, and refused, by now."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    is_refused, is_handed_over = False, False
    try:
        sandbox.admin.request("POST", path, dict(selftest.FAULTY_POD), params={"dryRun": "All"})
    except ApiError:
        is_refused = True
    answer = sandbox.admin.request("POST", path, dict(selftest.SOUND_POD), params={"dryRun": "All"})
    is_handed_over = {"name": names.GATE} in answer["spec"].get("schedulingGates", [])
    return is_handed_over, is_refused


def configuration(kind: str, name: str = "/self-test") -> str:
    return f"/apis/{ADMISSION}/{kind.lower()}webhookconfigurations{name}"


def register(sandbox: Sandbox, webhook: Webhook, namespace: str, kind: str, path: str) -> None:
    ca = base64.b64encode(webhook.authority.certificate).decode()
    hook = {
        "name": f"{path}.slurm-bridge.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": f"{webhook.url}/{path}", "caBundle": ca},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [RULE],
    }
    body = {"apiVersion": ADMISSION, "kind": f"{kind}WebhookConfiguration"}
    metadata = {"name": "self-test"}
    sandbox.admin.create(
        configuration(kind, ""), {**body, "metadata": metadata, "webhooks": [hook]}
    )
