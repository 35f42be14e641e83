"""Read and write resource claims: `resource.k8s.io/v1`."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

import msgspec

from bridge.domain.model.claims import giving
from bridge.domain.model.claims.giving import Gift
from bridge.domain.model.claims.values import (
    ClaimSpec,
    DeviceClass,
    DeviceId,
    DeviceRequest,
    ResourceClaim,
)
from bridge.domain.model.pods import Pod
from bridge.kube import wire
from bridge.kube.claims import bodies
from slurmruntime.kube import errors, lists, meta, paths, resource
from slurmruntime.kube.client import APPLY, JSON_PATCH, KubeClient
from slurmruntime.kube.resource import Json, ObjectVersion, ResourceKind
from slurmruntime.model import json_patch
from slurmruntime.model.json_patch import Operation
from slurmruntime.values.ids import KubeNode, PodUid

API = "resource.k8s.io/v1"
_EXACT = "ExactCount"
_MADE_FOR_ENTRY = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim that the resource claim controller made from a template."""
_MANAGER = "slurm-bridge-claims"
"""The field manager of the names of claims."""

_MOST_CONFIGS = 32
_MOST_REQUESTS = 64
"""Requests that are read of a claim; Kubernetes allows 32."""
_LONGEST_CONFIG = 2**14
"""Bytes. Kubernetes itself allows 32 parameters for drivers, of 10 KiB each."""


class _Exactly(meta.Struct):
    device_class_name: str = ""
    selectors: tuple[msgspec.Raw, ...] = ()
    allocation_mode: str = _EXACT
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[msgspec.Raw, ...] = ()
    capacity: msgspec.Raw = msgspec.Raw()


class _Request(meta.Struct):
    name: str = ""
    exactly: _Exactly | None = None
    first_available: tuple[msgspec.Raw, ...] = ()


class _Devices(meta.Struct):
    requests: tuple[_Request, ...] = ()
    constraints: tuple[msgspec.Raw, ...] = ()
    config: tuple[msgspec.Raw, ...] = ()


class _ClaimSpec(meta.Struct):
    devices: _Devices = msgspec.field(default_factory=_Devices)


class _Result(meta.Struct):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    """True for maintenance of a device that others use: such a request takes no device."""


class _Results(meta.Struct):
    results: tuple[_Result, ...] = ()


class _Allocation(meta.Struct):
    devices: _Results = msgspec.field(default_factory=_Results)
    node_selector: wire.NodeSelector | None = None


class _Consumer(meta.Struct):
    uid: str = ""


class _ClaimStatus(meta.Struct):
    allocation: _Allocation | None = None
    reserved_for: tuple[_Consumer, ...] = ()


class _ClaimWithoutSpec(meta.Struct):
    metadata: meta.Metadata
    status: _ClaimStatus = msgspec.field(default_factory=_ClaimStatus)


class _Claim(_ClaimWithoutSpec):
    spec: _ClaimSpec = msgspec.field(default_factory=_ClaimSpec)


class _Cel(meta.Struct):
    expression: str = ""


class _Selector(meta.Struct):
    cel: _Cel | None = None


class _ClassSpec(meta.Struct):
    selectors: tuple[_Selector, ...] = ()
    extended_resource_name: str = ""
    config: tuple[msgspec.Raw, ...] = ()


class _Class(meta.Struct):
    metadata: meta.Metadata
    spec: _ClassSpec = msgspec.field(default_factory=_ClassSpec)


_taken = msgspec.json.Decoder(_ClaimWithoutSpec)
_claims = msgspec.json.Decoder(_Claim)
_parameters = msgspec.json.Decoder(dict[str, object])
_specs = msgspec.json.Decoder(_ClaimSpec)
_classes = msgspec.json.Decoder(_Class)


def claim(body: Json) -> ResourceClaim:
    """Decode a claim."""
    wired = resource.decoded(_claims, "ResourceClaim", body)
    return replace(
        _status(wired), spec=_spec(wired.spec), finalizers=tuple(wired.metadata.finalizers)
    )


