"""Who may connect to what, where the chart's network policies are wanted."""

import pytest

from tests.chart.conftest import Render
from tests.chart.objects import DEPLOYMENTS


def test_network_policy_lets_only_the_scheduler_ask_the_extender(render: Render) -> None:
    policies = render({"networkPolicy": {"enabled": True}}).of_kind("NetworkPolicy")
    asked = [
        rule
        for rule in policies["slurm-bridge-extender"]["spec"]["ingress"]
        if {"port": "https"} in rule["ports"]
    ]

    assert {f"slurm-bridge-{component}" for component in DEPLOYMENTS} == set(policies)
    assert policies["slurm-bridge-webhook"]["spec"]["egress"] == []
    assert [
        peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
        for rule in asked
        for peer in rule["from"]
    ] == ["scheduler"]


@pytest.mark.parametrize("component", ["webhook", "extender", "controllers"])
def test_network_policy_lets_only_listed_peers_scrape_metrics(
    render: Render, component: str
) -> None:
    def peers(**more: object) -> list[object]:
        rendered = render({"networkPolicy": {"enabled": True, **more}})
        policy = rendered.of_kind("NetworkPolicy")[f"slurm-bridge-{component}"]
        rules = policy["spec"].get("ingress") or []
        return [rule["from"] for rule in rules if {"port": "health"} in rule["ports"]]

    prometheus = [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
    (default,) = peers()

    assert default
    assert [prometheus] == peers(metricsFrom=prometheus)
    assert [] == peers(metricsFrom=[])
