"""Sylabs' kinds in the chart: made from their types, there when asked for, and without short names."""

import runpy

from tests.chart.conftest import Render
from tests.chart.rendering import CHART
from tests.chart.value_sets import VALUES


def test_their_definitions_are_made_from_their_types_and_come_when_asked_for(
    render: Render,
) -> None:
    made = runpy.run_path(str(CHART.parent / "manifests.py"))["sylabs"]()
    assert made == (CHART / "files/sylabs.yaml").read_text(), "run `make manifests`"

    ours = render({"config": {"slurm_jobs": {"enabled": True}}})
    assert {"slurmjobs.slurm-bridge.dev"} == set(ours.of_kind("CustomResourceDefinition"))
    old = render(VALUES["sylabs"]).of_kind("CustomResourceDefinition")
    for name in ("slurmjobs.slurm.sylabs.io", "slurmjobs.wlm.sylabs.io", "wlmjobs.wlm.sylabs.io"):
        assert "shortNames" not in old[name]["spec"]["names"]
