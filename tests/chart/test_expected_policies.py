"""The doctor expects the policies that the chart makes, whatever the values, and no others."""

import pytest
import yaml

from bridge.domain.diagnosis.doctor.kube import KubeFacts, expected_bindings
from tests.chart.conftest import Render
from tests.chart.value_sets import VALUES

PROFILES = {"controllers": {"device_profiles": {"device.driver == 'a'": "gpu"}}}
MORE = {
    "claims": {"config": PROFILES},
    "claims-without-taint": {
        "config": {"controllers": {**PROFILES["controllers"], "taint_effect": ""}}
    },
}
EVERY = {**VALUES, **MORE}


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
        serves_slurm_jobs=settings.get("slurm_jobs", {}).get("enabled", False),
        selecting_terms=sum(map(len, filter(None, selector.values()))) - 1,
    )

    assert expected_bindings(facts) == sorted(
        binding.removeprefix("slurm-bridge-") for binding in bound
    )
