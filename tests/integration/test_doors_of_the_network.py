"""Attacks by a neighbour on the network: the ports of the webhook, the extender and the controllers."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from sandbox import pki
from sandbox.client import Sandbox
from slurmruntime.process.clock import SystemClock
from tests.attacks import attack

REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "1",
        "namespace": "research",
        "operation": "CREATE",
        "userInfo": {"username": "x", "groups": ["slurm-bridge:break-glass"]},
        "object": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"}]}},
    },
}


@contextmanager
def caller(sandbox: Sandbox, pair: tuple[Path, Path] | None = None) -> Iterator[httpx.Client]:
    """Somebody who trusts our servers, with a certificate or without."""
    context = ssl.create_default_context(cafile=str(sandbox.instance.bridge / "serving-ca.crt"))
    context.check_hostname = False
    if pair is not None:
        context.load_cert_chain(*map(str, pair))
    with httpx.Client(verify=context, trust_env=False, timeout=20) as client:
        yield client


def tls(sandbox: Sandbox, service: str) -> str:
    return f"https://127.0.0.1:{sandbox.instance.ports[service]}"


def issued(folder: Path, signer: str, sandbox: Sandbox) -> tuple[Path, Path]:
    """A client certificate that the extender should not trust."""
    if signer == "the webhook's":
        own = sandbox.instance.bridge / "webhook"
        return own / "tls.crt", own / "tls.key"
    now = SystemClock().now()
    pair = pki.issue(pki.authority(now), name="slurm-bridge-scheduler", now=now)
    files = folder / "tls.crt", folder / "tls.key"
    for file, content in zip(files, (pair.certificate, pair.key), strict=True):
        file.write_bytes(content)
    return files


@pytest.mark.parametrize(
    "signer",
    [
        attack(
            "the webhook's",
            "ask the extender with the webhook's server certificate",
            "the extender trusts another CA for its clients",
            "the webhook's",
        ),
        attack(
            "one's own",
            "ask the extender with a certificate of kube-scheduler's name by one's own CA",
            "the extender trusts one CA for its clients",
            "one's own",
        ),
    ],
)
@pytest.mark.parametrize("verb", ["filter", "bind"])
def test_the_extender_answers_kube_scheduler_only(
    full_sandbox: Sandbox, tmp_path: Path, signer: str, verb: str
) -> None:
    pair = issued(tmp_path, signer, full_sandbox)

    with caller(full_sandbox, pair) as client, pytest.raises(httpx.TransportError):
        client.post(f"{tls(full_sandbox, 'extender')}/v1/{verb}", json={})


@pytest.mark.attack(
    "speak an old version of TLS to the webhook or the extender",
    "1.2 is the least",
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
@pytest.mark.parametrize("service", ["webhook", "extender"])
def test_no_old_tls(full_sandbox: Sandbox, service: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1

    port = full_sandbox.instance.ports[service]
    with (
        socket.create_connection(("127.0.0.1", port), 10) as raw,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(raw)


@pytest.mark.attack(
    "speak plain HTTP to the webhook or the extender",
    "TLS only",
)
@pytest.mark.parametrize("service", ["webhook", "extender"])
def test_no_plain_http(full_sandbox: Sandbox, service: str) -> None:
    port = full_sandbox.instance.ports[service]

    with pytest.raises(httpx.TransportError):
        httpx.post(f"http://127.0.0.1:{port}/mutate", json=REVIEW, trust_env=False)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        attack(
            "files",
            "read files through the webhook by a path that climbs",
            "there are two paths",
            "GET",
            "/mutate/../../../../etc/passwd",
        ),
        attack(
            "documentation",
            "read the webhook's API description",
            "it serves none",
            "GET",
            "/openapi.json",
        ),
        attack(
            "methods",
            "use other methods on the webhook",
            "405",
            "DELETE",
            "/mutate",
        ),
        attack("debug", "find debugging pages on the webhook", "there are none", "GET", "/docs"),
    ],
)
def test_the_webhook_has_nothing_else(full_sandbox: Sandbox, method: str, path: str) -> None:
    with caller(full_sandbox) as client:
        answer = client.request(method, f"{tls(full_sandbox, 'webhook')}{path}")

    assert answer.status_code in (404, 405)
    assert "root:" not in answer.text


@pytest.mark.attack(
    "send the webhook a review in the name of break glass",
    "it answers any client, and changes nothing: only the API server acts on an answer",
)
def test_a_review_of_a_strangers_is_answered_and_forgotten(full_sandbox: Sandbox) -> None:
    token = full_sandbox.token_file.read_text().strip()

    with caller(full_sandbox) as client:
        answer = client.post(f"{tls(full_sandbox, 'webhook')}/mutate", json=REVIEW)

    assert answer.is_success
    assert {"uid", "allowed"} <= answer.json()["response"].keys()
    assert token not in answer.text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        attack(
            "write",
            "write to a health port",
            "it only reads",
            "POST",
            "/readyz",
        ),
        attack(
            "climb",
            "read files through a health port by a path that climbs",
            "there are three paths",
            "GET",
            "/metrics/../../etc/passwd",
        ),
        attack(
            "profile",
            "take a profile or stop a program through its health port",
            "there is no such page",
            "GET",
            "/debug/pprof/heap",
        ),
    ],
)
@pytest.mark.parametrize("service", ["webhook", "extender", "controllers"])
def test_a_health_port_has_nothing_else(
    full_sandbox: Sandbox, service: str, method: str, path: str
) -> None:
    url = full_sandbox.instance.url(f"{service}-health")
    answer = httpx.request(method, f"{url}{path}", trust_env=False)

    assert answer.status_code in (404, 405)
    assert "root:" not in answer.text


@pytest.mark.attack(
    "learn secrets or pods' names from the metrics",
    "they name services, reasons and namespaces",
)
@pytest.mark.parametrize("service", ["webhook", "extender", "controllers"])
def test_metrics_tell_no_secrets(full_sandbox: Sandbox, service: str) -> None:
    url = full_sandbox.instance.url(f"{service}-health")
    text = httpx.get(f"{url}/metrics", trust_env=False).text

    assert "slurm_bridge_" in text
    for secret in (full_sandbox.token_file.read_text().strip(), "PRIVATE KEY", "eyJ"):
        assert secret not in text
