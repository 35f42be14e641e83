"""Volumes that only some nodes have, and resources."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.integration.worlds import Worlds


def mounted(claim: str) -> dict[str, Any]:
    """The volume of a pod that uses a claim."""
    return {"name": claim, "persistentVolumeClaim": {"claimName": claim}}


def only_on(host: str) -> dict[str, Any]:
    """A volume's node affinity."""
    selects = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": selects}]}}}


def volume_of(worlds: Worlds, name: str) -> str:
    """The path of a claim's volume."""
    return f"/api/v1/persistentvolumes/{worlds.namespace}-{name}"


@contextmanager
def a_volume(worlds: Worlds, name: str, host: str = "") -> Iterator[None]:
    """A claim, and the volume it is bound to: on one host, or anywhere."""
    size = {"storage": "1Mi"}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    volume = {
        **common,
        **(only_on(host) if host else {}),
        "capacity": size,
        "hostPath": {"path": "/somewhere"},
        "claimRef": {"namespace": worlds.namespace, "name": name},
    }
    claim = {**common, "resources": {"requests": size}, "volumeName": f"{worlds.namespace}-{name}"}
    admin, metadata = worlds.sandbox.admin, {"name": f"{worlds.namespace}-{name}"}
    admin.create("/api/v1/persistentvolumes", {"metadata": metadata, "spec": volume})
    try:
        path = f"{worlds.path}/persistentvolumeclaims"
        admin.create(path, {"metadata": {"name": name}, "spec": claim})
        yield
    finally:
        admin.delete(volume_of(worlds, name))


@contextmanager
def a_resource(worlds: Worlds, host: str, name: str, count: int) -> Iterator[None]:
    """An extended resource that one node has, and Slurm does not count."""

    def announce(found: str | None) -> None:
        amounts = {"capacity": {name: found}, "allocatable": {name: found}}
        worlds.sandbox.admin.patch(f"/api/v1/nodes/{host}/status", {"status": amounts})

    announce(str(count))
    try:
        yield
    finally:
        announce(None)
