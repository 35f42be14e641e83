"""`workloads.together`: the extender's pods do the controllers' work, with the rights of both and no others."""

from typing import Any

import pytest
import yaml

from tests.chart.conftest import Render
from tests.chart.objects import pod_spec, rights
from tests.chart.rendering import Rendered

JOBS = {"config": {"slurm_jobs": {"enabled": True}, "sylabs": {"enabled": True}}}
DEVICES = {"config": {"controllers": {"device_profiles": {"device.driver == 'd'": "gpu"}}}}
ESCROW = {
    "config": {"nodes": {"hybrid": "escrow"}},
    "escrow": {"hosts": ["escrow.example.test"]},
}
TOGETHER = {"workloads": {"together": True}}
EXTENDER = "slurm-bridge-extender"
CONTROLLERS = "slurm-bridge-controllers"
Grant = tuple[str, str, str, str, str]
CASES = pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="defaults"),
        pytest.param(JOBS, id="slurm jobs"),
        pytest.param(DEVICES, id="devices"),
        pytest.param({"tls": {"mode": "certManager"}}, id="cert-manager"),
    ],
)


def granted(chart: Rendered, account: str) -> set[Grant]:
    """What an account may do, and in which namespace ("" for all)."""
    found: set[Grant] = set()
    for binding in chart.manifests:
        if binding["kind"] not in {"RoleBinding", "ClusterRoleBinding"}:
            continue
        if account not in [subject["name"] for subject in binding["subjects"]]:
            continue
        role = binding["roleRef"]
        if role["name"] not in chart.of_kind(role["kind"]):
            found.add(("", "", "", "", role["name"]))  # a stock role
            continue
        where = binding["metadata"].get("namespace", "")
        found |= {(where, *right) for right in rights(chart, role["kind"], role["name"])}
    return found


@CASES
def test_the_account_has_the_rights_of_both_and_no_others(
    render: Render, values: dict[str, Any]
) -> None:
    apart, together = render(values), render({**values, **TOGETHER})
    both = granted(apart, EXTENDER) | granted(apart, CONTROLLERS)

    assert both == granted(together, EXTENDER)
    assert both > granted(apart, EXTENDER)
    assert granted(apart, CONTROLLERS) == granted(together, CONTROLLERS), "pods in their last hour"


@CASES
def test_all_others_have_the_rights_they_had(render: Render, values: dict[str, Any]) -> None:
    apart, together = render(values), render({**values, **TOGETHER})
    accounts = {*apart.of_kind("ServiceAccount")} - {EXTENDER}

    assert {*apart.of_kind("ServiceAccount")} == {*together.of_kind("ServiceAccount")}
    for account in accounts:
        assert granted(apart, account) == granted(together, account)


def test_there_is_one_deployment_instead_of_two(render: Render, chart: Rendered) -> None:
    together = render(TOGETHER)
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert {*chart.of_kind(kind)} - {*together.of_kind(kind)} == {CONTROLLERS}
        assert {*together.of_kind(kind)} <= {*chart.of_kind(kind)}
    (container,) = pod_spec(together, "extender")["containers"]
    (alone,) = pod_spec(chart, "extender")["containers"]

    (controllers,) = pod_spec(chart, "controllers")["containers"]

    assert ["leader", *controllers["args"][1:]] == container["args"]
    assert "extender" == alone["args"][0]
    assert {**alone, "args": container["args"]} == container
    assert pod_spec(chart, "extender")["serviceAccountName"] == EXTENDER
    assert together.of_kind("Service") == chart.of_kind("Service"), "kube-scheduler's way"


def test_the_scheduler_notices_nothing(render: Render, chart: Rendered) -> None:
    together = render(TOGETHER)

    assert chart.config("slurm-bridge-scheduler", "scheduler.yaml") == together.config(
        "slurm-bridge-scheduler", "scheduler.yaml"
    )
    assert pod_spec(chart, "scheduler") == pod_spec(together, "scheduler")


def test_slurms_script_finds_both_of_its_doors_as_before(render: Render) -> None:
    apart, together = render(ESCROW).of_kind("Service"), render({**ESCROW, **TOGETHER}).of_kind("Service")  # fmt: skip
    component = "app.kubernetes.io/component"

    assert {*apart} == {*together}
    for name in (f"{EXTENDER}-escrow", f"{CONTROLLERS}-escrow"):
        assert "extender" == together[name]["spec"]["selector"][component]
        assert apart[name]["spec"]["ports"] == together[name]["spec"]["ports"]


def test_policies_take_both_accounts_for_the_controllers(render: Render) -> None:
    """During an upgrade either of them may do their work."""
    users = {
        f"system:serviceaccount:slurm-bridge:{account}": account
        for account in (EXTENDER, CONTROLLERS)
    }
    apart, together = (
        render(values).of_kind("ValidatingAdmissionPolicy")
        for values in (JOBS, {**JOBS, **TOGETHER})
    )
    for policy in ("slurm-bridge-slurmjobs", "slurm-bridge-companions-kept"):
        alone, both = (
            {account for user, account in users.items() if user in yaml.safe_dump(found[policy])}
            for found in (apart, together)
        )
        assert {CONTROLLERS} == alone
        assert {EXTENDER, CONTROLLERS} == both
    same = {*apart} - {"slurm-bridge-slurmjobs", "slurm-bridge-companions-kept"}
    assert {name: apart[name] for name in same} == {name: together[name] for name in same}
