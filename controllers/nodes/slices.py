"""Counts the devices of nodes in ResourceSlices, in addition to those of device plugins."""

from collections.abc import Callable
from dataclasses import replace

from bridge.domain.model.claims import inventory, profiles
from bridge.domain.model.claims.profiles import Profiles
from bridge.domain.model.claims.values import ResourceSlice
from slurmruntime.kube.cache import Cache
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values.ids import KubeNode


class Slices:
    """The devices that drivers publish, by node."""

    def __init__(self, slices: Cache[ResourceSlice], device_profiles: Profiles) -> None:
        self._slices = slices
        self._on = slices.index(lambda slice_: [slice_.node] if slice_.node else [])
        self._profiles = device_profiles

    def counted(self, node: KubeNodeFacts) -> KubeNodeFacts:
        """Add a node's devices to its allocatable resources, under their profiles' names."""
        if not self._profiles:
            return node
        present = inventory.of_node(self._on.get(node.name), self._profiles)
        counts = {
            profiles.COUNTED + gres: count for gres, count in inventory.counts(present).items()
        }
        extended = {**node.allocatable.extended, **counts}
        return replace(node, allocatable=replace(node.allocatable, extended=extended))

    def on_change(self, callback: Callable[[KubeNode], None]) -> None:
        """Call back with a node whenever its slices change."""

        def changed(old: ResourceSlice | None, new: ResourceSlice | None) -> None:
            for slice_ in (old, new):
                if slice_ is not None and slice_.node:
                    callback(KubeNode(slice_.node))

        self._slices.subscribe(changed)
