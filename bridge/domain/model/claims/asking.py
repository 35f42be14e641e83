"""What the claims of a pod ask Slurm for, or everything that is wrong with them.

Slurm chooses devices by GRES and type. What would choose otherwise (attributes, alternatives, a
device by name) is refused: ignoring it would be worse.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bridge.domain.model.claims import by_class
from bridge.domain.model.claims import profiles as device_profiles
from bridge.domain.model.claims.profiles import Profiles
from bridge.domain.model.claims.values import ClaimSpec, DeviceClass, PodClaim
from bridge.domain.model.pods import Pod
from slurmruntime.values.faults import Fault, Refusal, bounded

MOST_DEVICES = 32
"""Kubernetes' own limit of devices in one claim: `AllocationResultsMaxSize`."""

MOST_CLAIMS = 32
"""Of one pod. One more is read, so that it can be refused."""

_WHY = {
    "adminAccess": "devices that others use cannot be given again",
    "allocationMode": "Slurm gives a number of devices: set count",
    "capacity": "Slurm gives whole devices",
    "firstAvailable": "Slurm is asked for one kind of device, not for the first of several",
    "selectors": "Slurm chooses the devices: use a DeviceClass that has a GRES of its own",
    "tolerations": "Slurm chooses the devices, and does not know taints of devices",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimInHand:
    """An entry of a pod's claims, and what was read about it."""

    index: int
    """Its place in `spec.resourceClaims`."""
    entry: PodClaim
    spec: ClaimSpec | None
    """None: there is no such claim or template."""
    others: tuple[str, ...] = ()
    """Other pods that use the claim, by name."""
    is_overdue: bool = False
    """Kubernetes should have made it from its template by now, or did and it is gone."""

    @property
    def why_overdue(self) -> str:
        """Why there is no claim that should be there, for people."""
        if self.entry.claim:
            claim = f"claim {self.entry.claim}, made from template {self.entry.template},"
            return f"{claim} is gone, and Kubernetes makes no other: create the pod again"
        return (
            f"Kubernetes has not made the claim from template {self.entry.template} yet; Events of "
            "the pod say why, a quota for example"
        )

    @property
    def is_not_what_its_template_stands_for(self) -> bool:
        """Check whether someone else has made a template of ours, or a claim in its place.

        Otherwise anyone who may do that in a namespace would decide what other users there ask for,
        down to the parameters that a driver gets. Neither can be changed once it is made.
        """
        ours = by_class.spec(self.entry.template)
        return (
            ours is not None
            and self.spec is not None
            and not self.spec.unreadable
            and self.spec != ours
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The claims of a pod, and the classes they name."""

    claims: tuple[ClaimInHand, ...] = ()
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    """Those that exist."""


def gres(asking: Asking, profiles: Profiles) -> Mapping[str, int]:
    """Return the devices that a pod's claims ask for, by GRES: `{"gpu:a100": 2}`.

    Raises Refusal with what is wrong with the claims.
    """
    if problems := bounded(_faults(asking, profiles)):
        raise Refusal(*problems)
    return _counts(asking, profiles)


def _counts(asking: Asking, profiles: Profiles) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for claim in asking.claims:
        for request in claim.spec.requests if claim.spec else ():
            profile = device_profiles.of_class(asking.classes[request.device_class], profiles)
            counts[profile.gres if profile else ""] += request.count
    return dict(counts)


def of_all(
    members: Sequence[Pod], asked: Sequence[Asking], profiles: Profiles
) -> tuple[tuple[Pod, ...], tuple[Fault, ...]]:
    """Return a pod, or the members of a gang, with the devices they claim; or what is wrong.

    asked: the claims of each member, in the same order.
    """
    if faults := [fault for asking in asked for fault in bounded(_faults(asking, profiles))]:
        return (), bounded(dict.fromkeys(faults))
    counts = [_counts(asking, profiles) for asking in asked]
    if any(count != counts[0] for count in counts):
        words = "all pods of a gang must claim the same devices"
        return (), (Fault("spec.resourceClaims", words),)
    return tuple(map(counted, members, counts)), ()


def in_words(asking: Asking, profiles: Profiles) -> Iterator[str]:
    """Describe what each request becomes: `gpus/request: 2 of class-of-a100 = gpu:a100`."""
    for claim in asking.claims:
        for request in claim.spec.requests if claim.spec else ():
            device_class = asking.classes.get(request.device_class)
            profile = device_profiles.of_class(device_class, profiles) if device_class else None
            became = profile.gres if profile else "no GRES"
            of = request.device_class or "no DeviceClass"
            yield f"{claim.entry.entry}/{request.name}: {request.count} of {of} = {became}"


def counted(pod: Pod, gres: Mapping[str, int]) -> Pod:
    """Add the devices of its claims to what a pod asks for, under their profiles' names."""
    extended = Counter(pod.demand.extended)
    extended.update({device_profiles.COUNTED + name: count for name, count in gres.items()})
    return replace(pod, demand=replace(pod.demand, extended=dict(extended)))


def _faults(asking: Asking, profiles: Profiles) -> Iterator[Fault]:
    if len(asking.claims) > MOST_CLAIMS:
        yield Fault("spec.resourceClaims", f"expected at most {MOST_CLAIMS} claims")
    named = Counter(claim.entry.claim for claim in asking.claims if claim.entry.claim)
    for claim in asking.claims:
        path, entry = f"spec.resourceClaims[{claim.index}]", claim.entry
        by_name, by_template = f"claim {entry.claim}", f"template {entry.template}"
        if claim.others:
            yield Fault(
                path,
                f"{by_name} is used by pod {claim.others[0]}, whose devices Slurm "
                "gives to another job: use resourceClaimTemplateName",
            )
        if entry.claim and named[entry.claim] > 1:
            yield Fault(path, f"{by_name} is named twice")
        if claim.spec is None:
            yield Fault(path, f"there is no {by_template if entry.template else by_name}")
        elif claim.is_overdue and not claim.spec.unreadable:
            yield Fault(path, claim.why_overdue)
        elif claim.is_not_what_its_template_stands_for:
            yield Fault(
                path,
                f"{by_name if entry.claim else by_template} does not ask for what the template name "
                f"{entry.template} stands for: delete that template, and create the pod again",
            )
        else:
            yield from _of_spec(claim.spec, f"{path}: ", asking.classes, profiles)


def of_spec(spec: ClaimSpec) -> Iterator[Fault]:
    """Yield what Slurm cannot honour in a claim or a template, whatever its classes are."""
    if spec.unreadable:
        yield Fault("spec", f"cannot be read: {spec.unreadable}")
        return
    if not spec.requests:
        yield Fault("spec.devices.requests", "expected at least one request")
    if spec.constraints:
        yield Fault(
            "spec.devices.constraints",
            "cannot be honoured: Slurm does not know the attributes of devices",
        )
    if sum(request.count for request in spec.requests) > MOST_DEVICES:
        yield Fault("spec.devices.requests", f"expected at most {MOST_DEVICES} devices in a claim")
    for index, request in enumerate(spec.requests):
        for name in request.unusable:
            why = _WHY.get(name.rpartition(".")[2], "Slurm does not know it")
            path = f"spec.devices.requests[{index}].{name}"
            yield Fault(path, f"cannot be honoured: {why}")


def _of_spec(
    spec: ClaimSpec, where: str, classes: Mapping[str, DeviceClass], profiles: Profiles
) -> Iterator[Fault]:
    for fault in of_spec(spec):
        yield Fault(f"{where}{fault.path}", fault.message)
    for index, request in enumerate(spec.requests):
        path = f"{where}spec.devices.requests[{index}].exactly.deviceClassName"
        if not request.device_class:
            continue
        device_class = classes.get(request.device_class)
        if device_class is None:
            yield Fault(path, f"there is no DeviceClass {request.device_class}")
        elif device_profiles.of_class(device_class, profiles) is None:
            yield Fault(
                path,
                f"DeviceClass {request.device_class} maps to no GRES in Slurm: an administrator can map "
                "its selector to one (setting controllers.device_profiles)",
            )
