"""What the webhook answers over a real TLS socket, to what a real API server sent."""

import base64
import json
import ssl
from typing import Any

import httpx
import pytest

from slurmruntime.values import names
from tests.servers import wait_until
from tests.webhook.recordings import edited, recorded, with_pod
from tests.webhook.running import JSON, Webhook

BRIDGED = f"/metadata/labels/{names.BRIDGED_LABEL}".replace(".dev/", ".dev~1")
GATE = {"name": names.GATE}
TOLERATION = {"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}


def patch_of(response: dict[str, Any]) -> dict[str, Any]:
    """Path → value; all of them are additions."""
    assert "JSONPatch" == response["patchType"]
    operations = json.loads(base64.b64decode(response["patch"]))
    assert {"add"} == {operation["op"] for operation in operations}
    return {operation["path"]: operation["value"] for operation in operations}


def written(name: str) -> dict[str, str]:
    """On whose behalf a recorded pod is made, as the webhook notes it down."""
    request = json.loads(recorded(name))["request"]
    user = request["userInfo"]["username"]
    owners = request["object"]["metadata"].get("ownerReferences", ())
    notes = {names.REQUESTER_ANNOTATION: user, names.RULES_ANNOTATION: "all"}
    for owner in owners:
        if owner.get("controller"):
            notes[names.OWNER_ANNOTATION] = owner["uid"]
    return notes


def attribution(name: str) -> dict[str, Any]:
    """The same as operations of a patch."""
    pod = json.loads(recorded(name))["request"]["object"]
    if not pod["metadata"].get("annotations"):
        return {"/metadata/annotations": written(name)}
    return {
        f"/metadata/annotations/{key.replace('/', '~1')}": value
        for key, value in written(name).items()
    }


def labelled(name: str) -> dict[str, Any]:
    """The label as an operation of a patch."""
    if json.loads(recorded(name))["request"]["object"]["metadata"].get("labels"):
        return {BRIDGED: "true"}
    return {"/metadata/labels": {names.BRIDGED_LABEL: "true"}}


@pytest.mark.parametrize("path", ["/admit", "/mutate"])
@pytest.mark.parametrize("name", ["pod", "pod-of-a-job"])
def test_an_ordinary_pod_is_handed_over(webhook: Webhook, name: str, path: str) -> None:
    has_finalizers = name == "pod-of-a-job"
    response = webhook.review(path, recorded(name))

    assert {
        **attribution(name),
        **labelled(name),
        "/spec/schedulerName": names.SCHEDULER_NAME,
        "/spec/schedulingGates": [GATE],
        **(
            {"/metadata/finalizers/-": names.FINALIZER}
            if has_finalizers
            else {"/metadata/finalizers": [names.FINALIZER]}
        ),
        "/spec/tolerations/-": TOLERATION,
        "/metadata/managedFields": [],
    } == patch_of(response)
    assert json.loads(recorded(name))["request"]["uid"] == response["uid"]
    assert response["allowed"]


def test_what_others_wrote_is_kept(webhook: Webhook) -> None:
    assert {
        **attribution("rich-pod"),
        **labelled("rich-pod"),
        "/spec/schedulerName": names.SCHEDULER_NAME,
        "/spec/schedulingGates/-": GATE,
        "/metadata/finalizers/-": names.FINALIZER,
        "/spec/tolerations/-": TOLERATION,
        "/metadata/managedFields": [],
    } == patch_of(webhook.review("/mutate", recorded("rich-pod")))


def test_a_second_call_changes_nothing(webhook: Webhook) -> None:
    body = with_pod(
        metadata={
            "finalizers": [names.FINALIZER],
            "annotations": written("pod"),
            "labels": {names.BRIDGED_LABEL: "true"},
            "managedFields": [],
        },
        spec={
            "schedulerName": names.SCHEDULER_NAME,
            "schedulingGates": [GATE],
            "tolerations": [TOLERATION],
        },
    )

    assert {"allowed", "uid"} == webhook.review("/mutate", body).keys()


@pytest.mark.parametrize("name", ["pod", "pod-of-a-job"])
def test_an_ordinary_pod_is_allowed(webhook: Webhook, name: str) -> None:
    response = webhook.review("/validate", recorded(name))

    assert response["allowed"]
    assert {"allowed", "uid"} == response.keys()


@pytest.mark.parametrize("path", ["/admit", "/validate"])
def test_a_pod_that_cannot_work_is_refused_with_every_reason(webhook: Webhook, path: str) -> None:
    response = webhook.review(path, recorded("rich-pod"))
    status = response["status"]

    assert not response["allowed"]
    assert "patch" not in response
    assert (422, "Invalid", "Pod") == (status["code"], status["reason"], status["details"]["kind"])
    assert [
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        "spec.topologySpreadConstraints[1].whenUnsatisfiable",
        "spec.resourceClaims",
    ] == [cause["field"] for cause in status["details"]["causes"]]
    assert all(cause["message"] in status["message"] for cause in status["details"]["causes"])
    (warning,) = response["warnings"]
    assert "spec.affinity.nodeAffinity.preferred" in warning


def test_annotations_are_judged_beside_the_pods_own_requests(webhook: Webhook) -> None:
    resources = {"requests": {"cpu": "3"}, "limits": {"nvidia.com/gpu": "2"}}
    body = with_pod(
        metadata={
            "annotations": {
                f"{names.REQUEST_PREFIX}{field}": value
                for field, value in {
                    "cpu-per-task": "2",
                    "gres": "gpu:1",
                    "nice": "5",
                    "qos": "high",
                    "timelimit": "soon",
                }.items()
            }
        },
        spec={"containers": [{"name": "main", "resources": resources}]},
    )
    causes = webhook.review("/validate", body)["status"]["details"]["causes"]

    assert ["timelimit", "qos", "cpu-per-task", "gres"] == [
        cause["field"].split("/")[1].rstrip("]") for cause in causes
    ]


@pytest.mark.parametrize("path", ["/admit", "/validate"])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(recorded("update"), id="UPDATE"),
        pytest.param(recorded("status-update"), id="UPDATE of the status"),
        pytest.param(recorded("delete"), id="DELETE"),
        pytest.param(recorded("binding"), id="a Binding"),
        pytest.param(edited("pod", operation="CONNECT"), id="CONNECT"),
        pytest.param(
            edited("pod", kind={"group": "apps", "version": "v1", "kind": "Deployment"}),
            id="another kind",
        ),
        pytest.param(
            edited("pod", kind={"group": "x.example", "version": "v1", "kind": "Pod"}),
            id="another group's Pod",
        ),
    ],
)
def test_whatever_is_no_new_pod_passes(webhook: Webhook, path: str, body: bytes) -> None:
    """A registration that sends too much must not block anybody."""
    response = webhook.review(path, body)

    assert response["allowed"]
    assert {"allowed", "uid"} == response.keys()


