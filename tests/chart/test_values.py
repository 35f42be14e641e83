"""Values: whatever is unknown or malformed is refused, by name."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridge.settings import removed
from bridge.settings.schema import Settings
from docs.generate import schema as config_schema
from slurmruntime.values import names
from tests.chart.conftest import Render
from tests.chart.rendering import CHART, HelmError


@pytest.mark.parametrize(
    ("values", "where"),
    [
        pytest.param({"webhok": {}}, "'webhok'", id="unknown-section"),
        pytest.param({"webhook": {"replica": 3}}, "'/webhook'", id="unknown-value"),
        pytest.param({"webhook": {"replicas": 0}}, "'/webhook/replicas'", id="no-replica"),
        pytest.param({"tls": {"mode": "none"}}, "'/tls/mode'", id="unknown-mode"),
        pytest.param(
            {"tls": {"mode": "secret"}}, "'/tls/caBundle'", id="given-secret-without-its-ca"
        ),
        pytest.param(
            {"tls": {"mode": "secret", "caBundle": "PEM"}},
            "'/tls/secrets/webhook'",
            id="given-secret-without-its-name",
        ),
        pytest.param(
            {"workloads": {"enabled": False}, "tls": {"mode": "certManager"}},
            "'/tls/mode'",
            id="secrets-for-nobody",
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {names.ENABLED_LABEL: None}}},
            "'/namespaceSelector'",
            id="selector-of-every-namespace",
        ),
        pytest.param(
            {"policies": {"managedTaint": {"actions": ["Deny", "Warn"]}}},
            "'/policies/managedTaint/actions'",
            id="actions-that-exclude-each-other",
        ),
        pytest.param(
            {"policies": {"schedulers": ["it's"]}}, "'/policies/schedulers/0'", id="quote-in-name"
        ),
        pytest.param(
            {"extender": {"workloadKinds": [{"apiGroup": "apps", "resources": ["*"]}]}},
            "'/extender/workloadKinds/0/resources/0'",
            id="wildcard-right",
        ),
        pytest.param(
            {"scheduler": {"image": {"repository": ""}}},
            "scheduler.image.repository",
            id="no-image-of-the-scheduler",
        ),
        pytest.param(
            {"priorityClass": {"create": True, "name": ""}}, "'/priorityClass/name'", id="no-name"
        ),
        pytest.param(
            {"priorityClass": {"create": True}}, "'/priorityClass/name'", id="a-class-of-the-system"
        ),
        pytest.param(
            {"config": {"slurm": {"urll": "http://slurm:6820"}}}, "'urll'", id="unknown-setting"
        ),
        pytest.param(
            {"config": {"controllers": {"eviction_always": 0}}},
            "'/config/controllers/eviction_always'",
            id="setting-out-of-range",
        ),
        pytest.param(
            {"config": {"slurm": {"token_file": "/run/token"}}}, "'token_file'", id="charts-setting"
        ),
    ],
)
def test_bad_value_is_named(render: Render, values: dict[str, Any], where: str) -> None:
    with pytest.raises(HelmError) as refusal:
        render(values)

    assert where in str(refusal.value)


def test_values_of_the_release_before_still_render(render: Render) -> None:
    """Whatever they were: the programs report them."""
    old: dict[str, dict[str, Any]] = {}
    for section, name in removed.REMOVED.keys() - config_schema.NEVER_IN_VALUES:
        old.setdefault(section, {})[name] = 7
    old["policy"] = {"rules": [{"name": "a", "user": "u", "match": {"service_accounts": ["b/c"]}}]}

    (text,) = [
        config["data"]["config.yaml"]
        for name, config in render({"config": old}).of_kind("ConfigMap").items()
        if name == "slurm-bridge-config"
    ]

    settings = yaml.safe_load(text)
    assert {section: settings[section] | values for section, values in old.items()} == {
        section: settings[section] for section in old
    }


def test_config_schema_is_that_of_the_settings() -> None:
    schema = json.loads(config_schema.SCHEMA_FILE.read_text())

    assert config_schema.build() == schema["properties"]["config"], (
        "write it anew: python docs/generate/schema.py"
    )


def test_default_values_are_those_of_the_settings() -> None:
    config = yaml.safe_load((CHART / "values.yaml").read_text())["config"]
    settings = Settings().model_dump(mode="json")
    set_here = Settings.model_validate(config).model_dump(mode="json", exclude_unset=True)

    for key, value in set_here.items():
        if isinstance(value, dict):
            assert value == {name: settings[key][name] for name in value}
        else:
            assert settings[key] == value


def test_namespaces_are_selected_by_our_label() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    assert values["namespaceSelector"]["matchLabels"] == {names.ENABLED_LABEL: "true"}


def test_readme_describes_every_value() -> None:
    readme = (CHART / "README.md").read_text()
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())

    missing = [
        f"{section}.{name}"
        for section, content in values.items()
        for name in (content if isinstance(content, dict) else ())
        if section not in {"config", "namespaceSelector"}
        and not re.search(rf"[`.]{name}[`.]", readme)
    ]

    assert missing == []
    assert [section for section in values if section not in readme] == []


def test_version_is_that_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = Path(__file__).parents[2] / "pyproject.toml"

    assert f'version = "{chart["appVersion"]}"' in project.read_text()


def test_resource_claims_need_a_kubernetes_that_has_them(render: Render) -> None:
    profiles = {"device_profiles": {"device.driver == 'd'": "gpu:example"}, "taint_effect": ""}
    values = {"config": {"controllers": profiles}}

    with pytest.raises(HelmError, match=r"need Kubernetes 1\.34 or newer .* this is v1\.33\.9"):
        render(values, kube_version="1.33.9")
    render(values, kube_version="1.34.0-rc.1+k3s1")
    render(kube_version="1.33.9")
