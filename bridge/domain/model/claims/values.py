"""Resource claims and devices as values: `resource.k8s.io/v1`, as far as Slurm is asked for them.

Source: <https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/>.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

Config = Mapping[str, object]
"""Parameters for a driver, which we hand on and do not read."""

_MOST_CACHED = 4
"""The most requests, and finalizers, of a claim that is cached completely; hardly any has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaim:
    """An entry of a pod's `spec.resourceClaims`."""

    entry: str
    """Its name in the pod."""
    claim: str = ""
    """The claim it names, or the one generated for it; "" while there is none yet."""
    template: str = ""
    """The template that its own claim is made from; "" if it names a claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """One request of a claim."""

    name: str
    device_class: str = ""
    count: int = 1
    unusable: tuple[str, ...] = ()
    """Fields below `spec.devices` that it sets and Slurm cannot honour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSpec:
    """What a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: int = 0
    config: tuple[Config, ...] = ()
    unreadable: str = ""
    """Why it could not be read; "" if it could."""


@dataclass(frozen=True, slots=True, order=True)
class DeviceId:
    """A device's name in the whole cluster."""

    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceClaim:
    """A claim and its allocation."""

    uid: str
    namespace: str
    name: str
    resource_version: str = ""
    spec: ClaimSpec = field(default_factory=ClaimSpec)
    finalizers: tuple[str, ...] = ()
    is_allocated: bool = False
    devices: tuple[DeviceId, ...] = ()
    node: str = ""
    """The only node from which its devices can be used; "" if there may be several."""
    reserved_for: tuple[str, ...] = ()
    """The uids of the pods that use it."""
    made_for: tuple[str, str] = ("", "")
    """The pod's uid and the entry of its `spec.resourceClaims`, if Kubernetes made it from a template."""
    has_spec: bool = True
    """False: what it asks for was left out, and its finalizers."""

    @property
    def without_spec(self) -> "ResourceClaim":
        """Return it without spec and finalizers, which may be large."""
        return replace(self, spec=ClaimSpec(), finalizers=(), has_spec=False)

    @property
    def for_cache(self) -> "ResourceClaim":
        """Return the form to cache: with the spec only while it waits for devices, and only if that is small."""
        is_small = (
            not self.spec.config
            and not self.spec.unreadable
            and len(self.spec.requests) <= _MOST_CACHED
            and len(self.finalizers) <= _MOST_CACHED
        )
        return self if is_small and not self.is_allocated else self.without_spec

    def is_allocated_to(self, pod: str, node: str) -> bool:
        """Check whether it has its devices on a node, for this pod alone; pod: its uid."""
        return self.is_allocated and self.node == node and self.reserved_for == (pod,)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A DeviceClass."""

    name: str
    resource_version: str = ""
    selectors: tuple[str, ...] = ()
    """CEL expressions, all of which hold."""
    resource: str = ""
    """The `extendedResourceName` by which kube-scheduler lets pods ask for its devices."""
    config: tuple[Config, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device of a ResourceSlice."""

    id: DeviceId
    attributes: Mapping[str, str | int | bool] = field(default_factory=dict)
    """By qualified name: `gpu.example.com/model`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSlice:
    """Part of a pool of devices that belong to one node."""

    name: str
    resource_version: str = ""
    node: str = ""
    """"" if its devices do not belong to a single node."""
    driver: str
    pool: str
    generation: int = 0
    of: int = 1
    """How many slices the pool has in this generation."""
    devices: tuple[Device, ...] = ()
