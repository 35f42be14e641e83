"""Certificates that helm makes: each part proves who it is to those, and only those, that trust it."""

import base64
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.chart.conftest import Render
from tests.chart.rendering import Rendered

EXTENDER = "slurm-bridge-extender.slurm-bridge.svc"
WEBHOOK = "slurm-bridge-webhook.slurm-bridge.svc"

Folder = Callable[[str], Path]


@pytest.fixture
def secret(chart: Rendered, tmp_path: Path) -> Folder:
    """A component's Secret as a pod sees it."""

    def mount(component: str) -> Path:
        folder = tmp_path / component
        folder.mkdir(exist_ok=True)
        for name, data in chart.of_kind("Secret")[f"slurm-bridge-{component}-tls"]["data"].items():
            (folder / name).write_bytes(base64.b64decode(data))
        return folder

    return mount


def server(folder: Path, *, clients: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=clients)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    return context


def client(*, ca: str, identity: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if identity is not None:
        context.load_cert_chain(identity / "tls.crt", identity / "tls.key")
    return context


def shake_hands(calling: ssl.SSLContext, called: ssl.SSLContext, host: str) -> None:
    """A TLS handshake in memory.

    Raises:
        ssl.SSLError: one side does not trust the other.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        calling.wrap_bio(to_client, to_server, server_hostname=host),
        called.wrap_bio(to_server, to_client, server_side=True),
    ]
    for end in ends * 3:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue


def ca(folder: Path) -> str:
    return (folder / "ca.crt").read_text()


def test_api_server_trusts_the_webhook(chart: Rendered, secret: Folder) -> None:
    webhooks = chart.of_kind("ValidatingWebhookConfiguration")["slurm-bridge"]["webhooks"]
    bundle = base64.b64decode(webhooks[0]["clientConfig"]["caBundle"]).decode()

    shake_hands(client(ca=bundle), server(secret("webhook")), WEBHOOK)


def test_scheduler_and_extender_trust_each_other(secret: Folder) -> None:
    extender, scheduler = secret("extender"), secret("scheduler")

    shake_hands(
        client(ca=ca(scheduler), identity=scheduler),
        server(extender, clients=extender / "ca.crt"),
        EXTENDER,
    )


@pytest.mark.parametrize("caller", [None, "webhook", "extender"])
def test_extender_trusts_nobody_else(secret: Folder, caller: str | None) -> None:
    extender = secret("extender")
    identity = secret(caller) if caller else None

    with pytest.raises(ssl.SSLError):
        shake_hands(
            client(ca=ca(secret("scheduler")), identity=identity),
            server(extender, clients=extender / "ca.crt"),
            EXTENDER,
        )


def test_cert_manager_keeps_servers_and_client_apart(render: Render) -> None:
    chart = render({"tls": {"mode": "certManager"}})
    certificates = chart.of_kind("Certificate")
    webhook = chart.of_kind("MutatingWebhookConfiguration")["slurm-bridge"]

    assert {
        name: certificate["spec"]["usages"][-1]
        for name, certificate in certificates.items()
        if name != "slurm-bridge-ca"
    } == {
        "slurm-bridge-webhook-tls": "server auth",
        "slurm-bridge-extender-tls": "server auth",
        "slurm-bridge-scheduler-tls": "client auth",
    }
    assert webhook["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] == (
        "slurm-bridge/slurm-bridge-webhook-tls"
    )
    assert WEBHOOK in certificates["slurm-bridge-webhook-tls"]["spec"]["dnsNames"]
    assert "caBundle" not in yaml.safe_dump(webhook)
    assert "Secret" not in {m["kind"] for m in chart.manifests}


def test_cert_manager_uses_a_given_issuer(render: Render) -> None:
    issuer = {"name": "ours", "kind": "ClusterIssuer", "group": "cert-manager.io"}
    chart = render({"tls": {"mode": "certManager", "certManager": {"issuerRef": issuer}}})

    assert {"Issuer"} & {m["kind"] for m in chart.manifests} == set()
    assert [c["spec"]["issuerRef"] for c in chart.of_kind("Certificate").values()] == [issuer] * 3


def test_given_secrets_are_mounted(render: Render) -> None:
    names = {"webhook": "a", "extender": "b", "scheduler": "c"}
    chart = render({"tls": {"mode": "secret", "caBundle": "PEM", "secrets": names}})
    mounted = {
        name: volume["secret"]["secretName"]
        for name, deployment in chart.of_kind("Deployment").items()
        for volume in deployment["spec"]["template"]["spec"]["volumes"]
        if volume["name"] == "tls"
    }

    assert mounted == {f"slurm-bridge-{component}": name for component, name in names.items()}
    assert "Secret" not in {m["kind"] for m in chart.manifests}
