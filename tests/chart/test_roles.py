"""Every program has the rights it needs, and no others."""

import runpy

import pytest

from bridge.domain.workloads import kinds
from tests.chart.conftest import Render
from tests.chart.objects import OWN_WEBHOOKS, pod_spec, rights
from tests.chart.rendering import CHART, Rendered
from tests.chart.value_sets import VALUES

READ = ("get", "list", "watch")


def granted(*grants: tuple[str, str, tuple[str, ...]]) -> set[tuple[str, str, str, str]]:
    return {(group, resource, verb, "") for group, resource, verbs in grants for verb in verbs}


OWN_CLUSTER_ID = {("", "namespaces", "get", "kube-system")}
OPERATORS_WORD = {("", "namespaces", "get", "slurm-bridge")}
"""An annotation of slurm-bridge's own namespace, for the circuit breaker."""


def test_extender_has_the_rights_of_its_table(chart: Rendered) -> None:
    expected = granted(
        ("", "namespaces", ("get",)),
        ("", "pods", (*READ, "patch")),
        ("", "pods/binding", ("create",)),
        ("", "pods/status", ("patch",)),
        ("", "nodes", ("list", "watch")),
        ("", "persistentvolumeclaims", ("get",)),
        ("", "persistentvolumes", ("get",)),
        ("storage.k8s.io", "storageclasses", ("get",)),
        ("events.k8s.io", "events", ("create",)),
        *(
            (group, resource, ("get",))
            for group, resources in kinds.reads().items()
            for resource in resources
        ),
    )

    assert expected == rights(chart, "ClusterRole", "slurm-bridge-extender")


def test_controllers_have_the_rights_of_their_table(chart: Rendered, render: Render) -> None:
    expected = (
        OWN_CLUSTER_ID
        | OPERATORS_WORD
        | granted(
            ("", "pods", (*READ, "patch", "delete")),
            ("", "pods/status", ("patch",)),
            ("", "nodes", ("list", "watch", "patch")),
            ("", "nodes/status", ("patch",)),
            ("events.k8s.io", "events", ("create",)),
        )
    )

    assert expected | OWN_WEBHOOKS == rights(chart, "ClusterRole", "slurm-bridge-controllers")
    assert expected == rights(
        render({"tls": {"mode": "certManager"}}), "ClusterRole", "slurm-bridge-controllers"
    )


@pytest.mark.parametrize("component", ["extender", "controllers"])
def test_leader_may_write_one_lease_only(chart: Rendered, component: str) -> None:
    leases = ("coordination.k8s.io", "leases")
    name = f"slurm-bridge-{component}"

    assert {(*leases, "get", name), (*leases, "update", name), (*leases, "create", "")} == rights(
        chart, "Role", f"{name}-lease"
    )


def test_with_a_controller_who_speaks_to_slurm_may_read_its_address_and_its_key_only(
    render: Render,
) -> None:
    chart = render(VALUES["slurm-in-pods"])
    binding = chart.of_kind("RoleBinding")["slurm-bridge-slurm"]

    assert {
        ("slinky.slurm.net", "controllers", "get", "site"),
        ("slinky.slurm.net", "restapis", "list", ""),
        ("", "secrets", "get", "site-jwt"),
        ("", "configmaps", "get", "site-restapi-tls"),
        ("", "configmaps", "get", "other-restapi-tls"),
    } == rights(chart, "Role", "slurm-bridge-slurm")
    assert "slurm" == binding["metadata"]["namespace"]
    assert ["slurm-bridge-extender", "slurm-bridge-controllers"] == [
        subject["name"] for subject in binding["subjects"]
    ]
    for each in ("extender", "controllers"):
        spec = pod_spec(chart, each)
        assert "slurm" not in {volume["name"] for volume in spec["volumes"]}
    assert "slurm-bridge-slurm" not in render({}).of_kind("Role")


def test_the_schedulers_stock_role_lets_it_create_its_lease(chart: Rendered) -> None:
    leases, name = ("coordination.k8s.io", "leases"), "slurm-bridge-scheduler"

    assert {(*leases, "get", name), (*leases, "update", name)} == rights(
        chart, "Role", f"{name}-lease"
    )


def test_webhook_is_bound_to_no_role(chart: Rendered) -> None:
    bindings = chart.of_kind("ClusterRoleBinding") | chart.of_kind("RoleBinding")
    subjects = {s["name"] for binding in bindings.values() for s in binding["subjects"]}

    assert {"slurm-bridge-extender", "slurm-bridge-controllers", "slurm-bridge-scheduler"} == (
        subjects
    )


def test_no_role_has_a_wildcard(chart: Rendered) -> None:
    for kind in ("ClusterRole", "Role"):
        for name in chart.of_kind(kind):
            assert not [right for right in rights(chart, kind, name) if "*" in right]


def test_the_chart_lets_the_extender_read_what_the_kinds_of_workload_need() -> None:
    module = runpy.run_path(str(CHART.parent / "manifests.py"))
    values = module["CHART_VALUES"].read_text()

    assert values == module["chart_values"](values), "make manifests"
