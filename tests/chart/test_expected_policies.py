"""The doctor expects the policies that the chart makes, whatever the values, and no others."""

import re

import pytest
import yaml

from bridge.domain.workloads import kinds
from slurmcli.doctor.checks.kube import KubeFacts, expected_bindings
from tests.chart.conftest import Render
from tests.chart.value_sets import VALUES

PROFILES = {"controllers": {"device_profiles": {"device.driver == 'a'": "gpu"}}}
MORE = {
    "claims": {"config": PROFILES},
    "claims-without-taint": {
        "config": {"controllers": {**PROFILES["controllers"], "taint_effect": ""}}
    },
}
LAST = {
    "one-call": ({"admission": {"calls": "one"}}, False),
    "ignored": ({"webhook": {"failurePolicy": "Ignore"}}, False),
    "policy": ({"admission": {"mutate": "policy", "calls": "one"}}, True),
    "policy-ignored": (
        {"admission": {"mutate": "policy"}, "webhook": {"failurePolicy": "Ignore"}},
        False,
    ),
}
"""Where the validating webhook sees every new pod as it is stored, and where not."""
EVERY = {**VALUES, **MORE, **{name: values for name, (values, _) in LAST.items()}}


@pytest.mark.parametrize("name", EVERY)
def test_the_doctor_expects_what_the_chart_makes(render: Render, name: str) -> None:
    chart = render(EVERY[name])
    settings = yaml.safe_load(chart.config("slurm-bridge-config", "config.yaml"))
    bound = chart.of_kind("ValidatingAdmissionPolicyBinding")
    selector = bound["slurm-bridge-bypass"]["spec"]["matchResources"]["namespaceSelector"]
    facts = KubeFacts(
        version=(1, 36),
        skew_s=0,
        release="slurm-bridge",
        settings_faults=(),
        has_profiles=bool(settings["controllers"].get("device_profiles")),
        has_taint=bool(settings["controllers"]["taint_effect"]),
        direct_denies="Deny" in bound["slurm-bridge-direct"]["spec"]["validationActions"],
        serves_slurm_jobs=settings.get("slurm_jobs", {}).get("enabled", False),
        webhook_has_last_word=LAST.get(name, ({}, True))[1],
        selecting_terms=sum(map(len, filter(None, selector.values()))) - 1,
    )

    assert expected_bindings(facts) == sorted(
        binding.removeprefix("slurm-bridge-") for binding in bound
    )


def test_what_policy_impossible_lets_pass_is_what_the_webhook_does(render: Render) -> None:
    policies = render(LAST["one-call"][0]).of_kind("ValidatingAdmissionPolicy")
    first = policies["slurm-bridge-impossible"]["spec"]["matchConditions"][0]["expression"]

    assert {
        annotation: ",".join(f"'{label}'" for label in sorted(labels))
        for annotation, labels in kinds.EXCLUSIVE_TERMS.items()
    } == dict(re.findall(r"annotations\[\?'([^']*)'\].*?k in \[([^]]*)\]", first))
