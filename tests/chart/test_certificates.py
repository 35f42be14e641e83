"""Who signs the certificates, what is written where, and what is mounted. What the controllers sign: tests/process/test_pki.py."""

import yaml

from tests.chart.conftest import Render
from tests.chart.objects import signed
from tests.chart.rendering import Rendered

WEBHOOK = "slurm-bridge-webhook.slurm-bridge.svc"
SECRETS = {
    "slurm-bridge-ca",
    "slurm-bridge-webhook-tls",
    "slurm-bridge-extender-tls",
    "slurm-bridge-scheduler-tls",
}


def test_secrets_are_made_empty_and_the_controllers_may_fill_these_only(chart: Rendered) -> None:
    role = chart.of_kind("Role")["slurm-bridge-certificates"]
    (rule,) = role["rules"]
    binding = chart.of_kind("RoleBinding")["slurm-bridge-certificates"]

    assert SECRETS == set(chart.of_kind("Secret"))
    assert not [s for s in chart.of_kind("Secret").values() if s.keys() & {"data", "stringData"}]
    assert SECRETS == set(rule["resourceNames"])
    assert ["get", "patch"] == rule["verbs"]
    assert ["slurm-bridge-controllers"] == [s["name"] for s in binding["subjects"]]


def test_nobody_mounts_the_cas_key(chart: Rendered) -> None:
    assert "slurm-bridge-ca" not in yaml.safe_dump([*chart.of_kind("Deployment").values()])


def test_certificates_are_for_the_names_that_are_called(chart: Rendered, render: Render) -> None:
    url = {"url": "https://10.0.0.7:8443"}
    outside = render({"webhook": url, "extender": url})
    extender = "slurm-bridge-extender.slurm-bridge.svc"

    assert {
        "webhook": [WEBHOOK, f"{WEBHOOK}.cluster.local"],
        "extender": [extender, f"{extender}.cluster.local"],
        "scheduler": [],
    } == signed(chart).hosts
    assert "slurm-bridge" == signed(chart).release
    assert ["10.0.0.7"] == signed(outside).hosts["webhook"]
    assert ["10.0.0.7"] == signed(outside).hosts["extender"]


def test_pods_wait_for_their_certificates(chart: Rendered) -> None:
    """A volume that names its keys is not mounted before they are there."""
    mounted = {
        name: [item["key"] for item in volume["secret"]["items"]]
        for name, deployment in chart.of_kind("Deployment").items()
        for volume in deployment["spec"]["template"]["spec"]["volumes"]
        if volume["name"] == "tls"
    }

    assert {
        f"slurm-bridge-{component}": ["tls.crt", "tls.key", "ca.crt"]
        for component in ("webhook", "extender", "scheduler")
    } == mounted


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
