"""Devices asked for by their class become claims, on the real API server and the real Slurm."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from slurmruntime.values import names
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
)
from tests.servers import fresh_namespace, wait_until

BREAK_GLASS = "slurm-bridge:break-glass"
OURS = f"slurm-bridge-1-of-{DRIVER}"
"""The template of one device of the class."""
ONE = {"deviceClassName": DRIVER, "count": 1}
ANY = {"cel": {"expression": "true"}}
PARAMETERS = {"opaque": {"driver": DRIVER, "parameters": {"kind": "Shared"}}}


@pytest.fixture(scope="module")
def with_devices() -> Iterator[Sandbox]:
    with claimed_devices.sandbox_with_devices() as sandbox:
        yield sandbox


@pytest.fixture
def devices(with_devices: Sandbox) -> Iterator[Devices]:
    with claimed_devices.bridged(with_devices) as devices:
        yield devices
        path = f"/api/v1/namespaces/{devices.namespace}/pods"
        with_devices.admin.delete(path, gracePeriodSeconds=1)
        claims = f"{API}/namespaces/{devices.namespace}/resourceclaims"
        wait_until(
            lambda: not with_devices.admin.get(claims)["items"], PATIENCE_S, sandbox=with_devices
        )


def template(name: str = OURS, **devices: Any) -> dict[str, Any]:
    asked = {"requests": [{"name": "devices", "exactly": ONE}], **devices}
    return {"metadata": {"name": name}, "spec": {"spec": {"devices": asked}}}


def templates_of(devices: Devices) -> str:
    return f"{API}/namespaces/{devices.namespace}/resourceclaimtemplates"


@pytest.mark.parametrize("form", [CLASS_AS_RESOURCE, RESOURCE])
def test_who_asks_by_a_class_gets_a_claim_of_the_devices_that_slurm_gave(
    devices: Devices, form: str
) -> None:
    """From the manifest as it is: no claim, no template, only a limit."""
    for name in ("one", "another"):
        devices.create(claiming(name, form, devices=2))
    for name in ("one", "another"):
        results = devices.given(name)["allocation"]["devices"]["results"]
        assert 2 == len(results)
        assert {result["device"] for result in results} == devices.in_slurm(name)

    listed = devices.sandbox.admin.get(templates_of(devices))["items"]
    assert [f"slurm-bridge-2-of-{DRIVER}"] == [each["metadata"]["name"] for each in listed]


def test_a_pod_has_devices_of_several_profiles_of_one_node(devices: Devices) -> None:
    """GPUs, and those NICs of another driver that have the attribute of their class."""
    nics = f"deviceclass.resource.kubernetes.io/{NICS}"
    body = claiming("both", CLASS_AS_RESOURCE)
    body["spec"]["containers"][0]["resources"]["limits"][nics] = "2"
    devices.create(body)

    given = [
        {
            (result["driver"], result["device"])
            for result in status["allocation"]["devices"]["results"]
        }
        for status in devices.all_given("both")
    ]
    (gpu,) = devices.in_slurm("both")
    nic = claimed_devices.NIC_DRIVER
    assert [{(DRIVER, gpu)}, {(nic, "nic-0"), (nic, "nic-1")}] == given
    assert {"nic-0", "nic-1"} == devices.in_slurm("both", gres="nic", device="nic")


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_a_pod_that_asks_by_a_class_is_applied_again(
    devices: Devices, how: tuple[str, ...]
) -> None:
    """What is stored has a claim, and no limit of that name. Another number of devices is refused.

    A claim of a user's own has our allocation and finalizer, as it has kube-scheduler's elsewhere.
    """
    body = {"apiVersion": "v1", "kind": "Pod", **claiming("applied", CLASS_AS_RESOURCE)}
    asked = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": 1}}]}
    claim: dict[str, Any] = {"metadata": {"name": "own"}, "spec": {"devices": asked}}
    claim |= {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    using = claimed_devices.pod("using", resourceClaimName="own")
    using |= {"apiVersion": "v1", "kind": "Pod"}
    where = ("-n", devices.namespace)
    written = yaml.safe_dump_all([body, claim, using])
    devices.sandbox.kubectl(*where, "apply", *how, "-f", "-", stdin=written)
    devices.runs("using")
    before = devices.runs("applied")["spec"]

    for verb in ("diff", "apply"):
        devices.sandbox.kubectl(*where, verb, *how, "-f", "-", stdin=written)
    assert before == devices.get("applied")["spec"]

    body["spec"]["containers"][0]["resources"]["limits"][CLASS_AS_RESOURCE] = "2"
    with pytest.raises(SandboxError, match="pod updates may not change fields"):
        devices.sandbox.kubectl(*where, "apply", *how, "-f", "-", stdin=yaml.safe_dump(body))
    gone = ("delete", "--grace-period=1", "--wait=false", "-f", "-")
    devices.sandbox.kubectl(*where, *gone, stdin=written)


def test_a_resource_name_of_a_class_that_the_bridge_was_not_told_of_gets_nothing(
    devices: Devices,
) -> None:
    """kube-scheduler would give such a pod devices of Slurm's, if it ever saw it."""
    devices.create(claiming("by-resource", UNKNOWN_RESOURCE))

    devices.is_told(
        "by-resource", f"none of the 2 nodes that suit the pod has 1 {UNKNOWN_RESOURCE}"
    )
    assert names.GATE in [
        scheduling_gate["name"]
        for scheduling_gate in devices.get("by-resource")["spec"]["schedulingGates"]
    ]


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"limits": "500m"}, "expected a whole number of devices, found '500m'"),
        (
            {"limits": "2", "requests": "1"},
            "expected a limit that equals the request '1', found '2'",
        ),
        ({"requests": "1"}, "expected a limit that equals the request '1', found none"),
    ],
)
def test_what_kubernetes_refuses_of_a_resource_is_refused_by_class_too(
    devices: Devices, resources: dict[str, str], words: str
) -> None:
    """Of a resource without this prefix it refuses all of it itself."""
    body = claiming("odd", CLASS_AS_RESOURCE)
    body["spec"]["containers"][0]["resources"] = {
        key: {CLASS_AS_RESOURCE: n} for key, n in resources.items()
    }
    with pytest.raises(ApiError, match=words):
        devices.create(body)


