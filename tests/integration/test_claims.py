"""Resource claims: the devices that Slurm gave, written while the pod still has its gate."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bridge.domain.model.claims.giving import FINALIZER
from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmcli import plugin
from tests.integration import claimed_devices
from tests.integration.claimed_devices import (
    API,
    CLASS_AS_RESOURCE,
    DRIVER,
    NICS,
    PATIENCE_S,
    RESOURCE,
    UNKNOWN_RESOURCE,
    Devices,
    claiming,
    device_class,
    pod,
)
from tests.servers import fresh_namespace, wait_until
from tests.slurmcli import sowing

OTHERS = 200


@pytest.fixture(scope="module")
def with_devices() -> Iterator[Sandbox]:
    with claimed_devices.sandbox_with_devices() as sandbox:
        yield sandbox


@pytest.fixture
def devices(with_devices: Sandbox) -> Iterator[Devices]:
    with claimed_devices.bridged(with_devices) as devices:
        yield devices


def test_a_claim_gets_the_devices_that_slurm_gave(devices: Devices) -> None:
    devices.claim("two", kind="resourceclaimtemplates", count=2)
    taken: set[tuple[str, str]] = set()
    for name in ("first", "second", "third"):
        devices.pod(name, resourceClaimTemplateName="two")
    for name in ("first", "second", "third"):
        status = devices.given(name)
        results = status["allocation"]["devices"]["results"]
        assert {result["device"] for result in results} == devices.in_slurm(name)
        assert {result["pool"] for result in results} == {devices.get(name)["spec"]["nodeName"]}
        assert [each["name"] for each in status["reservedFor"]] == [name]
        taken |= {(result["pool"], result["device"]) for result in results}
    assert len(taken) == 6

    devices.sandbox.admin.delete(f"/api/v1/namespaces/{devices.namespace}/pods/first")
    wait_until(lambda: len(claims_given(devices)) == 2, PATIENCE_S, sandbox=devices.sandbox)


def claims_given(devices: Devices) -> list[dict[str, Any]]:
    path = f"{API}/namespaces/{devices.namespace}/resourceclaims"
    return [
        item
        for item in devices.sandbox.admin.get(path)["items"]
        if "allocation" in item.get("status", {})
    ]


def test_a_pod_whose_binding_fails_once_keeps_its_devices(devices: Devices) -> None:
    """kube-scheduler takes a failed pod out of `reservedFor`, and puts it in again at its next try."""
    devices.claim("one", kind="resourceclaimtemplates")
    with bindings_refused(devices):
        devices.pod("unlucky", resourceClaimTemplateName="one")
        wait_until(
            lambda: [
                each for each in claims_given(devices) if not each["status"].get("reservedFor")
            ],
            PATIENCE_S,
            sandbox=devices.sandbox,
        )
    status = devices.given("unlucky")
    assert {result["device"] for result in status["allocation"]["devices"]["results"]} == (
        devices.in_slurm("unlucky")
    )
    assert [each["name"] for each in status["reservedFor"]] == ["unlucky"]


@contextmanager
def bindings_refused(devices: Devices) -> Iterator[None]:
    """No pod of the namespace can be bound meanwhile, nor a ConfigMap be created, which shows since when."""
    admin, name = devices.sandbox.admin, f"no-binding-in-{devices.namespace}"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods/binding", "configmaps"],
    }
    policies = (
        {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": "not now"}],
        },
        {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {
                "namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": devices.namespace}
                }
            },
        },
    )
    paths = [
        f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic{end}"
        for end in ("ies", "ybindings")
    ]
    for path, spec in zip(paths, policies, strict=True):
        admin.create(path, {"metadata": {"name": name}, "spec": spec})

    def is_refused() -> bool:
        try:
            path = f"/api/v1/namespaces/{devices.namespace}/configmaps"
            admin.create(path, {"metadata": {"generateName": "allowed-"}})
        except ApiError as error:
            return "not now" in str(error)
        return False

    try:
        wait_until(is_refused, PATIENCE_S, sandbox=devices.sandbox)
        yield
    finally:
        for path in reversed(paths):
            admin.delete(f"{path}/{name}")


def test_a_pod_whose_claims_kubernetes_names_in_turn_gets_its_devices(devices: Devices) -> None:
    """kube-controller-manager 1.36 may drop the name of one claim when it writes that of another, and so on for ever."""
    devices.claim("one", kind="resourceclaimtemplates")
    for name in ("full-0", "full-1"):
        devices.create(claiming(name, CLASS_AS_RESOURCE, devices=4))
        devices.runs(name)
    body = pod("both", resourceClaimTemplateName="one")
    body["spec"]["resourceClaims"].append({"name": "other", "resourceClaimTemplateName": "one"})
    body["spec"]["containers"][0]["resources"]["claims"].append({"name": "other"})
    devices.create(body)

    def named() -> list[dict[str, str]]:
        status: dict[str, Any] = devices.get("both")["status"]
        return list(status.get("resourceClaimStatuses", []))

    def is_named_alone(entry: str) -> bool:
        return [entry] == [each["name"] for each in named()]

    wait_until(lambda: len(named()) == 2, PATIENCE_S, sandbox=devices.sandbox)
    one_alone = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "both"},
        "status": {"resourceClaimStatuses": named()[:1]},
    }
    as_controller = (
        "--server-side",
        "--force-conflicts",
        "--field-manager=ResourceClaimController",
    )
    devices.sandbox.kubectl(
        *("-n", devices.namespace, "apply", "--subresource=status", *as_controller, "-f", "-"),
        stdin=yaml.safe_dump(one_alone),
    )
    for alone in ("gpu", "other", "gpu"):
        wait_until(partial(is_named_alone, alone), PATIENCE_S, sandbox=devices.sandbox)

    devices.sandbox.admin.delete(f"/api/v1/namespaces/{devices.namespace}/pods/full-0")
    devices.runs("both")
    assert {"gpu", "other"} == {each["name"] for each in named()}


def test_a_claim_of_a_pod_that_never_starts_goes_with_it(devices: Devices) -> None:
    """It has had its finalizer since its job was submitted."""
    devices.claim("all", kind="resourceclaimtemplates", count=4)
    names_of = [f"pod-{number}" for number in range(len(claimed_devices.OPTIONS.node_names) + 1)]
    for name in names_of[:-1]:
        devices.pod(name, resourceClaimTemplateName="all")
        devices.given(name)
    devices.pod(names_of[-1], resourceClaimTemplateName="all")

    def waiting() -> list[dict[str, Any]]:
        """The claims without devices."""
        path = f"{API}/namespaces/{devices.namespace}/resourceclaims"
        found = devices.sandbox.admin.get(path)["items"]
        return [each for each in found if "allocation" not in each.get("status", {})]

    wait_until(
        lambda: [[FINALIZER]] == [each["metadata"].get("finalizers") for each in waiting()],
        PATIENCE_S,
        sandbox=devices.sandbox,
    )

    devices.sandbox.admin.delete(f"/api/v1/namespaces/{devices.namespace}/pods/{names_of[-1]}")
    wait_until(lambda: not waiting(), PATIENCE_S, sandbox=devices.sandbox)


def test_what_slurm_cannot_honour_is_told_on_the_pod(devices: Devices) -> None:
    by_name = {"cel": {"expression": "device.attributes['gpu.example.com'].index == 3"}}
    devices.claim("third-one", selectors=[by_name])
    devices.pod("picky", resourceClaimName="third-one")
    devices.is_told("picky", "selectors: cannot be honoured")


@pytest.mark.parametrize("form", ["claim", CLASS_AS_RESOURCE, RESOURCE])
def test_nobody_else_s_pod_that_could_get_devices_of_slurm_s_nodes_is_made(
    with_devices: Sandbox, form: str
) -> None:
    with fresh_namespace(with_devices, labels={}) as namespace:
        body = claiming("intruder", form)
        body["spec"]["tolerations"] = [{"operator": "Exists"}]
        with pytest.raises(ApiError, match="devices that are Slurm's"):
            with_devices.admin.create(f"/api/v1/namespaces/{namespace}/pods", body)


def test_claims_of_others_at_the_same_instant_get_no_device_of_slurm_s_nodes(
    devices: Devices, with_devices: Sandbox
) -> None:
    """kube-scheduler's allocator has looked at each of them, and Slurm has given all devices."""
    devices.claim("two", kind="resourceclaimtemplates", count=2)
    ours = [f"ours-{number}" for number in range(4)]
    with fresh_namespace(with_devices, labels={}) as namespace:
        Devices(with_devices, namespace).claim("mine", kind="resourceclaimtemplates")
        path = f"/api/v1/namespaces/{namespace}/pods"
        forms = ("claim", CLASS_AS_RESOURCE, RESOURCE)
        others = [claiming(f"other-{n}", forms[n % len(forms)]) for n in range(OTHERS)]
        with ThreadPoolExecutor(8) as pool:
            made = [pool.submit(with_devices.admin.create, path, body) for body in others]
            for name in ours:
                devices.pod(name, resourceClaimTemplateName="two")
            for each in made:
                each.result()

        def were_looked_at() -> bool:
            found = with_devices.admin.get(path)["items"]
            return OTHERS == sum(
                any(
                    condition["reason"] == "Unschedulable"
                    for condition in pod["status"]["conditions"]
                )
                for pod in found
                if "conditions" in pod["status"]
            )

        for name in ours:
            devices.given(name)
        wait_until(were_looked_at, PATIENCE_S, sandbox=with_devices)
        everywhere = with_devices.admin.get(f"{API}/resourceclaims")["items"]

    given = [each for each in everywhere if "allocation" in each.get("status", {})]
    owners = [claim["status"]["reservedFor"][0]["name"] for claim in given]
    assert sorted(owners) == ours
    results = [each["status"]["allocation"]["devices"]["results"] for each in given]
    assert 8 == len({(one["pool"], one["device"]) for found in results for one in found})


