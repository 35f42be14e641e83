"""What another mutating webhook adds after ours: refused at CREATE, or judged with all the rest before each submit."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmruntime.values import names
from slurmruntime.values.names import REQUEST_PREFIX
from tests.integration.worlds import Worlds, condition, is_gated
from tests.make.certificates import Authority

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
NAME = "zz-after-slurm-bridge"
"""The API server asks webhooks in the order of their names."""
PATCH = "example.test/patch"
"""What a test wants to be added, as a JSON patch; at an update, it is added then."""
ASKED: list[bool] = []
"""For each pod whether it had our gate: whether ours had been asked before."""


class Other(BaseHTTPRequestHandler):
    """Does to each pod what the pod says."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        ASKED.append(is_gated(request["object"]))
        wanted = request["object"]["metadata"].get("annotations", {}).get(PATCH, "[]")
        answer: dict[str, Any] = {
            "uid": request["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(wanted.encode()).decode(),
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        body = json.dumps({**review, "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def other(full_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A second webhook behind ours, asked again whenever somebody changes a pod after it."""
    authority, folder = Authority(), Path(tmp_path_factory.mktemp("other"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.issue("other").write(folder, "other"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    webhook = {
        "name": "other.example.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "namespaceSelector": {"matchLabels": {names.ENABLED_LABEL: "true"}},
        "rules": [{**pods, "operations": ["CREATE", "UPDATE"]}],
        "matchConditions": [
            {
                "name": "wants-it",
                "expression": f"'{PATCH}' in object.metadata.?annotations.orValue({{}})",
            }
        ],
        "clientConfig": {
            "url": f"https://127.0.0.1:{server.server_port}/",
            "caBundle": base64.b64encode(authority.certificate).decode(),
        },
    }
    full_sandbox.admin.create(CONFIGURATIONS, {"metadata": {"name": NAME}, "webhooks": [webhook]})
    try:
        yield
    finally:
        full_sandbox.admin.delete(f"{CONFIGURATIONS}/{NAME}")
        server.shutdown()
        server.server_close()
        thread.join()


pytestmark = pytest.mark.usefixtures("other")


def patch(path: str, value: object = None, op: str = "add") -> dict[str, str]:
    return {PATCH: json.dumps([{"op": op, "path": path, "value": value}])}


def annotation(field: str) -> str:
    return f"/metadata/annotations/{REQUEST_PREFIX.replace('/', '~1')}{field}"


CPUS = "/spec/containers/0/resources/requests/cpu"
PORTS = [{"containerPort": 1000 + number, "hostPort": 1000 + number} for number in range(101)]


@pytest.mark.attack(
    "have another webhook change a pod after ours has let it in",
    "our validating webhook and the policies see what comes out",
)
@pytest.mark.parametrize(
    ("added", "told"),
    [
        pytest.param(patch("/spec/schedulerName", "default-scheduler"), "spec.schedulerName", id="scheduler"),
        pytest.param(patch("/spec/schedulingGates", op="remove"), "another webhook has taken them off", id="no gate"),
        pytest.param(patch("/metadata/finalizers", op="remove"), "another webhook has taken them off", id="no finalizer"),
        pytest.param(patch("/metadata/labels", op="remove"), names.BRIDGED_LABEL, id="no label"),
        pytest.param(patch("/spec/containers/0/ports", PORTS), "ports", id="host ports"),
        pytest.param(patch(annotation("qos"), "high"), f"{REQUEST_PREFIX}qos", id="qos"),
        pytest.param(patch(f"/metadata/annotations/{names.REQUESTER_ANNOTATION.replace('/', '~1')}", "root"), names.REQUESTER_ANNOTATION, id="requester"),
    ],
)  # fmt: skip
def test_what_a_later_webhook_may_not_add_is_refused_at_create(
    worlds: Worlds, added: dict[str, str], told: str
) -> None:
    ASKED.clear()

    with pytest.raises(ApiError) as refused:
        worlds.submit("changed", annotations=added)

    assert [True] == ASKED[:1]
    assert told in refused.value.message


def test_what_a_later_webhook_adds_is_what_slurm_is_asked_for(worlds: Worlds) -> None:
    node = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [node]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    worlds.submit("huge", annotations=patch(CPUS, "1000"))
    grown = worlds.submit("grown", annotations=patch(CPUS, "3"))
    worlds.submit("moved", annotations=patch("/spec/affinity", affinity))

    told = worlds.await_pod("huge", lambda pod: condition(pod).get("reason") == "SubmitRefused")
    assert is_gated(told)
    worlds.await_phase("grown", "Running")
    shown = worlds.scontrol("show", "job", str(worlds.live(grown)[0].id))
    assert "NumCPUs=3 " in shown
    assert "node-1" == worlds.await_phase("moved", "Running")["spec"]["nodeName"]


@pytest.mark.attack(
    "have another webhook raise a waiting pod's request at an update, which our webhook does not see",
    "the policy is applied before each submit",
)
def test_what_a_later_webhook_adds_at_an_update_is_judged_before_the_next_submit(
    worlds: Worlds,
) -> None:
    uid = worlds.submit("raised", annotations={f"{REQUEST_PREFIX}partition": "nowhere"})
    worlds.await_pod("raised", lambda pod: "artition" in condition(pod).get("message", ""))

    edit = {f"{REQUEST_PREFIX}partition": None, **patch(annotation("qos"), "high")}
    worlds.sandbox.admin.patch(f"{worlds.path}/pods/raised", {"metadata": {"annotations": edit}})

    told = worlds.await_pod("raised", lambda pod: "qos]" in condition(pod).get("message", ""))
    assert "SubmitRefused" == condition(told)["reason"]
    assert [] == worlds.jobs(uid)
