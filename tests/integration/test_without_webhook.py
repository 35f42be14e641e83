"""The API server hands pods to Slurm by itself (`admission.mutate: policy`): no process of ours is needed to create them."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from bridge.domain import caps
from sandbox.api import Api, ApiError
from sandbox.chart import CHART, RELEASE
from sandbox.client import Sandbox
from slurmruntime.values import names
from slurmruntime.values.names import REQUEST_PREFIX
from tests.integration.policed import person
from tests.integration.worlds import Manifest, Worlds, condition, is_gated, played
from tests.make import oversized
from tests.servers import SERVICES, fresh_namespace, wait_until

PATIENCE_S = 60.0
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
KINDS = {
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}


def admission(sandbox: Sandbox, **values: dict[str, str]) -> list[Manifest]:
    """What the chart registers for admission, with some values other than the sandbox's."""
    instance = sandbox.instance
    given: dict[str, Any] = json.loads((instance.bridge / "values.json").read_text())
    for section, changes in values.items():
        given[section] = {**given.get(section, {}), **changes}
    done = subprocess.run(
        [
            *(str(instance.bin / "helm"), "template", RELEASE, str(CHART)),
            *("--namespace", names.RELEASE_NAMESPACE, "--kube-version", "1.36.4", "--values", "-"),
        ],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )
    return [m for m in yaml.safe_load_all(done.stdout) if m and m["kind"] in KINDS]


def put(sandbox: Sandbox, wanted: list[Manifest], instead_of: list[Manifest]) -> None:
    """Have these, and not those that are not among them."""
    kept = {(m["kind"], m["metadata"]["name"]) for m in wanted}
    for manifest in instead_of:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        if (kind, name) not in kept:
            sandbox.kubectl("delete", kind, name)
    items = {"apiVersion": "v1", "kind": "List", "items": wanted}
    sandbox.kubectl(
        *("apply", "--server-side", "--force-conflicts", "--filename=-"), stdin=json.dumps(items)
    )


@pytest.fixture
def nobody(full_sandbox: Sandbox) -> Iterator[Worlds]:
    """A labelled namespace; a policy mutates, and all three services are stopped."""
    before = admission(full_sandbox)
    policy = {"mutate": "policy"}
    after = admission(full_sandbox, admission=policy, webhook={"failurePolicy": "Ignore"})
    with fresh_namespace(full_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(full_sandbox, name)
        put(full_sandbox, after, before)
        for service in SERVICES:
            full_sandbox.stop(service)
        try:
            wait_until(lambda: takes_pods(worlds), PATIENCE_S, sandbox=full_sandbox)
            yield worlds
        finally:
            for service in SERVICES:
                full_sandbox.start(service)
            put(full_sandbox, before, after)
            wait_until(lambda: asks_the_webhook(worlds), PATIENCE_S, sandbox=full_sandbox)
            worlds.clear()


def dry_run(worlds: Worlds, **annotations: str) -> Manifest:
    body = {
        "metadata": {"name": "probe", "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "example.test/image"}]},
    }
    pods = f"{worlds.path}/pods"
    answer: Manifest = worlds.sandbox.admin.request("POST", pods, body, params={"dryRun": "All"})
    return answer


def takes_pods(worlds: Worlds) -> bool:
    try:
        return is_gated(dry_run(worlds))
    except ApiError:
        return False


def asks_the_webhook(worlds: Worlds) -> bool:
    try:
        return names.RULES_ANNOTATION in dry_run(worlds)["metadata"]["annotations"]
    except (ApiError, KeyError):
        return False


def can_list(api: Api, worlds: Worlds) -> bool:
    try:
        return bool(api.get(f"{worlds.path}/pods"))
    except ApiError:
        return False


@pytest.mark.attack(
    "write a rank of 5000 digits while the webhook is down",
    "policy `bypass` alone",
)
def test_what_is_written_at_the_pin_is_refused_by_the_policies_alone(
    nobody: Worlds, full_sandbox: Sandbox
) -> None:
    with person(full_sandbox, nobody.namespace, "alice") as alice:
        wait_until(lambda: can_list(alice, nobody), PATIENCE_S, sandbox=full_sandbox)
        for annotation in names.WRITTEN_AT_THE_PIN:
            with pytest.raises(ApiError) as refused:
                nobody.submit("odd", annotations={annotation: "9" * 5000}, by=alice)
            assert f"metadata.annotations[{annotation}]: leave it out" in refused.value.message


@pytest.mark.attack(
    "give a pod too much of anything while the webhook is down",
    "the same caps, before each submit",
)
def test_pods_are_taken_by_nobody_and_placed_later(nobody: Worlds, full_sandbox: Sandbox) -> None:
    uid = nobody.submit("patient", annotations=played(seconds=1))
    nobody.submit("faulty", annotations={f"{REQUEST_PREFIX}timelimit": "soon"})

    too_much = oversized.having("affinity_terms", 2 * caps.TABLE["affinity_terms"].largest)
    nobody.submit("fat", **too_much["spec"])

    for name in ("patient", "faulty", "fat"):
        pod = nobody.await_pod(name, is_gated)
        assert pod["spec"]["schedulerName"] in names.schedulers(names.SCHEDULER_NAME)
        assert [names.FINALIZER] == pod["metadata"]["finalizers"]
        assert "sandbox:admin" == pod["metadata"]["annotations"][names.REQUESTER_ANNOTATION]
        assert names.RULES_ANNOTATION not in pod["metadata"]["annotations"]

    for service in SERVICES:
        full_sandbox.start(service)

    nobody.await_phase("patient", "Succeeded")
    assert "COMPLETED" == nobody.await_accounted(uid).state
    told = nobody.await_pod("faulty", lambda pod: condition(pod).get("reason") == "SubmitRefused")
    assert f"metadata.annotations[{REQUEST_PREFIX}timelimit]" in condition(told)["message"]
    told = nobody.await_pod("fat", lambda pod: condition(pod).get("reason") == "SubmitRefused")
    assert "expected at most 50 terms, found 1000" in condition(told)["message"]
