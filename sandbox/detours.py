"""Ways round: a service may reach a part by another address, where whoever wants to break something listens."""

import json
from collections.abc import Mapping

from sandbox.instance import Instance

Detours = Mapping[str, Mapping[str, int]]
"""By service, then by part: the loopback port that leads to it."""


def write(instance: Instance, detours: Detours) -> None:
    """Lay them down for the services' next start."""
    (instance.bridge / "detours.json").write_text(json.dumps(detours))


def ports(instance: Instance, service: str) -> Mapping[str, int]:
    """Where the service finds each part: its own port where there is no way round."""
    path = instance.bridge / "detours.json"
    around: Detours = json.loads(path.read_text()) if path.exists() else {}
    return {**instance.ports, **around.get(service, {})}
