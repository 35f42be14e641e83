"""docs/security.md says of every right of every account what it is good for in a thief's hands, and of no other."""

import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from docs.generate import stolen
from tests.chart.conftest import Render
from tests.chart.rendering import CHART, Manifest

ROOT = Path(__file__).parents[2]
EVERYTHING: dict[str, Any] = {
    "config": {
        "agent": {"pin_cores": True},
        "slurm_jobs": {"enabled": True},
        "sylabs": {"enabled": True},
        "slurm": {"controller": "slurm/site"},
        "controllers": {"device_profiles": {"device.driver == 'd'": "gpu"}},
    },
    "slurmController": {"keySecret": "site-jwt", "restApis": ["site"]},
}
"""Each right that some setting gives."""
STOCK = {
    "extension-apiserver-authentication-reader",
    "system:kube-scheduler",
    "system:volume-scheduler",
}
"""Roles of Kubernetes' own, of kube-scheduler."""
Kind = tuple[str, str, str]


def granted(manifests: Iterable[Manifest], account: str) -> set[Kind]:
    """API group, resource and verb of all roles that an account is bound to."""
    objects = list(manifests)
    roles = {(m["kind"], m["metadata"]["name"]): m for m in objects if m["kind"].endswith("Role")}
    return {
        (group, resource, verb)
        for binding in objects
        if binding["kind"].endswith("RoleBinding")
        and account in [subject["name"] for subject in binding["subjects"]]
        and binding["roleRef"]["name"] not in STOCK
        for rule in roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def written(account: str) -> set[Kind]:
    return {kind for right in stolen.ACCOUNTS[account] for kind in right.kinds()}


@pytest.mark.parametrize("account", [name for name in stolen.ACCOUNTS if name != "operator"])
def test_each_right_of_the_chart_is_on_the_page_and_no_other(render: Render, account: str) -> None:
    chart = render(EVERYTHING)

    assert granted(chart.manifests, f"slurm-bridge-{account}") == written(account)


def test_no_account_of_the_chart_is_left_out(render: Render) -> None:
    accounts = {
        name.removeprefix("slurm-bridge-") for name in render(EVERYTHING).of_kind("ServiceAccount")
    }

    assert accounts == {*stolen.ACCOUNTS} - {"operator"}


def test_each_right_of_the_operator_is_on_the_page_and_no_other() -> None:
    module = runpy.run_path(str(CHART.parent / "operator_rights.py"))

    assert granted(module["rights"]("slurm"), module["NAME"]) == written("operator")


def test_the_page_is_fresh() -> None:
    page = (ROOT / "docs/security.md").read_text()

    assert page == stolen.render(page), "make docs"