def test_the_doctor_warns_of_a_profile_whose_class_is_gone(with_devices: Sandbox) -> None:
    admin, path = with_devices.admin, f"{API}/deviceclasses"
    untold = f"DeviceClass {NICS} has extendedResourceName {UNKNOWN_RESOURCE}"
    before = sowing.examined(with_devices.env)["device profiles"]["found"]
    assert before.startswith(untold)
    assert ";" not in before

    admin.delete(f"{path}/{DRIVER}")
    try:
        found = sowing.examined(with_devices.env)["device profiles"]
    finally:
        admin.create(path, device_class())

    assert "warning" == found["verdict"]
    assert "no DeviceClass selects the devices of gpu:example" in found["found"]
    assert f"{RESOURCE} stands for DeviceClass {DRIVER}, which does not exist" in found["found"]


def test_explain_and_why_know_claims(devices: Devices, tmp_path: Path) -> None:
    two = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": 2}}
    odd = {"name": "odd", "exactly": {"deviceClassName": "nobody-s"}}
    for name, requests in (("two", [two]), ("odd", [two, odd])):
        template = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name},
            "spec": {"spec": {"devices": {"requests": requests}}},
        }
        asking = {"apiVersion": "v1", "kind": "Pod", **pod(name, resourceClaimTemplateName=name)}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all([template, asking]))
    by_class = {"apiVersion": "v1", "kind": "Pod", **claiming("by-class", CLASS_AS_RESOURCE)}
    (tmp_path / "by-class.yaml").write_text(yaml.safe_dump(by_class))

    def run(*arguments: str) -> Any:
        given = (*arguments, "-n", devices.namespace, "-o", "json")
        return json.loads(CliRunner().invoke(plugin.app(), given, env=devices.sandbox.env).stdout)

    (two_of_them,) = run("explain", str(tmp_path / "two.yaml"))
    assert [f"gpu/gpu: 2 of {DRIVER} = gpu:example"] == two_of_them["claims"]
    assert "gpu:example:2" in two_of_them["job"]["tres_per_node"]
    (one_by_class,) = run("explain", str(tmp_path / "by-class.yaml"))
    assert [f"slurm-bridge-0/devices: 1 of {DRIVER} = gpu:example"] == one_by_class["claims"]
    (refused,) = run("explain", str(tmp_path / "odd.yaml"))
    assert "there is no DeviceClass nobody-s" in str(refused["faults"])
    assert "gpu/odd: 1 of nobody-s = no GRES" in refused["claims"]

    devices.claim("mine")
    devices.pod("one", resourceClaimName="mine")
    (result,) = devices.given("one")["allocation"]["devices"]["results"]
    told = dict(run("why", "one")["details"])["claim gpu"]
    assert f"claim mine: {result['device']} of {DRIVER} on {result['pool']}" == told


def test_who_may_edit_a_namespace_cannot_write_what_a_claim_was_given(devices: Devices) -> None:
    admin = devices.sandbox.admin
    role = "/apis/rbac.authorization.k8s.io/v1"
    subject = {"kind": "User", "name": "editor", "apiGroup": "rbac.authorization.k8s.io"}
    ref = {"kind": "ClusterRole", "name": "edit", "apiGroup": "rbac.authorization.k8s.io"}
    admin.create(
        f"{role}/namespaces/{devices.namespace}/rolebindings",
        {"metadata": {"name": "editor"}, "subjects": [subject], "roleRef": ref},
    )

    def may(user: str, verb: str, sub: str) -> bool:
        attributes = {
            "namespace": devices.namespace,
            "verb": verb,
            "group": "resource.k8s.io",
            "resource": "resourceclaims",
            "subresource": sub,
        }
        spec = {"user": user, "resourceAttributes": attributes}
        review = admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
        return bool(review["status"]["allowed"])

    wait_until(lambda: may("editor", "create", ""), PATIENCE_S, sandbox=devices.sandbox)
    assert not any(
        may("editor", verb, sub) for verb in ("patch", "update") for sub in ("status", "binding")
    )
