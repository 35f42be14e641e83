"""Read ResourceSlices: `resource.k8s.io/v1`, the devices that drivers publish."""

from collections.abc import Iterable

import msgspec

from bridge.domain.model.claims.values import Device, DeviceId, ResourceSlice
from bridge.kube.claims.resource_claims import API
from slurmruntime.kube import meta, paths, resource
from slurmruntime.kube.resource import Json, ObjectVersion, ResourceKind

_MOST_DEVICES = 2048
"""Devices read of one slice; Kubernetes allows 128."""


class _Attribute(meta.Struct):
    string: str | None = None
    number: int | None = msgspec.field(name="int", default=None)
    truth: bool | None = msgspec.field(name="bool", default=None)
    version: str | None = None


class _Device(meta.Struct):
    name: str = ""
    attributes: dict[str, _Attribute] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[msgspec.Raw, ...] = ()
    taints: tuple[msgspec.Raw, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Check whether it can be allocated alone: it shares nothing with other devices and has no taints."""
        return not self.consumes_counters and not self.taints


class _Pool(meta.Struct):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class _SliceSpec(meta.Struct):
    driver: str = ""
    pool: _Pool = msgspec.field(default_factory=_Pool)
    node_name: str = ""
    devices: tuple[_Device, ...] = ()


class _Slice(meta.Struct):
    metadata: meta.Metadata
    spec: _SliceSpec = msgspec.field(default_factory=_SliceSpec)


_slices = msgspec.json.Decoder(_Slice)


def resource_slice(body: Json) -> ResourceSlice:
    """Decode a ResourceSlice."""
    wired = resource.decoded(_slices, "ResourceSlice", body)
    spec = wired.spec
    return ResourceSlice(
        name=wired.metadata.name,
        resource_version=wired.metadata.resource_version,
        node=spec.node_name,
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        of=spec.pool.resource_slice_count,
        devices=tuple(
            _device(device, spec) for device in spec.devices[:_MOST_DEVICES] if device.is_whole
        ),
    )


SLICES = ResourceKind(
    path=paths.collection(API, "resourceslices"),
    read=resource_slice,
    identify=lambda s: ObjectVersion(s.name, s.resource_version, s.name),
)


def _device(device: _Device, spec: _SliceSpec) -> Device:
    attributes = {
        name if "/" in name else f"{spec.driver}/{name}": value
        for name, attribute in device.attributes.items()
        if (value := _value(attribute)) is not None
    }
    return Device(id=DeviceId(spec.driver, spec.pool.name, device.name), attributes=attributes)


def _value(attribute: _Attribute) -> str | int | bool | None:
    values: Iterable[str | int | bool | None] = (
        attribute.string,
        attribute.number,
        attribute.truth,
    )
    return next((value for value in values if value is not None), attribute.version)
