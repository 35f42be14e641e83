"""slurm-exporter's chart, with our values and with those of SchedMD's chart."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import Manifest

CHART = Path(__file__).parents[2] / "deploy/exporter/chart"

THEIRS: Mapping[str, Any] = {
    "nameOverride": "",
    "namespaceOverride": "monitoring",
    "imagePullSecrets": [{"name": "pull"}],
    "priorityClassName": "",
    "exporter": {
        "enabled": True,
        "replicas": 2,
        "imagePullPolicy": "Always",
        "image": {"repository": "ghcr.io/slinkyproject/slurm-exporter", "tag": "0.4.0"},
        "secretName": "slurm-auth",
        "logLevel": "debug",
        "cacheFrequency": "5s",
        "priorityClassName": "high",
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "resources": {"limits": {"memory": "1Gi"}},
        "serviceMonitor": {
            "enabled": True,
            "endpoints": [
                {"port": "metrics", "path": "/metrics", "scheme": "http", "interval": "30s"}
            ],
        },
    },
    "grafana": {"enabled": True},
}
"""Every value of slurm-exporter's chart 0.4.0."""
OURS: Mapping[str, Any] = {"token": {"existingSecret": "slurm-token"}}


def rendered(helm: Path, values: Mapping[str, Any]) -> Mapping[str, Manifest]:
    """What a release consists of, by kind."""
    done = subprocess.run(
        (str(helm), "template", "slurm", str(CHART), "--namespace", "slurm", "--values", "-"),
        input=yaml.safe_dump(dict(values)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}


def arguments(found: Mapping[str, Manifest]) -> list[str]:
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    said: list[str] = container["args"]
    return said


def test_a_values_file_of_slurm_exporter_works_unchanged(helm: Path) -> None:
    found = rendered(helm, THEIRS)
    assert {"Deployment", "Service", "ServiceMonitor", "ConfigMap"} == found.keys()
    assert [
        "--server=http://slurm-restapi.monitoring:6820",
        "--token-file=/run/slurm/auth-token",
        "--names=slinky",
        "--interval=5s",
        "--log-level=debug",
    ] == arguments(found)
    deployment = found["Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    assert ("monitoring", 2, "high", "slurm-auth") == (
        deployment["metadata"]["namespace"],
        deployment["spec"]["replicas"],
        pod["priorityClassName"],
        pod["volumes"][0]["secret"]["secretName"],
    )
    container = pod["containers"][0]
    assert ("Always", {"limits": {"memory": "1Gi"}}) == (
        container["imagePullPolicy"],
        container["resources"],
    )
    assert "slinkyproject" not in container["image"], "that would be their program"
    assert (
        THEIRS["exporter"]["serviceMonitor"]["endpoints"]
        == found["ServiceMonitor"]["spec"]["endpoints"]
    )


def test_the_default_serves_our_names_to_nobody_in_particular(helm: Path) -> None:
    found = rendered(helm, OURS)
    assert {"Deployment", "Service"} == found.keys()
    assert "--names=own" in arguments(found)
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert (False, True, True) == (
        pod["automountServiceAccountToken"],
        pod["securityContext"]["runAsNonRoot"],
        pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"],
    )


@pytest.mark.parametrize(
    ("ca", "volume"),
    [
        ({"configMap": "slurm-restapi-tls"}, {"configMap": {"name": "slurm-restapi-tls"}}),
        ({"secret": "ours"}, {"secret": {"secretName": "ours"}}),
    ],
)
def test_with_a_ca_the_server_is_asked_by_tls(
    helm: Path, ca: dict[str, str], volume: dict[str, Any]
) -> None:
    found = rendered(helm, {**OURS, "ca": ca})
    said = arguments(found)
    assert "--server=https://slurm-restapi.slurm:6820" in said
    assert "--ca-file=/run/slurm-ca/ca.crt" in said
    volumes = found["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "ca", **volume} in volumes


def test_monitoring_is_complete(helm: Path) -> None:
    on = {"enabled": True}
    found = rendered(helm, {**OURS, "serviceMonitor": on, "rules": on, "dashboards": on})
    assert 7 == len(found["ConfigMap"]["data"])
    assert found["PrometheusRule"]["spec"]["groups"][0]["rules"]
    service = found["Service"]["spec"]
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        service["selector"],
        found["ServiceMonitor"]["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()


def test_with_a_web_configuration_the_page_is_served_by_its_rules(helm: Path) -> None:
    endpoint = {"port": "metrics", "scheme": "https", "basicAuth": {"username": {"name": "a"}}}
    values = {
        **OURS,
        "web": {"existingSecret": "exporter-web"},
        "serviceMonitor": {"enabled": True, "endpoints": [endpoint]},
    }
    found = rendered(helm, values)
    assert "--web-config-file=/run/web/web.yml" in arguments(found)
    pod = found["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {"name": "web", "secret": {"secretName": "exporter-web"}} in pod["volumes"]
    assert {"name": "web", "mountPath": "/run/web", "readOnly": True} in container["volumeMounts"]
    for probe in ("livenessProbe", "readinessProbe"):
        assert {"tcpSocket": {"port": "metrics"}} == container[probe], (
            "the kubelet has no credential"
        )
    assert [endpoint] == found["ServiceMonitor"]["spec"]["endpoints"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "token.existingSecret: expected the name of a Secret"),
        ({**OURS, "names": "theirs"}, "names"),
        ({**OURS, "servers": ""}, "servers"),
        (
            {**OURS, "web": {"existingSecret": "w"}, "serviceMonitor": {"enabled": True}},
            "serviceMonitor.endpoints: expected an endpoint",
        ),
    ],
)
def test_wrong_values_are_refused(helm: Path, values: Mapping[str, Any], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        rendered(helm, values)
