"""Device profiles: which DeviceClass is which GRES of Slurm.

A class belongs to a profile if both select the same devices. CEL is not evaluated: a selector is a
conjunction of equalities, which is what drivers ship, and anything else is unknown.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bridge.domain.model.claims.values import Device, DeviceClass

Value = str | int | bool
Conditions = frozenset[tuple[str, Value]]
"""Qualified attribute, or `driver` → the value it must have."""

DRIVER = "driver"
COUNTED = "resource.k8s.io/"
"""Prefix under which a profile's devices are counted beside extended resources. Kubernetes keeps
this domain to itself, so no device plugin registers such a name."""

_TEXT = r"\"[^\"\\]*\"|'[^'\\]*'"
_ATTRIBUTE = rf"attributes\[(?P<domain>{_TEXT})\]\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
_PRESENCE = re.compile(rf"\s*has\(\s*device\.{_ATTRIBUTE}\s*\)\s*")
_CONDITION = re.compile(
    rf"\s*device\.(?:driver|{_ATTRIBUTE})"
    rf"\s*==\s*(?P<value>{_TEXT}|-?[0-9]{{1,18}}|true|false)\s*"
)
_LONGEST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The devices that one GRES stands for."""

    gres: str
    """`gpu`, or with a type `gpu:a100`."""
    conditions: Conditions

    @property
    def resource(self) -> str:
        """Return the name its devices are counted under, beside extended resources."""
        return COUNTED + self.gres

    def selects(self, device: Device) -> bool:
        """Check whether a device is one of this profile."""
        facts = {**device.attributes, DRIVER: device.id.driver}
        return all(_same(facts.get(name), value) for name, value in self.conditions)


Profiles = tuple[Profile, ...]


def read(settings: Mapping[str, str]) -> Profiles:
    """Read the administrator's device profiles: selector → GRES.

    Raises:
        ValueError: selectors are not conjunctions of equalities, or mean the same, or a kind of
            GRES has a type in one profile and none in another; all faults are reported.
    """
    by_conditions: dict[Conditions, Profile] = {}
    faults: list[str] = []
    untyped = {gres for gres in settings.values() if ":" not in gres}
    for selector, gres in settings.items():
        conditions = parse(selector)
        kind = gres.partition(":")[0]
        if conditions is None or DRIVER not in dict(conditions):
            words = "expected device.driver == '…', and attributes with && if needed"
            faults.append(f"[{selector!r}]: {words}")
            continue
        if conditions in by_conditions:
            faults.append(f"[{selector!r}]: another profile selects the same devices")
        if gres != kind and kind in untyped:
            words = f"{kind} has no type in another profile, whose pods Slurm could give {gres}"
            faults.append(f"[{selector!r}]: {words}: set a type there, too")
        by_conditions[conditions] = Profile(gres=gres, conditions=conditions)
    if faults:
        raise ValueError("; ".join(faults))
    return tuple(by_conditions.values())


def resources(profiles: Iterable[Profile]) -> dict[str, str]:
    """Return the names that devices are counted under, with their GRES."""
    return {profile.resource: profile.gres for profile in profiles}


def of_class(device_class: DeviceClass, profiles: Iterable[Profile]) -> Profile | None:
    """Return the profile of a class; None if it selects other devices, or by CEL that we cannot read."""
    conditions: set[tuple[str, Value]] = set()
    for selector in device_class.selectors:
        parsed = parse(selector)
        if parsed is None:
            return None
        conditions |= parsed
    return next((profile for profile in profiles if profile.conditions == conditions), None)


def unserved(
    profiles: Iterable[Profile],
    classes: Sequence[DeviceClass],
    drivers: Container[str],
    resources: Mapping[str, str],
) -> Iterator[str]:
    """Yield settings that no pod can use, and resources that pods would request in vain.

    Args:
        classes: all that the cluster has.
        drivers: those with ResourceSlices.
        resources: resource name → DeviceClass, as the administrator set it.
    """
    profiles = tuple(profiles)
    gres_of = {
        device_class.name: mapped.gres
        for device_class in classes
        if (mapped := of_class(device_class, profiles))
    }
    served = set(gres_of.values())
    for profile in profiles:
        driver = dict(profile.conditions)[DRIVER]
        if profile.gres not in served:
            yield f"no DeviceClass selects the devices of {profile.gres}"
        if driver not in drivers:
            yield f"no node has devices of driver {driver} ({profile.gres})"
    for resource, class_name in resources.items():
        if class_name not in gres_of:
            yield f"{resource} stands for DeviceClass {class_name}, which does not exist or has no profile"
    for device_class in classes:
        if (
            device_class.name in gres_of
            and device_class.resource
            and device_class.resource not in resources
        ):
            yield (
                f"DeviceClass {device_class.name} has extendedResourceName {device_class.resource}, which "
                "device_resources does not have: pods that request it get no claim"
            )


def parse(selector: str) -> Conditions | None:
    """Read `device.driver == "d" && device.attributes["d"].model == "a100"`; None for other CEL.

    `has()` of an attribute is redundant where its value is compared, and counts as other CEL elsewhere.
    """
    if len(selector) > _LONGEST:
        return None
    conditions: set[tuple[str, Value]] = set()
    present: set[str] = set()
    position = 0
    while match := (_CONDITION.match(selector, position) or _PRESENCE.match(selector, position)):
        name = f"{match['domain'][1:-1]}/{match['name']}" if match["domain"] else DRIVER
        if match.re is _PRESENCE:
            present.add(name)
        else:
            conditions.add((name, _value(match["value"])))
        position = match.end()
        if position == len(selector):
            return frozenset(conditions) if present <= dict(conditions).keys() else None
        if not selector.startswith("&&", position):
            return None
        position += 2
    return None


def _value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1] if text[0] in "\"'" else int(text)


def _same(value: Value | None, wanted: Value) -> bool:
    return type(value) is type(wanted) and value == wanted
