"""Which devices a pod's claims get: those whose indexes Slurm gave its job."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bridge.domain.model.claims import inventory
from bridge.domain.model.claims import profiles as device_profiles
from bridge.domain.model.claims.inventory import Inventory
from bridge.domain.model.claims.profiles import Profiles
from bridge.domain.model.claims.values import DeviceClass, DeviceId, ResourceClaim
from slurmruntime.values.ids import KubeNode, PodUid

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps a claim as long as it is allocated. Kubernetes' resource claim controller takes back the
allocation of claims that have it, and removes it."""


class CannotGive(Exception):
    """The devices cannot be given now; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A device for a request."""

    request: str
    device: DeviceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Gift:
    """What one claim gets."""

    claim: ResourceClaim
    results: tuple[Result, ...]

    @property
    def devices(self) -> tuple[DeviceId, ...]:
        """The devices alone."""
        return tuple(result.device for result in self.results)


def portion(
    granted: Mapping[str, Sequence[int]], wanted: Mapping[str, int], *, place: int = 0, of: int = 1
) -> Mapping[str, tuple[int, ...]]:
    """Return one pod's part of the indexes that its job has on a node, by GRES.

    Args:
        granted: the job's indexes there, by GRES.
        wanted: how many devices the pod's claims ask for, by GRES.
        place: the pod's place among its gang's pods on that node, from 0; 0 without a gang.
        of: how many pods of the gang are there; 1 without a gang.

    Raises:
        CannotGive: Slurm gave another number than the pods there claim, if each claims the same.
    """
    portions = {}
    for gres, count in wanted.items():
        numbers = tuple(sorted(granted.get(gres, ())))
        if len(numbers) != count * of:
            pods = f"each of the {of} pods there" if of > 1 else "the pod"
            raise CannotGive(f"Slurm gave {len(numbers)} {gres} there, and {pods} claims {count}")
        portions[gres] = numbers[place * count : (place + 1) * count]
    return portions


def devices(
    indexes: Mapping[str, Sequence[int]], present: Inventory, registered: Mapping[str, int]
) -> Mapping[str, tuple[DeviceId, ...]]:
    """Return the node's devices behind Slurm's indexes, by GRES.

    Args:
        registered: how many devices the node has in Slurm, by GRES.

    Raises:
        CannotGive: Slurm and the node's ResourceSlices do not agree on what there is.
    """
    by_gres = {}
    for gres, numbers in indexes.items():
        node_devices = present.get(gres, ())
        if len(node_devices) != registered.get(gres, 0):
            raise CannotGive(
                f"Slurm has {registered.get(gres, 0)} {gres} there, the node's ResourceSlices have "
                f"{len(node_devices)}"
            )
        first = inventory.first_index(gres, registered)
        if any(not first <= number < first + len(node_devices) for number in numbers):
            raise CannotGive(
                f"Slurm gave {gres} with indexes {list(numbers)}, of {len(node_devices)}"
            )
        by_gres[gres] = tuple(node_devices[number - first] for number in numbers)
    return by_gres


def agree(present: Inventory, registered: Mapping[str, int], wanted: Iterable[str]) -> bool:
    """Check whether Slurm and the ResourceSlices of a node have the same numbers of devices.

    Then nothing has changed on either side since the indexes were given out, or since Slurm was
    read. Only types of the kinds that `wanted` names are compared: `gpu` for `gpu:a100`.
    """
    kinds = {name.partition(":")[0] for name in wanted}

    def of_kinds(counts: Mapping[str, int]) -> Mapping[str, int]:
        return {n: c for n, c in counts.items() if c and n.partition(":")[0] in kinds}

    return of_kinds(inventory.counts(present)) == of_kinds(registered)


def deal(
    claims: Sequence[ResourceClaim],
    classes: Mapping[str, DeviceClass],
    profiles: Profiles,
    mine: Mapping[str, Sequence[DeviceId]],
) -> tuple[Gift, ...]:
    """Deal a pod's devices out to the requests of its claims, in their order.

    Raises:
        CannotGive: a class is gone or has changed, or there are too few devices.
    """
    left = {gres: iter(ids) for gres, ids in mine.items()}

    def take(claim: ResourceClaim) -> Iterator[Result]:
        for request in claim.spec.requests:
            device_class = classes.get(request.device_class)
            profile = device_profiles.of_class(device_class, profiles) if device_class else None
            if profile is None:
                raise CannotGive(f"DeviceClass {request.device_class} no longer maps to a GRES")
            for _ in range(request.count):
                device = next(left.get(profile.gres, iter(())), None)
                if device is None:
                    raise CannotGive(f"there are too few {profile.gres} for claim {claim.name}")
                yield Result(request=request.name, device=device)

    return tuple(Gift(claim=claim, results=tuple(take(claim))) for claim in claims)


def in_the_way(gifts: Iterable[Gift], everyone: Iterable[ResourceClaim], node: KubeNode) -> str:
    """Return which claim still has one of the devices, in words; "" if none has.

    A claim has them until its pod is gone and the resource claim controller has taken them back.

    node: where the devices are; a claim on another node has others, as its driver may use the same names.
    """
    wanted = {device: gift.claim.uid for gift in gifts for device in gift.devices}
    for claim in everyone:
        if claim.node and claim.node != node:
            continue
        for device in claim.devices:
            if wanted.get(device, claim.uid) != claim.uid:
                return (
                    f"device {device.device} of {device.pool} is still given to claim "
                    f"{claim.namespace}/{claim.name}"
                )
    return ""


def is_protected(claim: ResourceClaim) -> bool:
    """Check whether Kubernetes will take the devices of a claim back."""
    return FINALIZER in claim.finalizers


def may_take_back(claim: ResourceClaim, pod: PodUid) -> bool:
    """Check whether a claim has devices that only this pod uses."""
    return claim.is_allocated and not set(claim.reserved_for) - {pod}


def is_done(gift: Gift, pod: PodUid, node: KubeNode) -> bool:
    """Check whether a claim already has exactly these devices; a process may have died after the write.

    Raises:
        CannotGive: it is given to another pod.
    """
    claim = gift.claim
    if not claim.is_allocated:
        return False
    if set(claim.reserved_for) - {pod}:
        raise CannotGive(f"claim {claim.name} is in use by another pod")
    same = sorted(claim.devices) == sorted(gift.devices) and claim.node == node
    return same and claim.reserved_for == (pod,)
