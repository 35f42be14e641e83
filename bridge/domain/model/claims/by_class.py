"""Devices asked for by the name of their class: `deviceclass.resource.kubernetes.io/gpu.example.com: 2`.

For such a resource, kube-scheduler makes a claim and chooses the devices (KEP-5004). Where Slurm
chooses, the pod gets an ordinary claim instead, from a template whose name says what it asks for.
So whoever misses the template can make it.
"""

import re

from bridge.domain.model.claims.values import ClaimSpec, DeviceRequest

RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Of the resources that stand for a DeviceClass each."""

_REQUEST = "devices"
_CLASS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_CLASS_NAME = re.compile(_CLASS)
_TEMPLATE = re.compile(rf"slurm-bridge-(?P<count>[1-9][0-9]?)-of-(?P<class>{_CLASS})")


def is_class_name(name: str) -> bool:
    """Check whether a DeviceClass can have this name."""
    return _CLASS_NAME.fullmatch(name) is not None


def template(device_class: str, count: int) -> str:
    """Return the name of the template for so many devices: `slurm-bridge-2-of-gpu.example.com`."""
    return f"slurm-bridge-{count}-of-{device_class}"


def spec(template_name: str) -> ClaimSpec | None:
    """Return what a template of this name asks for; None if it is not one of ours."""
    found = _TEMPLATE.fullmatch(template_name)
    if found is None:
        return None
    request = DeviceRequest(name=_REQUEST, device_class=found["class"], count=int(found["count"]))
    return ClaimSpec(requests=(request,))
