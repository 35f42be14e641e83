"""Whatever cannot be understood, or honoured, is answered in words that reach whoever asked; nothing breaks."""

import ssl
from collections.abc import Iterator

import httpx
import pytest

from sandbox.api import ApiError
from sandbox.client import Sandbox
from tests.integration.worlds import Worlds, condition, container, is_gated, played

_ASK = "slurmjob.slinky.slurm.net"
_NO_PARTITION = {f"{_ASK}/partition": "nowhere"}
_DEEP = b"[" * 100_000

_MALFORMED = {
    "nothing": b"",
    "half of it": b'{"Pod": {"metadata": {"na',
    "not an object": b"[]",
    "another object": b'{"kind": "Pod"}',
    "no UTF-8": b'{"PodName": "\xff\xfe"}',
    "wrong types": b'{"Pod": 1, "NodeNames": {}, "PodName": 1, "PodNamespace": [], "PodUID": {}, "Node": 1}',
    "too deep": b'{"Pod": ' + _DEEP,
}


@pytest.fixture
def kube_scheduler(full_sandbox: Sandbox) -> Iterator[httpx.Client]:
    """The extender's port, with the certificate of its only client."""
    bridge = full_sandbox.instance.bridge
    context = ssl.create_default_context(cafile=bridge / "serving-ca.crt")
    context.load_cert_chain(bridge / "scheduler" / "tls.crt", bridge / "scheduler" / "tls.key")
    url = full_sandbox.instance.url("extender", "https")
    with httpx.Client(base_url=f"{url}/v1", verify=context, trust_env=False) as client:
        yield client


@pytest.fixture
def kube_apiserver(full_sandbox: Sandbox) -> Iterator[httpx.Client]:
    """The webhook's port."""
    context = ssl.create_default_context(cafile=full_sandbox.instance.bridge / "serving-ca.crt")
    url = full_sandbox.instance.url("webhook", "https")
    headers = {"Content-Type": "application/json"}
    with httpx.Client(base_url=url, verify=context, headers=headers, trust_env=False) as client:
        yield client


@pytest.fixture(autouse=True)
def no_stack_trace(full_sandbox: Sandbox) -> Iterator[None]:
    """Nothing that was sent here shows in a service's log as an error of ours."""
    logs = [full_sandbox.instance.log(name) for name in ("webhook", "extender", "controllers")]
    lengths = [log.stat().st_size for log in logs]
    yield
    written = [log.read_bytes()[length:] for log, length in zip(logs, lengths, strict=True)]
    assert [] == [text for text in written if b"Traceback" in text]


@pytest.mark.parametrize("body", _MALFORMED.values(), ids=_MALFORMED.keys())
@pytest.mark.parametrize(
    ("verb", "kind"), [("filter", "ExtenderArgs"), ("bind", "ExtenderBindingArgs")]
)
def test_kube_scheduler_is_told_what_is_wrong_with_its_request(
    kube_scheduler: httpx.Client, verb: str, kind: str, body: bytes
) -> None:
    answer = kube_scheduler.post(f"/{verb}", content=body)

    assert 200 == answer.status_code  # of any other status kube-scheduler shows only the number
    assert answer.json()["Error"].startswith(f"not an {kind}: ")


def test_a_binding_that_slurm_did_not_assign_is_refused(
    worlds: Worlds, kube_scheduler: httpx.Client
) -> None:
    uid = worlds.submit("held", annotations={f"{_ASK}/hold": "true"})
    args = {"PodName": "held", "PodNamespace": worlds.namespace, "PodUID": uid, "Node": "node-0"}

    waits = kube_scheduler.post("/bind", json=args).json()["Error"]
    other = kube_scheduler.post("/bind", json={**args, "PodUID": "another"}).json()["Error"]

    assert f"pod {worlds.namespace}/held: Slurm has not assigned a node to this pod yet" == waits
    assert "the pod is gone, or another pod has its name: nothing to bind" == other
    assert "nodeName" not in worlds.await_pod("held", is_gated)["spec"]


@pytest.mark.parametrize("body", _MALFORMED.values(), ids=_MALFORMED.keys())
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_kube_apiserver_is_told_what_is_wrong_with_its_review(
    kube_apiserver: httpx.Client, path: str, body: bytes
) -> None:
    answer = kube_apiserver.post(path, content=body)

    assert 400 == answer.status_code
    assert ("Status", "BadRequest") == (answer.json()["kind"], answer.json()["reason"])
    assert "AdmissionReview" in answer.json()["message"]


def test_every_fault_of_a_pod_is_told_at_create(worlds: Worlds) -> None:
    notes = {
        f"{_ASK}/colour": "blue",
        f"{_ASK}/mem-per-node": "4 apples",
        f"{_ASK}/cpu-per-task": "-2",
        f"{_ASK}/array": "1-10",
        f"{_ASK}/qos": "high",
    }
    affinity = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }

    with pytest.raises(ApiError) as refused:
        worlds.submit("faulty", annotations=notes, affinity=affinity)

    for path in (*(f"metadata.annotations[{key}]" for key in notes), "spec.affinity"):
        assert path in refused.value.message
    assert worlds.pod("faulty") is None


def test_what_slurm_refuses_is_told_and_tried_again_when_the_pod_is_mended(worlds: Worlds) -> None:
    uid = worlds.submit("lost", annotations={**_NO_PARTITION, **played(seconds=1)})

    told = worlds.await_pod("lost", lambda pod: condition(pod).get("reason") == "SubmitRefused")
    words = condition(told)["message"]
    assert words == worlds.await_event("lost", "SubmitRefused")
    assert words.startswith("its placeholder is refused: spec: none of the ")
    assert words.endswith(" nodes that suit the pod is in partition nowhere")
    assert is_gated(told)
    assert [] == worlds.jobs(uid)

    worlds.sandbox.admin.patch(
        f"{worlds.path}/pods/lost", {"metadata": {"annotations": {f"{_ASK}/partition": None}}}
    )

    worlds.await_phase("lost", "Succeeded")
    assert "COMPLETED" == worlds.await_accounted(uid).state


def test_what_an_owner_asks_in_vain_is_told_on_its_pod(worlds: Worlds) -> None:
    worlds.sandbox.admin.create(
        f"/apis/batch/v1/namespaces/{worlds.namespace}/jobs",
        {
            "metadata": {"name": "owner", "annotations": {f"{_ASK}/timelimit": "soon"}},
            "spec": {"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}},
        },
    )

    told = worlds.await_one_pod(
        "job-name=owner", lambda pod: condition(pod).get("reason") == "SubmitRefused"
    )

    assert f"metadata.annotations[{_ASK}/timelimit]" in condition(told)["message"]


def test_refused_submits_back_off(worlds: Worlds, full_sandbox: Sandbox) -> None:
    """A second try a second later, a third two seconds after that."""
    worlds.submit("lost", annotations=_NO_PARTITION)
    worlds.await_event("lost", "SubmitRefused")
    log = full_sandbox.instance.log("extender")

    def refusals() -> int:
        name = f"{worlds.namespace}/lost"
        lines = log.read_text().splitlines()
        return sum(name in line and "placeholder.refused" in line for line in lines)

    # What else is submitted meanwhile goes its way.
    for number in range(3):
        uid = worlds.submit(f"well-{number}", annotations=played(seconds=1))
        worlds.await_accounted(uid)
    assert 2 <= refusals() <= 5
