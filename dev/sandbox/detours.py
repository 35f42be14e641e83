"""Detours: a service may reach a part through another port, where a test can interfere."""

import json
from collections.abc import Mapping

from sandbox.instance import Instance

Detours = Mapping[str, Mapping[str, int]]
"""By service, then by part: the loopback port that leads to it."""


def write(instance: Instance, detours: Detours) -> None:
    """Write the detours for the services' next start."""
    (instance.bridge / "detours.json").write_text(json.dumps(detours))


def ports(instance: Instance, service: str) -> Mapping[str, int]:
    """Return where the service finds each part: the part's own port unless there is a detour."""
    path = instance.bridge / "detours.json"
    around: Detours = json.loads(path.read_text()) if path.exists() else {}
    return {**instance.ports, **around.get(service, {})}
