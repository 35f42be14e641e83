"""slurm-operator's chart: what it installs, and what it refuses."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridge.settings.schema import Settings
from deploy import manifests
from deploy.operator_rights import NAME, rights
from sandbox.client import Sandbox
from slurmoperator.objects.kinds import KINDS
from slurmoperator.objects.own import slurm_cluster
from slurmoperator.objects.parts import GROUP
from slurmruntime.settings import sources
from tests.chart import rendering
from tests.chart.policed import make_namespaces
from tests.chart.rendering import HelmError, Manifest

NAMESPACE = "operator-chart"
ALL: Mapping[str, Any] = {
    "image": {"repository": "registry.test/slurm-bridge", "digest": f"sha256:{'0' * 64}"},
    "imagePullSecrets": [{"name": "pull"}],
    "config": {
        "operator": {"controller": "slurm/site", "image": "registry.test/slurm/{daemon}:1"},
        "slurm": {"url": ["http://site-restapi.slurm:6820"], "insecure": True},
        "log": {"level": "debug"},
    },
    "slurmToken": {"existingSecret": "its-token", "key": "jwt"},
    "priorityClass": {"create": True, "name": "slurm-first", "value": 1000},
    "crds": {"enabled": False},
    "namespaces": [NAMESPACE, "default"],
    "policies": {
        "slurmNamespaces": {"label": "example.test/slurm", "actions": ["Deny"]},
        "slurmFiles": {"actions": ["Audit"]},
    },
    "replicas": 3,
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "infrastructure", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "resources": {"limits": {"memory": "1Gi"}},
    "podAnnotations": {"example.test/a": "b"},
}
"""Every value."""


def template(helm: Path, values: Mapping[str, Any]) -> str:
    return rendering.template(
        helm, manifests.OPERATOR_CHART, values, release="operator", namespace=NAMESPACE
    )


def objects(helm: Path, values: Mapping[str, Any]) -> Sequence[Manifest]:
    return [each for each in yaml.safe_load_all(template(helm, values)) if each]


def only(made: Sequence[Manifest], kind: str, end: str = "") -> Manifest:
    (found,) = (
        each for each in made if each["kind"] == kind and each["metadata"]["name"].endswith(end)
    )
    return found


def test_the_files_of_a_slurm_are_guarded_where_its_namespace_is_labelled(helm: Path) -> None:
    for values, label, action in (
        ({}, "slurm-bridge.dev/slurm-clusters", "Deny"),
        (ALL, "example.test/slurm", "Audit"),
    ):
        binding = only(objects(helm, values), "ValidatingAdmissionPolicyBinding", "-files")["spec"]
        assert [action] == binding["validationActions"]
        assert {label: "true"} == binding["matchResources"]["namespaceSelector"]["matchLabels"]


def test_every_value_is_tried() -> None:
    values = yaml.safe_load((manifests.OPERATOR_CHART / "values.yaml").read_text())
    assert values.keys() == ALL.keys()


def test_the_definitions_are_installed_and_outlive_the_release(helm: Path) -> None:
    made = objects(helm, {})
    definitions = [each for each in made if each["kind"] == "CustomResourceDefinition"]
    files = [yaml.safe_load(text) for text in manifests.cluster_kinds().values()]
    assert sorted(files, key=str) == sorted(definitions, key=str)
    for definition in definitions:
        assert "keep" == definition["metadata"]["annotations"]["helm.sh/resource-policy"]
    kinds = {manifest["kind"] for manifest in objects(helm, ALL)}
    assert "CustomResourceDefinition" not in kinds


def test_its_rights_are_those_of_the_program(helm: Path) -> None:
    for values, served in (({}, ()), (ALL, (NAMESPACE, "default"))):
        made = objects(helm, values)
        wanted = rights(NAMESPACE, served)
        for each in wanted:
            assert each in made
        bindings = [each for each in made if each["kind"].endswith("Binding") and "roleRef" in each]
        assert len(bindings) == len([each for each in wanted if "roleRef" in each])
        pod = only(made, "Deployment")["spec"]["template"]["spec"]
        assert NAME == pod["serviceAccountName"]


@pytest.mark.parametrize("values", [{}, ALL], ids=["default", "all"])
def test_the_program_takes_its_settings(
    helm: Path, tmp_path: Path, values: Mapping[str, Any]
) -> None:
    made = objects(helm, values)
    file = tmp_path / "config.yaml"
    file.write_text(only(made, "ConfigMap")["data"]["config.yaml"])
    settings = sources.read(Settings, config=file, environment={}, prefix="", secrets_dir=None)
    assert NAMESPACE == settings.kubernetes.namespace
    assert settings.operator.namespaces == tuple(values.get("namespaces", ()))

    spec = only(made, "Deployment")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    mounts = {
        volume_mount["name"]: volume_mount["mountPath"]
        for volume_mount in container["volumeMounts"]
    }
    assert ["slurmoperator", "--config", f"{mounts['config']}/config.yaml"] == container["args"]
    if values:
        assert mounts["token"] == str(Path(settings.slurm.token_file).parent)
    else:
        assert "token" not in mounts
    assert settings.health.listen == f"0.0.0.0:{container['ports'][0]['containerPort']}"


def test_who_may_have_a_slurm_where_is_told_refused_or_left_open(helm: Path) -> None:
    for values, label, actions in (
        ({}, "slurm-bridge.dev/slurm-clusters", ["Warn", "Audit"]),
        (ALL, "example.test/slurm", ["Deny"]),
    ):
        made = objects(helm, values)
        policy = only(made, "ValidatingAdmissionPolicy", "-namespaces")
        rules = policy["spec"]["matchConstraints"]["resourceRules"]
        assert {rule["apiGroups"][0]: rule["resources"] for rule in rules} == {
            GROUP: sorted(each.plural for each in KINDS if each.plural != slurm_cluster.PLURAL),
            slurm_cluster.GROUP: [slurm_cluster.PLURAL],
        }
        binding = only(made, "ValidatingAdmissionPolicyBinding", "-namespaces")["spec"]
        assert binding["policyName"] == policy["metadata"]["name"]
        assert binding["validationActions"] == actions
        (other,) = binding["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert other == {"key": label, "operator": "NotIn", "values": ["true"]}
    kinds = {
        manifest["kind"]
        for manifest in objects(
            helm,
            {"policies": {"slurmNamespaces": {"actions": []}, "slurmFiles": {"actions": []}}},
        )
    }
    assert not {kind for kind in kinds if "Admission" in kind}


def test_what_is_wrong_is_refused(helm: Path) -> None:
    for values, place in (
        ({"replica": 2}, "replica"),
        ({"config": {"webhook": {}}}, "/config"),
        ({"config": {"operator": {"namespaces": ["a"]}}}, "/config/operator"),
        ({"namespaces": ["A"]}, "/namespaces"),
        ({"config": {"slurm": {"token_file": "/x"}}}, "/config/slurm"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"policies": {"slurmNamespaces": {"actions": ["deny"]}}}, "/slurmNamespaces/actions"),
        ({"policies": {"slurmNamespaces": {"actions": ["Warn", "Deny"]}}}, "/actions"),
        ({"policies": {"slurmNamespaces": {"label": "a b"}}}, "/slurmNamespaces/label"),
        ({"slurmToken": {"key": ""}}, "/slurmToken/key"),
    ):
        with pytest.raises(HelmError, match=place):
            template(helm, values)


def test_the_file_for_those_without_helm_is_fresh(helm: Path) -> None:
    assert manifests.operator_rendered(str(helm)) == manifests.OPERATOR_FILE.read_text(), (
        "make manifests"
    )


@pytest.mark.parametrize("values", [{}, ALL], ids=["default", "all"])
def test_a_real_api_server_takes_it(
    control_plane: Sandbox, helm: Path, values: Mapping[str, Any]
) -> None:
    make_namespaces(control_plane, {NAMESPACE: {}})
    said = control_plane.kubectl(
        "apply", "--server-side", "--dry-run=server", "-f", "-", stdin=template(helm, values)
    )
    assert len(objects(helm, values)) == len(said.splitlines())
