"""Read claims, volumes and storage classes: where a pod's volumes let it run."""

import msgspec

from bridge.domain.model.volumes import Reach, StorageClass, VolumeClaim
from bridge.kube import decode, wire
from slurmruntime.kube import meta, paths, resource
from slurmruntime.kube.client import KubeClient
from slurmruntime.model.affinity import NodeTerm, Requirement

_MOST_TERMS = 64
"""Alternatives of one volume; if there are more, kube-scheduler decides alone."""


class _ClaimSpec(meta.Struct):
    volume_name: str = ""
    storage_class_name: str = ""


class _Claim(meta.Struct):
    spec: _ClaimSpec = msgspec.field(default_factory=_ClaimSpec)


class _NodeAffinity(meta.Struct):
    required: wire.NodeSelector | None = None


class _VolumeSpec(meta.Struct):
    node_affinity: _NodeAffinity | None = None


class _Volume(meta.Struct):
    spec: _VolumeSpec = msgspec.field(default_factory=_VolumeSpec)


class _LabelExpression(meta.Struct):
    key: str = ""
    values: tuple[str, ...] = ()


class _Topology(meta.Struct):
    match_label_expressions: tuple[_LabelExpression, ...] = ()


class _Class(meta.Struct):
    volume_binding_mode: str = ""
    allowed_topologies: tuple[_Topology, ...] = ()


_claims = msgspec.json.Decoder(_Claim)
_volumes = msgspec.json.Decoder(_Volume)
_classes = msgspec.json.Decoder(_Class)


class Volumes:
    """Reads one object at a time; nothing is watched, as few pods have claims.

    All methods raise NotFound if there is no object of that name, another KubeError if it could
    not be read.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def claim(self, namespace: str, name: str) -> VolumeClaim:
        """Return a claim."""
        where = paths.collection("v1", "persistentvolumeclaims", namespace) + paths.of(name)
        body = await self._client.request("GET", where)
        spec = resource.decoded(_claims, f"claim {namespace}/{name}", body).spec
        return VolumeClaim(
            name=name, volume=spec.volume_name, storage_class=spec.storage_class_name
        )

    async def reach(self, volume: str) -> Reach:
        """Return from where a volume can be used; () means from anywhere."""
        where = paths.collection("v1", "persistentvolumes", "") + paths.of(volume)
        body = await self._client.request("GET", where)
        affinity = resource.decoded(_volumes, f"volume {volume}", body).spec.node_affinity
        terms = affinity.required.node_selector_terms if affinity and affinity.required else []
        return decode.node_terms(terms) if len(terms) <= _MOST_TERMS else ()

    async def storage_class(self, name: str) -> StorageClass:
        """Return a storage class."""
        where = paths.collection("storage.k8s.io/v1", "storageclasses", "") + paths.of(name)
        body = await self._client.request("GET", where)
        storage_class = resource.decoded(_classes, f"storage class {name}", body)
        topologies = storage_class.allowed_topologies
        return StorageClass(
            waits_for_consumer=storage_class.volume_binding_mode == "WaitForFirstConsumer",
            reach=tuple(map(_term, topologies)) if len(topologies) <= _MOST_TERMS else (),
        )


def _term(topology: _Topology) -> NodeTerm:
    return NodeTerm(
        match_labels=tuple(
            Requirement(key=expression.key, operator="In", values=expression.values)
            for expression in topology.match_label_expressions
        )
    )
