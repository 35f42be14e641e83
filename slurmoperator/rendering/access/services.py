"""Renders Services: one for the clients of a daemon, and headless ones that give pods DNS names."""

from collections.abc import Iterator, Mapping

from slurmoperator.objects.parts import ServicePart
from slurmoperator.rendering.body import BodyOwner, owned_body
from slurmoperator.rendering.overlay import merge
from slurmruntime.model.objects import JsonDict
from slurmruntime.values.faults import Fault


def faults(service: ServicePart | None) -> Iterator[Fault]:
    """Yield overrides that would direct clients elsewhere."""
    spec = (service.spec if service else None) or {}
    for key in ("selector", "externalName"):
        if spec.get(key):
            text = "leave it out: the Service must select the daemon's pods"
            yield Fault(f"spec.service.spec.{key}", text)


def for_clients(
    owner: BodyOwner, name: str, port: int, service: ServicePart | None, *, also: int | None = None
) -> JsonDict:
    """Return the Service for a daemon's clients. Port `also` must be open in any case, because Slurm's configuration names it."""
    requested = (service.port if service else None) or also or port
    numbers = list(dict.fromkeys((requested, also or requested)))
    node_port = service.node_port if service else None
    ports = [
        {
            "name": owner.app if number == numbers[0] else f"{owner.app}-{number}",
            "port": number,
            "targetPort": owner.app,
            "protocol": "TCP",
            **({"nodePort": node_port} if node_port and number == numbers[0] else {}),
        }
        for number in numbers
    ]
    ours = {
        "selector": owner.selecting,
        "ports": ports,
        **({"type": "NodePort"} if node_port else {}),
    }
    spec = merge(ours, (service.spec if service else None) or {})
    added = service.metadata if service else None
    return owned_body(owner, "Service", name, added=added, parts={"spec": spec})


def headless(
    owner: BodyOwner, name: str, selector: Mapping[str, str], *, app: str, port: int
) -> JsonDict:
    """Return a headless Service that gives pods DNS names as soon as they exist, ready or not."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": dict(selector),
        "ports": [{"name": app, "port": port, "targetPort": app, "protocol": "TCP"}],
    }
    return owned_body(owner, "Service", name, parts={"spec": spec})