def claim_spec(body: Json) -> ClaimSpec:
    """Decode the spec of a claim or of a template."""
    return _spec(resource.decoded(_specs, "spec of a ResourceClaim", body))


def device_class(body: Json) -> DeviceClass:
    """Decode a DeviceClass."""
    wired = resource.decoded(_classes, "DeviceClass", body)
    # A selector without CEL is of a kind we do not know; no profile is written "".
    expressions = (
        selector.cel.expression if selector.cel else "" for selector in wired.spec.selectors
    )
    return DeviceClass(
        name=wired.metadata.name,
        resource_version=wired.metadata.resource_version,
        selectors=tuple(expressions),
        resource=wired.spec.extended_resource_name,
        config=_config(wired.spec.config, "spec.config"),
    )


def for_cache(body: Json) -> ResourceClaim:
    """Decode what a cache stores of a claim; if its requests cannot be read, only what it was given."""
    try:
        return claim(body).for_cache
    except errors.Malformed:
        return taken(body)


def taken(body: Json) -> ResourceClaim:
    """Decode what a claim was given, without its requests."""
    return _status(resource.decoded(_taken, "ResourceClaim", body)).without_spec


def _status(wired: _ClaimWithoutSpec) -> ResourceClaim:
    meta, allocation = wired.metadata, wired.status.allocation
    results = allocation.devices.results if allocation else ()
    return ResourceClaim(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        resource_version=meta.resource_version,
        is_allocated=allocation is not None,
        devices=tuple(
            DeviceId(result.driver, result.pool, result.device)
            for result in results
            if not result.admin_access
        ),
        node=_node(allocation.node_selector if allocation else None),
        reserved_for=tuple(consumer.uid for consumer in wired.status.reserved_for),
        made_for=_made_for(meta),
    )


def _made_for(meta: meta.Metadata) -> tuple[str, str]:
    entry = meta.annotations.get(_MADE_FOR_ENTRY, "")
    uids = [
        owner_reference.uid
        for owner_reference in resource.owners(meta)
        if owner_reference.controller and owner_reference.kind == "Pod"
    ]
    return (uids[0], entry) if uids and entry else ("", "")


CLAIMS = ResourceKind(
    path=paths.collection(API, "resourceclaims"),
    read=for_cache,
    identify=lambda c: ObjectVersion(c.uid, c.resource_version, f"{c.namespace}/{c.name}"),
)
"""All claims, by uid: their devices are taken. Their requests are stored only while they wait."""


CLASSES = ResourceKind(
    path=paths.collection(API, "deviceclasses"),
    read=device_class,
    identify=lambda c: ObjectVersion(c.name, c.resource_version, c.name),
)


