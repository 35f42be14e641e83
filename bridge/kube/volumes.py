"""Read claims, volumes and storage classes: where a pod's volumes let it run."""

from typing import TypeVar

import msgspec

from bridge.domain.model.volumes import ClaimFacts, Reach, StorageClass, VolumeClaim
from bridge.kube import decode, wire
from slurmruntime.kube import errors, meta, paths, resource
from slurmruntime.kube.client import KubeClient
from slurmruntime.model.affinity import NodeTerm, Requirement

T = TypeVar("T")

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

    All methods raise KubeError if an object could not be read.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def facts(self, namespace: str, name: str) -> ClaimFacts:
        """Return a claim with what limits its volume: where that can be used, or else its class."""
        where = paths.collection("v1", "persistentvolumeclaims", namespace) + paths.of(name)
        read = await self._get(_claims, f"claim {namespace}/{name}", where)
        if read is None:
            return ClaimFacts(name=name, claim=None)
        volume, storage_class = read.spec.volume_name, read.spec.storage_class_name
        claim = VolumeClaim(name=name, volume=volume, storage_class=storage_class)
        if volume:
            return ClaimFacts(name=name, claim=claim, reach=await self._reach(volume))
        return ClaimFacts(name=name, claim=claim, storage_class=await self._class(storage_class))

    async def _reach(self, volume: str) -> Reach:
        """Return from where a volume can be used; () means from anywhere, or that it does not exist."""
        where = paths.collection("v1", "persistentvolumes", "") + paths.of(volume)
        read = await self._get(_volumes, f"volume {volume}", where)
        affinity = read.spec.node_affinity if read else None
        terms = affinity.required.node_selector_terms if affinity and affinity.required else []
        return decode.node_terms(terms) if len(terms) <= _MOST_TERMS else ()

    async def _class(self, name: str) -> StorageClass | None:
        """Return a claim's class; a claim without a class waits for a manually created volume."""
        if not name:
            return StorageClass()
        where = paths.collection("storage.k8s.io/v1", "storageclasses", "") + paths.of(name)
        read = await self._get(_classes, f"storage class {name}", where)
        if read is None:
            return None
        topologies = read.allowed_topologies
        return StorageClass(
            waits_for_consumer=read.volume_binding_mode == "WaitForFirstConsumer",
            reach=tuple(map(_term, topologies)) if len(topologies) <= _MOST_TERMS else (),
        )

    async def _get(self, decoder: msgspec.json.Decoder[T], what: str, where: str) -> T | None:
        try:
            return resource.decoded(decoder, what, await self._client.request("GET", where))
        except errors.NotFound:
            return None


def _term(topology: _Topology) -> NodeTerm:
    return NodeTerm(
        match_labels=tuple(
            Requirement(key=expression.key, operator="In", values=expression.values)
            for expression in topology.match_label_expressions
        )
    )
