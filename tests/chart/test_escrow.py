"""The door for slurmctld's scripts: nothing of it without `config.nodes.hybrid: escrow`, and with it no way for pods to wait for it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bridge.settings.schema import Settings
from tests.chart.conftest import Render
from tests.chart.objects import signed
from tests.chart.rendering import HelmError, Rendered

HOSTS = ["escrow.example.test", "10.0.0.7"]
ON = {"hosts": HOSTS}
HELD = {"config": {"nodes": {"hybrid": "escrow"}}}
WITH_DOOR = {"extender", "controllers"}


def settings(chart: Rendered) -> Settings:
    return Settings(**yaml.safe_load(chart.config("slurm-bridge-config", "config.yaml")))


def pod(chart: Rendered, component: str) -> dict[str, Any]:
    spec: dict[str, Any] = chart.of_kind("Deployment")[f"slurm-bridge-{component}"]["spec"]
    return dict(spec["template"]["spec"])


def test_it_is_off_and_leaves_nothing(chart: Rendered) -> None:
    assert "" == settings(chart).nodes.hybrid
    assert "escrow" not in yaml.safe_dump(chart.manifests)


def test_extender_and_controllers_have_a_door_and_the_webhook_has_not(render: Render) -> None:
    chart = render({**HELD, "escrow": ON})
    services = chart.of_kind("Service")
    assert "0.0.0.0:9443" == settings(chart).escrow.listen
    for component in WITH_DOOR:
        (container,) = pod(chart, component)["containers"]
        assert {"name": "escrow", "containerPort": 9443} in container["ports"]
        spec = services[f"slurm-bridge-{component}-escrow"]["spec"]
        assert "LoadBalancer" == spec["type"]
        assert component == spec["selector"]["app.kubernetes.io/component"]
    assert "slurm-bridge-webhook-escrow" not in services
    assert "escrow" not in yaml.safe_dump(pod(chart, "webhook"))


def test_files_are_where_the_settings_look_and_no_pod_waits_for_them(render: Render) -> None:
    """The controllers' leader signs the certificate itself: it must be able to start without."""
    chart = render({**HELD, "escrow": {**ON, "existingSecret": "mine", "key": "word"}})
    found = settings(chart).escrow
    for component in WITH_DOOR:
        spec = pod(chart, component)
        (container,) = spec["containers"]
        folders = {
            volume_mount["name"]: volume_mount["mountPath"]
            for volume_mount in container["volumeMounts"]
        }
        volumes = {volume["name"]: volume.get("projected", {}) for volume in spec["volumes"]}
        token, pair = (source["secret"] for source in volumes["escrow"]["sources"])
        assert found.token_file == f"{folders['escrow']}/token"
        assert ("mine", True) == (token["name"], token["optional"])
        assert [{"key": "word", "path": "token"}] == token["items"]
        assert ("slurm-bridge-escrow-tls", True) == (pair["name"], pair["optional"])
        assert [Path(found.cert_file).name, Path(found.key_file).name] == [
            item["path"] for item in pair["items"]
        ]
        assert all(item["key"] == item["path"] for item in pair["items"])


def test_the_controllers_sign_for_the_names_by_which_slurmctld_calls(render: Render) -> None:
    chart = render({**HELD, "escrow": ON})
    assert HOSTS == signed(chart).hosts["escrow"]
    (rule,) = chart.of_kind("Role")["slurm-bridge-certificates"]["rules"]
    assert "slurm-bridge-escrow-tls" in rule["resourceNames"]
    assert "slurm-bridge-escrow-tls" in chart.of_kind("Secret")


def test_cert_manager_signs_for_names_and_addresses(render: Render) -> None:
    chart = render({**HELD, "escrow": ON, "tls": {"mode": "certManager"}})
    spec = chart.of_kind("Certificate")["slurm-bridge-escrow-tls"]["spec"]
    assert (["escrow.example.test"], ["10.0.0.7"]) == (spec["dnsNames"], spec["ipAddresses"])
    assert "server auth" == spec["usages"][-1]


def test_a_service_can_be_kept_to_slurmctlds_host(render: Render) -> None:
    service = {
        "type": "LoadBalancer",
        "sourceRanges": ["10.1.0.7/32"],
        "annotations": {"example.test/internal": "true"},
    }
    chart = render({**HELD, "escrow": {**ON, "service": service}})
    for component in WITH_DOOR:
        made = chart.of_kind("Service")[f"slurm-bridge-{component}-escrow"]
        assert ["10.1.0.7/32"] == made["spec"]["loadBalancerSourceRanges"]
        assert service["annotations"] == made["metadata"]["annotations"]


def test_network_policies_let_it_in_there_only(render: Render) -> None:
    chart = render({**HELD, "escrow": ON, "networkPolicy": {"enabled": True}})
    open_to = {
        name.removeprefix("slurm-bridge-")
        for name, policy in chart.of_kind("NetworkPolicy").items()
        for rule in policy["spec"].get("ingress") or []
        if {"port": "escrow"} in rule["ports"]
    }
    assert WITH_DOOR == open_to


@pytest.mark.parametrize(
    ("values", "path"),
    [
        pytest.param(HELD, "/escrow/hosts", id="no names"),
        pytest.param({"escrow": {"enabled": True}}, "enabled", id="as before"),
        pytest.param(
            {
                **HELD,
                "escrow": ON,
                "tls": {
                    "mode": "secret",
                    "caBundle": "PEM",
                    "secrets": {"webhook": "a", "extender": "b", "scheduler": "c"},
                },
            },
            "/tls/secrets/escrow",
            id="no certificate",
        ),
        pytest.param({"config": {"escrow": {"listen": "0.0.0.0:1"}}}, "config", id="by hand"),
        pytest.param(
            {**HELD, "escrow": {**ON, "hosts": ["https://x"]}}, "/escrow/hosts/0", id="a URL"
        ),
    ],
)
def test_what_cannot_work_is_refused(render: Render, values: dict[str, Any], path: str) -> None:
    with pytest.raises(HelmError, match=path):
        render(values)
