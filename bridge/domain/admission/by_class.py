"""Turn requests for devices of a class into claims of the pod, before the pod is stored.

Each container's request becomes a claim of its own, from a template that the extender creates
(`bridge.domain.model.claims.by_class`). From there on it is a pod with claims like any other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bridge.domain import quantities
from bridge.domain.faults import Fault
from bridge.domain.model import json_patch
from bridge.domain.model.claims import by_class
from bridge.domain.model.claims.asking import MOST_DEVICES
from bridge.domain.model.demand import Demand, Resources
from bridge.domain.model.json_patch import Operation


@dataclass(frozen=True, kw_only=True)
class Asker:
    """A container that asks for devices by their classes."""

    field: str
    """Where it stands in the pod's spec: `containers`, `initContainers`."""
    index: int
    resources: Resources
    has_claims: bool = False
    """It uses claims of the pod besides."""

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How many devices it asks for, by the name of the class."""
        amounts = {**self.resources.limits, **self.resources.requests}
        counted = {
            name.removeprefix(by_class.RESOURCE_PREFIX): quantities.whole(quantities.parse(amount))
            for name, amount in sorted(amounts.items())
            if name.startswith(by_class.RESOURCE_PREFIX)
        }
        return {name: count for name, count in counted.items() if count}

    def path(self, device_class: str) -> str:
        """Return where it asks for devices of a class, for people."""
        return (
            f"spec.{self.field}[{self.index}].resources[{by_class.RESOURCE_PREFIX}{device_class}]"
        )


def askers(**containers: Sequence[tuple[Resources, bool]]) -> tuple[Asker, ...]:
    """Return those who ask by a class, of containers by the field in which they stand.

    Args:
        containers: what each asks for, and whether it uses claims of the pod.
    """
    found = (
        Asker(field=field, index=index, resources=resources, has_claims=has_claims)
        for field, listed in containers.items()
        for index, (resources, has_claims) in enumerate(listed)
    )
    return tuple(each for each in found if each.counts)


def faults(found: Sequence[Asker], *, takes_claims: bool) -> Iterator[Fault]:
    """Yield why requests by a class cannot become claims; takes_claims: Slurm has some class's devices."""
    for asker in found:
        for device_class, count in asker.counts.items():
            if why := _unusable(asker, device_class, count) if takes_claims else _WITHOUT_PROFILES:
                yield Fault(asker.path(device_class), f"cannot be honoured: {why}")


def left_over(found: Sequence[Asker]) -> Iterator[Fault]:
    """Yield what should have become claims: the webhook is not asked to change pods."""
    for asker in found:
        for device_class in asker.counts:
            yield Fault(asker.path(device_class), f"cannot be honoured: {_LEFT_OVER}")


def operations(found: Sequence[Asker], claims: int) -> Iterator[Operation]:
    """Yield the patch that puts claims in the place of the requests.

    claims: how many the pod has already.
    """
    number = claims
    for asker in found:
        resources = f"/spec/{asker.field}/{asker.index}/resources"
        has_claims = asker.has_claims
        for device_class, count in asker.counts.items():
            name = by_class.RESOURCE_PREFIX + device_class
            for of, amounts in (
                ("limits", asker.resources.limits),
                ("requests", asker.resources.requests),
            ):
                if name in amounts:
                    yield json_patch.remove(f"{resources}/{of}/{json_patch.escape(name)}")
            entry = {"name": f"slurm-bridge-{number}"}
            template = by_class.template(device_class, count)
            yield _append(f"{resources}/claims", entry, has_some=has_claims)
            yield _append(
                "/spec/resourceClaims",
                {**entry, "resourceClaimTemplateName": template},
                has_some=number > 0,
            )
            has_claims = True
            number += 1


def claims(found: Sequence[Asker]) -> int:
    """Return how many claims the requests become."""
    return sum(len(asker.counts) for asker in found)


def without(demand: Demand) -> Demand:
    """Return a demand without the devices that are asked for by a class."""
    extended = {
        name: count
        for name, count in demand.extended.items()
        if not name.startswith(by_class.RESOURCE_PREFIX)
    }
    return replace(demand, extended=extended)


_WITHOUT_PROFILES = (
    "kube-scheduler would choose the devices, not Slurm; request extended resources such as "
    "nvidia.com/gpu (an administrator can map device classes to GRES: setting "
    "controllers.device_profiles)"
)
_LEFT_OVER = (
    "kube-scheduler would choose the devices, not Slurm, and slurm-bridge's webhook has not made a "
    "claim of it (chart value admission.mutate); use spec.resourceClaims with a template"
)
_BEFORE_THE_OTHERS = (
    "the containers that start after an init container would share its devices; ask in "
    "spec.containers, or use spec.resourceClaims with a template"
)


def _unusable(asker: Asker, device_class: str, count: int) -> str:
    if asker.field == "initContainers" and not asker.resources.sidecar:
        return _BEFORE_THE_OTHERS
    if not by_class.is_class_name(device_class):
        return "no DeviceClass has such a name: expected a lowercase DNS subdomain"
    if not 0 < count <= MOST_DEVICES:
        return f"expected at most {MOST_DEVICES} devices, found {count}"
    return ""


def _append(path: str, value: object, *, has_some: bool) -> Operation:
    if has_some:
        return json_patch.add(f"{path}/-", value)
    return json_patch.add(path, [value])
