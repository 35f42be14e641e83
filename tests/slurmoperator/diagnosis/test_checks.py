"""The doctor's questions about slurm-operator."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from slurmoperator.diagnosis import checks
from slurmoperator.diagnosis.checks import CHECKS, OperatorFacts
from slurmoperator.diagnosis.parts import NamespaceObjects
from slurmoperator.objects.definitions import definition
from slurmoperator.objects.kinds import SLURM_CLUSTER
from slurmruntime.values.findings import Finding, Severity, report
from tests.slurmoperator.diagnosis.given import node_set, part

NAME = SLURM_CLUSTER.definition_name
WELL = OperatorFacts(
    release="slurm-bridge-system",
    definitions={NAME: ()},
    lease_age_s=0.0,
    objects=NamespaceObjects(parts=[part("Controller"), part("RestApi")], node_sets=[node_set()]),
    label="slurm-bridge.dev/slurm-clusters",
    labelled=["slurm"],
)
UNASKED = ("SlurmKnown", "Unknown", "NotRead", "RestApi site does not answer")


def said(seen: OperatorFacts) -> dict[str, Finding]:
    return {each.check: each for each in report(CHECKS, seen)}


def test_nothing_is_wrong() -> None:
    assert {Severity.OK} == {each.verdict for each in said(WELL).values()}


def test_without_slurm_operator_there_is_nothing_to_say() -> None:
    found = said(OperatorFacts(release="slurm-bridge-system", definitions={}))

    assert {(Severity.OK, "slurm-operator is not installed")} == {
        (each.verdict, each.found) for each in found.values()
    }


@pytest.mark.parametrize(
    ("change", "check", "verdict", "words", "fix"),
    [
        (
            {"lease_age_s": None},
            *("slurm-operator", "fault", "no slurm-operator runs", "--release-namespace"),
        ),
        (
            {"lease_age_s": 7.0},
            *("slurm-operator", "fault", "silent for 7 s", "logs deploy/slurm-bridge-operator"),
        ),
        (
            {"rival": "the webhook configuration x is registered"},
            *("other operators", "fault", "webhook configuration x", "let only one operator"),
        ),
        (
            {"definitions": {NAME: ("it does not serve v1alpha1",)}},
            *("definitions of Slurm in pods", "fault", "v1alpha1", "the same version"),
        ),
        (
            {"definitions": {NAME: ("it lacks spec.login",)}},
            *("definitions of Slurm in pods", "warning", "spec.login", "the same version"),
        ),
        (
            {"labelled": []},
            *(
                "namespaces of Slurm in pods",
                "warning",
                "allowed them: slurm",
                "label namespace slurm",
            ),
        ),
        (
            {
                "objects": NamespaceObjects(
                    parts=[part("Controller"), part("RestApi")],
                    node_sets=[node_set("gpu", UNASKED)],
                )
            },
            *(
                "Slurms in pods",
                "fault",
                "slurm/site: RestApi site does not answer",
                "cluster NAME",
            ),
        ),
        (
            {"objects": NamespaceObjects(parts=[part("Controller")], node_sets=[node_set()])},
            *("Slurms in pods", "fault", "slurm/site: it has no RestApi", "kubectl slurm why"),
        ),
    ],
)
def test_each_fault_is_found(
    change: dict[str, Any], check: str, verdict: str, words: str, fix: str
) -> None:
    found = said(replace(WELL, **change))

    assert verdict == found[check].verdict
    assert words in found[check].found
    assert fix in found[check].fix
    others = [each.verdict for name, each in found.items() if name != check]
    assert {Severity.OK} == {*others}


def test_what_may_not_be_read_is_not_checked() -> None:
    blind = replace(WELL, is_lease_read=False, rival=None, objects=None, label=None)
    found = said(blind)

    assert Severity.OK == found.pop("definitions of Slurm in pods").verdict
    assert {Severity.NOT_CHECKED} == {each.verdict for each in found.values()}
    nothing = said(OperatorFacts(release="", definitions=None))
    assert {Severity.NOT_CHECKED} == {each.verdict for each in nothing.values()}


def test_a_definition_of_another_version_says_in_what_it_differs() -> None:
    ours = definition(SLURM_CLUSTER)
    (version,) = ours["spec"]["versions"]

    def changed(*path: str, to: Any) -> list[str]:
        installed = copy.deepcopy(ours)
        at = installed["spec"]["versions"][0]
        for each in path[:-1]:
            at = at[each]
        if to is None:
            del at[path[-1]]
        else:
            at[path[-1]] = to
        return list(checks.differences(installed, ours))

    spec = ("schema", "openAPIV3Schema", "properties", "spec", "properties")
    assert [] == list(checks.differences(ours, ours))
    assert ["it does not serve v1alpha1"] == changed("name", to="v1alpha0")
    assert ["it does not serve v1alpha1"] == changed("served", to=False)
    assert changed(*spec, "suspend", to=None) == ["it lacks spec.suspend"]
    new = changed(*spec, "later", to={"type": "string"})
    assert ["it has spec.later, which this version does not know"] == new
    bounds = changed(*spec, "suspend", "description", to="another one")
    assert ["its fields have other bounds, rules or descriptions"] == bounds
    assert "suspend" in version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