class ResourceClaims:
    """Reads claims and classes from the API server, never from a cache, and writes claims.

    All methods may raise KubeError. Reading raises NotFound if there is none of that name;
    writing raises Conflict if the claim has changed, or NotFound if it is gone.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        """Return a claim."""
        return claim(await self._client.request("GET", _path(namespace, name)))

    async def all(self) -> list[ResourceClaim]:
        """Return all claims of the cluster that can be decoded; may raise KubeError."""
        return await lists.readable(self._client, CLAIMS)

    async def device_class(self, name: str) -> DeviceClass:
        """Return a class."""
        where = paths.collection(API, "deviceclasses") + paths.of(name)
        return device_class(await self._client.request("GET", where))

    async def protect(self, claim: ResourceClaim) -> ResourceClaim:
        """Put our finalizer on a claim: without it, its devices might never be released."""
        if giving.is_protected(claim):
            return claim
        finalizers = "/metadata/finalizers"
        add = json_patch.append(finalizers, giving.FINALIZER, to=claim.finalizers)
        return await self._patch(claim, "", add)

    async def give(
        self,
        gift: Gift,
        classes: Mapping[str, DeviceClass],
        *,
        node: KubeNode,
        pod: PodUid,
        pod_name: str,
        at: datetime,
    ) -> ResourceClaim:
        """Write what a claim was given and for which pod, in one write.

        So it is at no moment allocated and reserved for no pod: the resource claim controller
        releases a claim when its last pod is gone, and only then.

        Raises:
            Conflict: the claim has changed.
            NotFound: it is gone.
        """
        status = {
            "allocation": bodies.allocation(gift, classes, node, at),
            "reservedFor": [{"resource": "pods", "name": pod_name, "uid": pod}],
        }
        return await self._patch(gift.claim, "/status", json_patch.add("/status", status))

    async def take_back(self, claim: ResourceClaim) -> ResourceClaim:
        """Clear what a claim of a pod that has not started got for an earlier job."""
        return await self._patch(claim, "/status", json_patch.add("/status", {}))

    async def name(self, pod: Pod, names: Mapping[str, str]) -> None:
        """Write the claim of each entry with a template, as the resource claim controller does.

        This is a server-side apply: names that another manager has applied as well stay when the
        controller leaves them out.

        Raises:
            Conflict: another pod has its name.
            NotFound: it is gone.
        """
        await self._client.request(
            "PATCH",
            f"{paths.pod(pod.namespace, pod.name)}/status",
            body=bodies.named(pod, names),
            content_type=APPLY,
            params={"fieldManager": _MANAGER, "force": "true"},
        )

    async def _patch(self, before: ResourceClaim, sub: str, change: Operation) -> ResourceClaim:
        body = [*json_patch.unchanged(before.uid, before.resource_version), change]
        where = _path(before.namespace, before.name) + sub
        return claim(await self._client.request("PATCH", where, body=body, content_type=JSON_PATCH))


def _path(namespace: str, name: str) -> str:
    return paths.collection(API, "resourceclaims", namespace) + paths.of(name)


def _spec(spec: _ClaimSpec) -> ClaimSpec:
    devices = spec.devices
    return ClaimSpec(
        requests=tuple(map(_request, devices.requests[:_MOST_REQUESTS])),
        constraints=len(devices.constraints),
        config=_config(devices.config, "spec.devices.config"),
    )


def _config(configs: tuple[msgspec.Raw, ...], where: str) -> tuple[dict[str, object], ...]:
    """Read parameters for drivers, which are passed on unchanged.

    Raises Malformed if there are more, or larger ones, than Kubernetes allows.
    """
    if len(configs) > _MOST_CONFIGS or any(len(bytes(raw)) > _LONGEST_CONFIG for raw in configs):
        words = f"expected at most {_MOST_CONFIGS} parameters of {_LONGEST_CONFIG} bytes"
        raise resource.malformed(where, ValueError(words))
    return tuple(resource.decoded(_parameters, where, raw) for raw in configs)


def _request(request: _Request) -> DeviceRequest:
    exactly = request.exactly
    if exactly is None:
        return DeviceRequest(name=request.name, unusable=("firstAvailable",))
    set_fields = {
        "adminAccess": bool(exactly.admin_access),
        "allocationMode": exactly.allocation_mode != _EXACT,
        "capacity": bytes(exactly.capacity) not in (b"", b"null"),
        "selectors": bool(exactly.selectors),
        "tolerations": bool(exactly.tolerations),
    }
    return DeviceRequest(
        name=request.name,
        device_class=exactly.device_class_name,
        count=exactly.count or 1,
        unusable=tuple(f"exactly.{name}" for name, is_set in set_fields.items() if is_set),
    )


def _node(selector: wire.NodeSelector | None) -> str:
    terms = tuple(selector.node_selector_terms) if selector else ()
    named = [
        field.values
        for term in terms
        for field in term.match_fields or ()
        if field.key == "metadata.name" and field.operator == "In"
    ]
    return named[0][0] if len(terms) == len(named) == 1 and len(named[0]) == 1 else ""