def test_a_template_that_is_gone_before_its_claim_is_made_comes_back(devices: Devices) -> None:
    """Kubernetes makes the claim some time after the job was submitted: here its controllers are down."""
    sandbox, path = devices.sandbox, templates_of(devices)
    sandbox.stop("controller-manager")
    try:
        devices.create(claiming("early", CLASS_AS_RESOURCE))
        devices.is_told("early", "Kubernetes has not made the claim for slurm-bridge-0 yet")
        sandbox.admin.delete(f"{path}/{OURS}")
        wait_until(lambda: sandbox.admin.get(path)["items"], PATIENCE_S, sandbox=sandbox)
    finally:
        sandbox.start("controller-manager")

    (result,) = devices.given("early")["allocation"]["devices"]["results"]
    assert {result["device"]} == devices.in_slurm("early")


@pytest.mark.parametrize("counted", [CLASS_AS_RESOURCE, RESOURCE])
def test_a_quota_on_devices_of_a_class_holds(devices: Devices, counted: str) -> None:
    """Kubernetes counts the claims: the pods that admission has changed ask for none."""
    admin, path = devices.sandbox.admin, f"/api/v1/namespaces/{devices.namespace}"
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {f"requests.{counted}": "1"}}}
    admin.create(f"{path}/resourcequotas", quota)
    wait_until(
        lambda: admin.get(f"{path}/resourcequotas/few").get("status", {}).get("used"),
        PATIENCE_S,
        sandbox=devices.sandbox,
    )
    devices.create(claiming("first", CLASS_AS_RESOURCE))
    devices.runs("first")
    devices.create(claiming("second", CLASS_AS_RESOURCE))
    devices.is_told("second", "Kubernetes has not made the claim for slurm-bridge-0 yet")

    admin.delete(f"{path}/pods/first", gracePeriodSeconds=1)
    devices.runs("second")


