"""Services: one under which clients find a daemon, and headless ones that give pods names."""

from collections.abc import Iterator, Mapping

from slurmoperator.objects.parts import ServicePart
from slurmoperator.rendering.body import Body, BodyOwner, made
from slurmoperator.rendering.overlay import laid_over
from slurmruntime.values.faults import Fault


def faults(service: ServicePart | None) -> Iterator[Fault]:
    """Find what would lead clients elsewhere."""
    spec = (service.spec if service else None) or {}
    for key in ("selector", "externalName"):
        if spec.get(key):
            yield Fault(f"spec.service.spec.{key}", "leave it out: it selects the pods made here")


def for_clients(
    owner: BodyOwner, name: str, port: int, service: ServicePart | None, *, also: int | None = None
) -> Body:
    """Return the Service under which clients reach a daemon.

    Args:
        owner: whose pods it selects.
        name: its name.
        port: under which the daemon listens.
        service: what the user wants of it.
        also: a port that must be open whatever the user wants, because configuration names it.
    """
    asked = (service.port if service else None) or also or port
    numbers = list(dict.fromkeys((asked, also or asked)))
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
    spec = laid_over(ours, (service.spec if service else None) or {})
    added = service.metadata if service else None
    return made(owner, "Service", name, added=added, parts={"spec": spec})


def headless(
    owner: BodyOwner, name: str, selector: Mapping[str, str], *, app: str, port: int
) -> Body:
    """Return a Service that gives pods names from their birth, whether they are ready or not."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": dict(selector),
        "ports": [{"name": app, "port": port, "targetPort": app, "protocol": "TCP"}],
    }
    return made(owner, "Service", name, parts={"spec": spec})
