"""What stands in the rendered objects of the chart."""

import itertools
from typing import Any

from bridge.settings import configuration
from bridge.settings.configuration import Installation
from tests.chart.rendering import Rendered

PROGRAMS = ("webhook", "extender", "controllers")
DEPLOYMENTS = (*PROGRAMS, "scheduler")


def pod_spec(chart: Rendered, component: str) -> dict[str, Any]:
    deployment = chart.of_kind("Deployment")[f"slurm-bridge-{component}"]
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def signed(chart: Rendered) -> Installation:
    """What the controllers are started with."""
    program, *arguments = pod_spec(chart, "controllers")["containers"][0]["args"]
    return configuration.sources(program, arguments).installation


def mounts(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Mount path to volume."""
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    return {m["mountPath"]: volumes[m["name"]] for m in spec["containers"][0]["volumeMounts"]}


OUTSIDE = {
    "workloads": {"enabled": False},
    "tls": {"mode": "secret", "caBundle": "PEM"},
    "webhook": {"url": "https://127.0.0.1:31001"},
    "extender": {"url": "https://127.0.0.1:31002"},
    "scheduler": {"kubeconfig": "/run/scheduler.kubeconfig", "tlsDirectory": "/run/tls"},
}
"""For processes that run outside the cluster."""


def rights(chart: Rendered, kind: str, name: str) -> set[tuple[str, str, str, str]]:
    """(API group, resource, verb, name or "") of a role."""
    return {
        (group, resource, verb, only)
        for rule in chart.of_kind(kind)[name]["rules"]
        for group, resource, verb, only in itertools.product(
            rule["apiGroups"], rule["resources"], rule["verbs"], rule.get("resourceNames", [""])
        )
    }


OWN_WEBHOOKS = {
    ("admissionregistration.k8s.io", f"{kind}webhookconfigurations", verb, "slurm-bridge")
    for kind in ("mutating", "validating")
    for verb in ("get", "patch")
}
