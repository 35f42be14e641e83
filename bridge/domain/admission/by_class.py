"""Turn requests for devices of a class into claims of the pod, before the pod is stored.

Each container's request becomes a claim of its own, from a template that the extender creates
(`bridge.domain.model.claims.by_class`). From there on it is a pod with claims like any other.

Kubernetes never sees such a request, so what it would refuse is refused here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from bridge.domain.model.claims import by_class
from bridge.domain.model.claims.asking import MOST_DEVICES
from bridge.domain.model.claims.by_class import Ways
from bridge.domain.model.demand import Demand, Resources
from slurmruntime.model import json_patch
from slurmruntime.model.json_patch import Operation
from slurmruntime.values import quantities
from slurmruntime.values.faults import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRequest:
    """Devices of one class that a container asks for."""

    resource: str
    device_class: str
    request: str
    """As written; "" for none."""
    limit: str

    @property
    def amount(self) -> str:
        """The request, or else the limit, as written."""
        return self.request or self.limit

    @property
    def count(self) -> int:
        """The number of devices."""
        return quantities.round_up(quantities.parse(self.amount))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """A container that may ask for devices by class."""

    field: str
    """The list in the pod's spec that contains it: `containers`, `initContainers`."""
    index: int
    resources: Resources
    claims: Sequence[str] = ()
    """The pod's claims that it uses already, by their names in the pod."""

    def wants(self, ways: Ways) -> tuple[ClassRequest, ...]:
        """Return its requests by class, in the order of the resources' names."""
        requests, limits = self.resources.requests, self.resources.limits
        class_requests = (
            ClassRequest(
                resource=name,
                device_class=device_class,
                request=requests.get(name, ""),
                limit=limits.get(name, ""),
            )
            for name in sorted({*requests, *limits})
            if (device_class := ways.device_class(name))
        )
        return tuple(request for request in class_requests if quantities.parse(request.amount))

    @property
    def where(self) -> str:
        """Return where its resources are, for a patch."""
        return f"/spec/{self.field}/{self.index}/resources"

    def without(self, wanted: ClassRequest) -> Iterator[Operation]:
        """Yield the patch that removes such a request."""
        for of, amount in (("limits", wanted.limit), ("requests", wanted.request)):
            if amount:
                yield json_patch.remove(f"{self.where}/{of}/{json_patch.escape(wanted.resource)}")

    def path(self, resource: str) -> str:
        """Return where it asks for a resource, for people."""
        return f"spec.{self.field}[{self.index}].resources[{resource}]"


def askers(**containers: Sequence[tuple[Resources, Sequence[str]]]) -> tuple[Asker, ...]:
    """Return the containers that may ask by class; each keyword is a field of the pod's spec.

    containers: what each asks for, and which claims of the pod it uses.
    """
    return tuple(
        Asker(field=field, index=index, resources=resources, claims=claims)
        for field, listed in containers.items()
        for index, (resources, claims) in enumerate(listed)
        if any("/" in name for names in resources[:2] for name in names)
    )


def faults(class_askers: Sequence[Asker], ways: Ways) -> Iterator[Fault]:
    """Yield why requests by a class cannot become claims."""
    for asker in class_askers:
        for wanted in asker.wants(ways):
            if why := _unusable(asker, wanted) if ways.takes_claims else _WITHOUT_PROFILES:
                yield Fault(asker.path(wanted.resource), f"cannot be honoured: {why}")


def leftover_faults(class_askers: Sequence[Asker], ways: Ways) -> Iterator[Fault]:
    """Yield requests that should have become claims: the webhook is not called to change pods."""
    for asker in class_askers:
        for wanted in asker.wants(ways):
            yield Fault(asker.path(wanted.resource), f"cannot be honoured: {_LEFT_OVER}")


def patch(class_askers: Sequence[Asker], ways: Ways, claims: Sequence[str]) -> Iterator[Operation]:
    """Yield the patch that replaces the requests with claims.

    claims: the names of those that the pod has already.
    """
    free = names(class_askers, ways, claims)
    listed = [*claims]
    for asker in class_askers:
        its = [*asker.claims]
        for wanted in asker.wants(ways):
            yield from asker.without(wanted)
            name = next(free)
            template = by_class.template(wanted.device_class, wanted.count)
            entry = {"name": name, "resourceClaimTemplateName": template}
            yield json_patch.append(f"{asker.where}/claims", {"name": name}, to=its)
            yield json_patch.append("/spec/resourceClaims", entry, to=listed)
            its.append(name)
            listed.append(name)


def drop_met(
    class_askers: Sequence[Asker], ways: Ways, templates: Mapping[str, str]
) -> Iterator[Operation]:
    """Yield the patch that removes requests for which a container already has the claims.

    Such a pod's manifest was applied again.

    templates: the template of each claim of the pod, by the claim's name.
    """
    for asker in class_askers:
        wants = asker.wants(ways)
        has = (templates.get(name, "") for name in asker.claims if name.startswith(_OURS))
        if [by_class.template(want.device_class, want.count) for want in wants] == [*has]:
            for wanted in wants:
                yield from asker.without(wanted)


def without(demand: Demand, ways: Ways) -> Demand:
    """Return a demand without the devices that are asked for by a class."""
    extended = {
        name: count for name, count in demand.extended.items() if not ways.device_class(name)
    }
    return replace(demand, extended=extended)


_OURS = "slurm-bridge-"
"""How the names of our claims begin."""
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


def _unusable(asker: Asker, wanted: ClassRequest) -> str:
    if asker.field == "initContainers" and not asker.resources.sidecar:
        return _BEFORE_THE_OTHERS
    if by_class.CLASS_NAME.fullmatch(wanted.device_class) is None:
        return "no DeviceClass has such a name: expected a lowercase DNS subdomain"
    if not wanted.limit or quantities.parse(wanted.limit) != quantities.parse(wanted.amount):
        limit = repr(wanted.limit) if wanted.limit else "none"
        return f"expected a limit that equals the request {wanted.amount!r}, found {limit}"
    if wanted.count != quantities.parse(wanted.amount):
        return f"expected a whole number of devices, found {wanted.amount!r}"
    if not 0 < wanted.count <= MOST_DEVICES:
        return f"expected at most {MOST_DEVICES} devices, found {wanted.count}"
    return ""


def names(class_askers: Sequence[Asker], ways: Ways, claims: Sequence[str]) -> Iterator[str]:
    """Yield the names of the pod's new claims, one for each request; claims: those that it has."""
    free = (name for number in count() if (name := f"{_OURS}{number}") not in claims)
    wanted = (want for asker in class_askers for want in asker.wants(ways))
    return (name for _, name in zip(wanted, free, strict=False))