def test_a_pod_that_was_created_under_a_higher_cap_gets_back_what_it_has_from_us(
    webhook: Webhook,
) -> None:
    response = webhook.review("/keep", edited("update", **_applied_again(notes_bytes=1_100_000)))

    assert names.SCHEDULER_NAME == patch_of(response)["/spec/schedulerName"]


def test_an_update_gets_back_what_a_pod_has_from_us(webhook: Webhook) -> None:
    """And no new pod, no status and no other kind is looked at."""
    taken = _applied_again()

    response = webhook.review("/keep", edited("update", **taken))
    assert {
        "/spec/schedulerName": names.SCHEDULER_NAME,
        "/spec/tolerations": [TOLERATION],
    } == patch_of(response)
    for name in ("pod", "status-update", "delete", "binding"):
        assert {"allowed", "uid"} == webhook.review("/keep", edited(name, **taken)).keys()


def _applied_again(*, notes_bytes: int = 0) -> dict[str, Any]:
    """A pod of ours whose manifest is applied again, without what we added."""
    pod = json.loads(recorded("update"))["request"]["object"]
    pod["metadata"]["annotations"] = {"notes": "x" * notes_bytes}
    before = {**pod, "spec": {**pod["spec"], "schedulerName": names.SCHEDULER_NAME}}
    before["spec"]["tolerations"] = [TOLERATION]
    after = {**pod, "spec": {**pod["spec"], "schedulerName": "default-scheduler"}}
    after["spec"].pop("tolerations", None)
    return {"object": after, "oldObject": before}