@pytest.mark.attack(
    "make a template for requests by a DeviceClass that says something else than its name",
    "policy `templates`",
)
def test_nobody_else_decides_what_a_template_of_our_name_asks_for(devices: Devices) -> None:
    """Whoever restores a backup may create it as it was."""
    admin, path = devices.sandbox.admin, templates_of(devices)
    others = [
        template(config=[PARAMETERS]),
        template(name=f"slurm-bridge-2-of-{DRIVER}"),
        template(name=f"slurm-bridge-1-of-{NICS}"),
        template(requests=[{"name": "devices", "exactly": {**ONE, "selectors": [ANY]}}]),
    ]
    for other in others:
        with pytest.raises(ApiError, match="stand for requests by a DeviceClass"):
            admin.create(path, other)
    admin.create(path, template())
    admin.create(path, template(name="slurm-bridge-like", config=[PARAMETERS]))


@pytest.mark.attack(
    "have that template there before the policy is",
    "no template of ours, and no claim made from one, is used unless it says what the name says",
)
def test_a_template_that_somebody_made_before_is_not_used(
    with_devices: Sandbox, devices: Devices
) -> None:
    """With parameters for the driver, which a pod's author never wrote: here by way of break-glass."""
    group = ("system:masters", BREAK_GLASS)
    with Api(with_devices.user_kubeconfig("medic", *group)) as medic:
        medic.create(templates_of(devices), template(config=[PARAMETERS]))
    devices.create(claiming("victim", CLASS_AS_RESOURCE))

    devices.is_told("victim", "does not ask for what the template name")
    found = devices.get("victim")
    assert names.JOB_ID_LABEL not in found["metadata"]["labels"]


@pytest.mark.attack(
    "make a claim that Kubernetes takes for the one of a pod's request by a DeviceClass",
    "the same check of the claim, at the submit and again when it is given devices",
)
def test_a_claim_that_somebody_made_in_the_place_of_ours_is_not_used(devices: Devices) -> None:
    """Kubernetes takes a claim for the pod's own that says so, whoever has made it."""
    sandbox = devices.sandbox
    sandbox.stop("controller-manager")
    try:
        devices.create(claiming("victim", CLASS_AS_RESOURCE))
        devices.is_told("victim", "Kubernetes has not made the claim for slurm-bridge-0 yet")
        uid = devices.get("victim")["metadata"]["uid"]
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "victim",
            "uid": uid,
            "controller": True,
        }
        asked = template(config=[PARAMETERS])["spec"]["spec"]
        metadata = {
            "name": "in-its-place",
            "ownerReferences": [owner],
            "annotations": {"resource.kubernetes.io/pod-claim-name": "slurm-bridge-0"},
        }
        sandbox.admin.create(
            f"{API}/namespaces/{devices.namespace}/resourceclaims",
            {"metadata": metadata, "spec": asked},
        )
    finally:
        sandbox.start("controller-manager")

    devices.is_told("victim", "claim in-its-place does not ask for what the template name")
    claim = sandbox.admin.get(f"{API}/namespaces/{devices.namespace}/resourceclaims/in-its-place")
    assert "allocation" not in claim.get("status", {})


def test_a_namespace_with_templates_of_its_own_is_told_of_them_when_it_becomes_slurm_s(
    with_devices: Sandbox,
) -> None:
    with fresh_namespace(with_devices, labels={}) as namespace:
        path = f"{API}/namespaces/{namespace}/resourceclaimtemplates"
        with_devices.admin.create(path, template(config=[PARAMETERS]))
        label = {"metadata": {"labels": {names.ENABLED_LABEL: "true"}}}
        with_devices.admin.patch(f"/api/v1/namespaces/{namespace}", label)
        devices = Devices(with_devices, namespace)

        def is_selected() -> bool:
            try:
                with_devices.admin.create(path, template(config=[PARAMETERS]))
            except ApiError as error:
                return "stand for requests" in error.message
            return False

        wait_until(is_selected, PATIENCE_S, sandbox=with_devices)
        devices.create(claiming("late", CLASS_AS_RESOURCE))
        devices.is_told("late", "does not ask for what the template name")

        with_devices.admin.delete(f"{path}/{OURS}")
        with_devices.admin.delete(f"/api/v1/namespaces/{namespace}/pods/late")
        devices.create(claiming("later", CLASS_AS_RESOURCE))
        devices.runs("later")
