"""The columns differ in switches that the chart and the settings have, and in nothing else."""

from typing import Any

import pytest
import yaml

from benchmarks import columns
from benchmarks.columns import SWITCHES, Column
from bridge.settings.schema import Settings
from sandbox import chart

VALUES = yaml.safe_load((chart.CHART / "values.yaml").read_text())
CONFIG = "config"


def of(column: Column) -> dict[str, str]:
    return dict(value.split("=") for value in column.values)


def usual(name: str) -> object:
    """What the chart has for this value, or else the settings' own default."""
    *sections, field = name.split(".")
    found: object = VALUES
    settings: object = Settings()
    for section in sections:
        assert isinstance(found, dict)
        found = found.get(section, {})
        settings = settings if section == CONFIG else getattr(settings, section, None)
    assert isinstance(found, dict)
    return found[field] if field in found else getattr(settings, field)


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.name)
def test_the_defaults_are_the_charts(switch: columns.Switch) -> None:
    assert usual(switch.name) == yaml.safe_load(switch.default)
    assert switch.default != switch.fast


def test_the_fastest_has_every_switch_on_and_the_defaults_none() -> None:
    fast, slow = of(columns.column("fastest")), of(columns.column("defaults"))

    assert fast == {switch.name: switch.fast for switch in SWITCHES}
    assert slow == {switch.name: switch.default for switch in SWITCHES}


def test_one_switch_alone_is_a_column_of_its_own() -> None:
    found = columns.column("defaults", ["admission.calls", "admission.calls"])

    assert found.name == "defaults + admission.calls"
    assert of(found) == of(columns.column("defaults")) | {"admission.calls": "one"}


@pytest.mark.parametrize(
    ("name", "also", "said"),
    [("slowest", [], "no column 'slowest'"), ("defaults", ["slurm.kick"], "no switch slurm.kick")],
)
def test_what_there_is_not_is_refused_with_what_there_is(
    name: str, also: list[str], said: str
) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        columns.column(name, also)
    assert "fastest" in str(refused.value) or "config.slurm.kick" in str(refused.value)


def test_values_reach_the_chart_as_helm_reads_them() -> None:
    values: dict[str, Any] = {"config": {"slurm": {"url": "http://x", "kick": True}}}

    chart.set_values(values, columns.column("defaults").values)

    assert values["config"]["slurm"] == {"url": "http://x", "kick": False}
    assert values["admission"] == {"calls": "two"}
