"""kubeconform on every set of values, strictly, with the schemas of the sandbox's API server and of the operators' own CRDs."""

import copy
import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
import yaml

from sandbox.assets import Asset
from sandbox.assets.kubeconform import FOLDER
from sandbox.client import Sandbox
from tests.chart import schemas
from tests.chart.conftest import Render
from tests.chart.rendering import Manifest
from tests.chart.value_sets import VALUES

Conform = Callable[[Iterable[Manifest]], Sequence[str]]
"""What is wrong: `Kind name: words`, one for each object that is not right."""

OPERATORS = {"Certificate", "Issuer", "PodMonitor", "PrometheusRule"}


@pytest.fixture(scope="module")
def location(
    control_plane: Sandbox, kubeconform: Asset, tmp_path_factory: pytest.TempPathFactory
) -> str:
    folder = tmp_path_factory.mktemp("schemas")
    schemas.write(control_plane.admin, kubeconform.bin.parent / FOLDER, folder)
    return f"{folder}/{schemas.LOCATION}"


@pytest.fixture
def conform(kubeconform: Asset, location: str) -> Conform:
    program = str(kubeconform.bin / "kubeconform")

    def ask(manifests: Iterable[Manifest]) -> Sequence[str]:
        wanted = list(manifests)
        done = subprocess.run(
            [program, "-strict", "-summary", "-output=json", f"-schema-location={location}", "-"],
            input=yaml.safe_dump_all(wanted),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        said = json.loads(done.stdout)
        assert len(wanted) == said["summary"]["valid"] + len(said["resources"])
        assert bool(said["resources"]) == bool(done.returncode)
        return [f"{wrong['kind']} {wrong['name']}: {wrong['msg']}" for wrong in said["resources"]]

    return ask


@pytest.mark.parametrize("values", [pytest.param(v, id=k) for k, v in VALUES.items()])
def test_every_object_conforms(conform: Conform, render: Render, values: dict[str, Any]) -> None:
    assert not conform(render(values).manifests)


@pytest.fixture(scope="module")
def kinds(render: Render) -> Mapping[str, Manifest]:
    """One object of each kind the chart has."""
    every = [m for values in VALUES.values() for m in render(values).manifests]
    return {m["kind"]: m for m in every}


def test_a_field_that_no_kind_knows_is_found_in_each(
    conform: Conform, kinds: Mapping[str, Manifest]
) -> None:
    assert kinds.keys() >= OPERATORS

    wrong = conform({**manifest, "misspelt": 1} for manifest in kinds.values())

    assert sorted(kinds) == sorted(fault.split()[0] for fault in wrong)
    assert all("'misspelt' not allowed" in fault for fault in wrong)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Certificate", "spec.privateKey"),
        ("Deployment", "spec.template.spec.containers.0.livenessProbe.httpGet"),
        ("MutatingWebhookConfiguration", "webhooks.0.clientConfig"),
        ("NetworkPolicy", "spec.podSelector"),
        ("PodMonitor", "spec.podMetricsEndpoints"),
        ("PrometheusRule", "spec.groups.0.rules.0.expr"),
        ("ValidatingAdmissionPolicy", "spec.validations"),
    ],
)
def test_a_misspelt_field_is_found(
    conform: Conform, kinds: Mapping[str, Manifest], kind: str, path: str
) -> None:
    manifest = copy.deepcopy(kinds[kind])
    *parents, field = path.split(".")
    parent: Any = manifest
    for step in parents:
        parent = parent[int(step) if step.isdecimal() else step]
    parent[f"{field}x"] = parent.pop(field)

    wrong = conform([manifest])

    assert any(f"'{field}x' not allowed" in fault for fault in wrong), wrong


def test_a_value_of_the_wrong_type_is_found(
    conform: Conform, kinds: Mapping[str, Manifest]
) -> None:
    monitor = copy.deepcopy(kinds["PodMonitor"])
    monitor["spec"]["podMetricsEndpoints"] = "health"

    (wrong,) = conform([monitor])

    assert "/spec/podMetricsEndpoints" in wrong
