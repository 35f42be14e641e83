"""Types of settings about devices: profiles, and classes by the resource that stands for them."""

from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from bridge.domain.model.claims import by_class
from bridge.domain.model.claims import profiles as device_profiles
from slurmruntime.settings.values import parse_json


def profiles(settings: dict[str, str]) -> dict[str, str]:
    """Check that device profiles can be read, and are distinct."""
    device_profiles.read(settings)
    return settings


Profiles = Annotated[
    dict[str, Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(:[A-Za-z0-9_.-]+)?$")]],
    BeforeValidator(parse_json),
    AfterValidator(profiles),
]


_RESOURCE = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"


ClassNames = Annotated[
    dict[
        Annotated[str, Field(pattern=_RESOURCE)],
        Annotated[str, Field(pattern=rf"^{by_class.CLASS}$")],
    ],
    BeforeValidator(parse_json),
]
"""Extended resources, and the DeviceClass that each stands for."""


CLASSES: Final = (
    "Extended resource names by which pods may request devices, and the DeviceClass of each, like the class's own "
    "extendedResourceName for kube-scheduler. Such a request becomes a claim, whatever device plugins report."
)
