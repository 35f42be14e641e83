"""The devices of a node, in the order in which Slurm numbers them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from bridge.domain.model.claims.profiles import Profile, Profiles
from bridge.domain.model.claims.values import Device, DeviceId, ResourceSlice

Inventory = Mapping[str, tuple[DeviceId, ...]]
"""The devices of a node by GRES (`gpu:a100`)."""

_DIGITS = re.compile(r"([0-9]{1,18})")


def of_node(slices: Iterable[ResourceSlice], profiles: Profiles) -> Inventory:
    """Return a node's devices by GRES, each list in the order of their names: gpu-2 before gpu-10.

    Only the newest generation of a pool counts, and only if all of its slices are there: a driver
    replaces them one by one.
    """
    by_gres: defaultdict[str, list[DeviceId]] = defaultdict(list)
    for slice_ in _current(slices):
        for device in slice_.devices:
            profile = _profile(device, profiles)
            if profile is not None:
                by_gres[profile.gres].append(device.id)
    return {gres: tuple(sorted(set(devices), key=_natural)) for gres, devices in by_gres.items()}


def counts(inventory: Inventory) -> dict[str, int]:
    """Return how many devices there are of each GRES."""
    return {gres: len(devices) for gres, devices in inventory.items()}


def first_index(gres: str, registered: Mapping[str, int]) -> int:
    """Return Slurm's index of the first device of a GRES: types of one kind are numbered together.

    registered: how many devices the node has in Slurm, by GRES.
    """
    kind = gres.partition(":")[0]
    return sum(
        count
        for name, count in registered.items()
        if name < gres and name.partition(":")[0] == kind
    )


def _current(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    pools: defaultdict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for slice_ in slices:
        pools[slice_.driver, slice_.pool].append(slice_)
    current: list[ResourceSlice] = []
    for pool in pools.values():
        newest = max(slice_.generation for slice_ in pool)
        complete = [slice_ for slice_ in pool if slice_.generation == newest]
        if len(complete) == complete[0].of:
            current += complete
    return current


def _profile(device: Device, profiles: Profiles) -> Profile | None:
    selecting = (profile for profile in profiles if profile.selects(device))
    return max(selecting, key=lambda profile: (len(profile.conditions), profile.gres), default=None)


def _natural(device: DeviceId) -> tuple[object, ...]:
    names = (device.driver, device.pool, device.device)
    return tuple(
        tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name))
        for name in names
    )
