"""Who may have the keys of a Slurm in pods: what roles and their bindings say."""

from collections.abc import Sequence
from typing import Any

import pytest

from slurmcli.doctor.checks import kube
from slurmcli.doctor.checks.keys import RoleGrant, holders
from slurmcli.doctor.checks.kube import KubeFacts
from slurmruntime.values.findings import Severity, report

ALICE = {"kind": "User", "name": "alice"}
KEY = "site-auth-jwt"


def rule(verbs: str, resources: str, group: str = "", names: Sequence[str] = ()) -> dict[str, Any]:
    found = {"verbs": verbs.split(), "resources": resources.split(), "apiGroups": [group]}
    return {**found, "resourceNames": list(names)} if names else found


def given(
    rules: Sequence[dict[str, Any]],
    subject: dict[str, str] = ALICE,
    *,
    everywhere: bool = False,
    role: str = "some",
) -> list[str]:
    grant = RoleGrant(
        binding="RoleBinding team",
        role=role,
        is_clusters=everywhere,
        subjects=[subject],
        rules=rules,
    )
    return list(holders([grant], secrets=[KEY], ours=["slurm-bridge-system"]))


@pytest.mark.parametrize(
    "keys",
    [
        rule("get", "secrets"),
        rule("list", "secrets"),
        rule("watch", "secrets"),
        rule("*", "*", "*"),
        rule("get", "secrets", names=[KEY]),
        rule("create", "pods"),
        rule("create", "pods/exec"),
        rule("get", "pods/exec"),
        rule("create", "*/exec"),
        rule("get", "pods/attach"),
        rule("patch", "pods/ephemeralcontainers"),
        rule("create", "jobs", "batch"),
        rule("patch", "deployments", "apps"),
    ],
    ids=str,
)
def test_these_rights_give_the_keys(keys: dict[str, Any]) -> None:
    assert ["User alice (RoleBinding team)"] == given([keys])


@pytest.mark.parametrize(
    "none",
    [
        rule("create delete", "secrets"),
        rule("get", "secrets", names=["another"]),
        rule("get", "secrets", "example.org"),
        rule("get list watch", "pods pods/log"),
        rule("*", "nodesets", "slinky.slurm.net"),
        rule("get list watch delete", "deployments", "apps"),
    ],
    ids=str,
)
def test_these_do_not(none: dict[str, Any]) -> None:
    assert [] == given([none])


def test_administrators_of_the_cluster_and_its_own_parts_are_left_out() -> None:
    rules = [rule("*", "*", "*")]
    ours = {"kind": "ServiceAccount", "namespace": "slurm-bridge-system", "name": "operator"}
    other = {"kind": "ServiceAccount", "namespace": "research", "name": "default"}

    assert [] == given(rules, everywhere=True, role="cluster-admin")
    assert [] == given(rules, {"kind": "User", "name": "system:kube-scheduler"}, everywhere=True)
    assert [] == given(rules, ours, everywhere=True)
    assert ["ServiceAccount research/default (RoleBinding team)"] == given(
        rules, other, everywhere=True
    )
    everybody = {"kind": "Group", "name": "system:authenticated"}
    assert given(rules, everybody, everywhere=True)
    assert given(rules, role="cluster-admin"), "bound in one namespace"


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (None, Severity.NOT_CHECKED),
        ({}, Severity.OK),
        ({"slurm": []}, Severity.OK),
        ({"slurm": [], "research": ["User alice (RoleBinding team)"]}, Severity.WARNING),
    ],
)
def test_the_doctor_names_them(found: dict[str, list[str]] | None, verdict: Severity) -> None:
    facts = KubeFacts(
        version=(1, 36), skew_s=0.0, release="ours", settings_faults=(), key_holders=found
    )
    (said,) = [one for one in report(kube.CHECKS, facts) if one.check == "keys of Slurm in pods"]

    assert verdict is said.verdict
    assert ("research: User alice" in said.found) == (verdict is Severity.WARNING)