@pytest.mark.parametrize("path", ["/admit", "/validate"])
@pytest.mark.parametrize(
    ("pod", "complaint"),
    [
        (None, "request.object is missing"),
        ([], "Expected `object`, got `array`"),
        ({}, "Object missing required field `metadata`"),
        (json.loads('{"a":' * 500 + "1" + "}" * 500), "Object missing required field"),
        (
            {"metadata": {}, "spec": {"tolerations": "x"}},
            "Expected `array`, got `str` - at `$.spec.tolerations`",
        ),
        (
            {"metadata": {}, "spec": {"tolerations": [{}, {"key": 1}]}},
            "Expected `str`, got `int` - at `$.spec.tolerations[1].key`",
        ),
        (
            {
                "metadata": {},
                "spec": {
                    "affinity": {
                        "podAntiAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": 1}]
                        }
                    }
                },
            },
            "at `$.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey`",
        ),
        (
            {
                "metadata": {},
                "spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]},
            },
            "expected a Kubernetes quantity such as 2, 500m, 1.5Gi or 1e3, found 'lots'",
        ),
    ],
)
def test_an_object_that_is_no_pod_is_refused_in_words(
    webhook: Webhook, path: str, pod: object, complaint: str
) -> None:
    response = webhook.review(path, edited("pod", object=pod))

    assert not response["allowed"]
    assert 400 == response["status"]["code"]
    assert complaint in response["status"]["message"]


@pytest.mark.parametrize("path", ["/admit", "/validate"])
@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param(b"", "the body is not an AdmissionReview", id="empty"),
        pytest.param(b"{", "the body is not an AdmissionReview", id="cut off"),
        pytest.param(b"\xff\xfe", "the body is not an AdmissionReview", id="no UTF-8"),
        pytest.param(b"[]", "Expected `object`, got `array`", id="no object"),
        pytest.param(
            b'{"a":' * 100_000, "the body is not an AdmissionReview", id="nested without end"
        ),
        pytest.param(b"{}", "found '' of ''", id="nothing in it"),
        pytest.param(
            recorded("pod").replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1"),
            "found 'AdmissionReview' of 'admission.k8s.io/v1beta1'",
            id="another version",
        ),
        pytest.param(
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
            "no request.uid",
            id="no request",
        ),
        pytest.param(edited("pod", uid=""), "no request.uid", id="no uid"),
        pytest.param(edited("pod", uid=7), "Expected `str`, got `int`", id="a uid that is none"),
    ],
)
def test_what_cannot_be_answered_is_an_error_that_the_api_server_shows(
    webhook: Webhook, path: str, body: bytes, complaint: str
) -> None:
    answer = webhook.post(path, body)
    status = answer.json()

    assert (400, "v1", "Status", "BadRequest") == (
        answer.status_code,
        status["apiVersion"],
        status["kind"],
        status["reason"],
    )
    assert complaint in status["message"]


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/yaml"])
def test_another_content_type_is_told(webhook: Webhook, content_type: str) -> None:
    answer = webhook.post("/mutate", recorded("pod"), content_type)

    assert 415 == answer.status_code
    assert f"expected content type {JSON}, found {content_type!r}" == answer.json()["message"]


def test_parameters_of_the_content_type_do_not_matter(webhook: Webhook) -> None:
    assert 200 == webhook.post("/mutate", recorded("pod"), f"{JSON}; charset=utf-8").status_code


@pytest.mark.parametrize(("method", "path", "code"), [("GET", "/mutate", 405), ("POST", "/x", 404)])
def test_other_methods_and_paths_are_not_served(
    webhook: Webhook, method: str, path: str, code: int
) -> None:
    assert code == webhook.http.request(method, f"{webhook.url}{path}").status_code


def test_nothing_is_served_without_tls(webhook: Webhook) -> None:
    with pytest.raises(httpx.TransportError):
        webhook.http.post(f"{webhook.url.replace('https', 'http')}/mutate")


def test_what_it_does_is_counted_and_refusals_are_logged(webhook: Webhook) -> None:
    webhook.review("/mutate", recorded("pod"))
    webhook.review("/validate", recorded("rich-pod"))
    webhook.post("/validate", b"")
    metrics = webhook.http.get(f"{webhook.health_url}/metrics").text
    events = [json.loads(line) for line in webhook.log.splitlines()]

    for verdict in ("patched", "refused", "malformed"):
        assert f'slurm_bridge_admission_reviews_total{{verdict="{verdict}"}}' in metrics
    assert "Traceback" not in webhook.log
    assert any(
        event["event"] == "admission.refused"
        and event["pod"] == "team-a/train"
        and "spec.resourceClaims" in event["faults"]
        for event in events
    )


def test_a_new_certificate_is_served_without_a_restart(webhook: Webhook) -> None:
    """Replaced on disk when the tests began, as the kubelet does with a mounted Secret."""
    port = int(webhook.url.rpartition(":")[2])

    def serves_the_new_one() -> bool:
        served = ssl.get_server_certificate(("127.0.0.1", port)).strip()
        return webhook.renewed.certificate.decode().strip() == served

    wait_until(serves_the_new_one, 60)
    assert webhook.review("/mutate", recorded("pod"))["allowed"]
