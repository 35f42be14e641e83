"""Devices asked for by the name of their class: `deviceclass.resource.kubernetes.io/gpu.example.com: 2`.

For such a resource, kube-scheduler makes a claim and chooses the devices (KEP-5004). Where Slurm
chooses, the pod gets an ordinary claim instead, from a template whose name says what it asks for.
So any process that finds the template missing can create it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.domain.model.claims.values import ClaimSpec, DeviceRequest

RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Of the resources that stand for a DeviceClass each."""

CLASS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""What the name of a DeviceClass looks like: a DNS subdomain."""

_REQUEST = "devices"
CLASS_NAME = re.compile(CLASS)
_TEMPLATE = re.compile(rf"slurm-bridge-(?P<count>[1-9][0-9]?)-of-(?P<class>{CLASS})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How pods may ask for devices that Slurm gives."""

    takes_claims: bool = False
    """Slurm has some class's devices: there are device profiles."""
    resources: Mapping[str, str] = field(default_factory=dict)
    """Resource name → DeviceClass, for classes with an `extendedResourceName`."""

    def device_class(self, resource: str) -> str:
        """Return the class that a resource stands for; "" if it stands for none."""
        if resource.startswith(RESOURCE_PREFIX):
            return resource.removeprefix(RESOURCE_PREFIX)
        return self.resources.get(resource, "")


def template(device_class: str, count: int) -> str:
    """Return the name of the template for so many devices: `slurm-bridge-2-of-gpu.example.com`."""
    return f"slurm-bridge-{count}-of-{device_class}"


def spec(template_name: str) -> ClaimSpec | None:
    """Return what a template of this name stands for; None if it is not one of ours.

    Anyone may create a template of that name: it counts only if this is its content.
    """
    match = _TEMPLATE.fullmatch(template_name)
    if match is None:
        return None
    request = DeviceRequest(name=_REQUEST, device_class=match["class"], count=int(match["count"]))
    return ClaimSpec(requests=(request,))
