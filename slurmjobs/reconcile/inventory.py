"""Apply `slurm-config` to the nodes, centrally: Sylabs' resource daemon did it on each node.

`slurmjobs.sylabs.inventory` decides. Nothing runs on the nodes for it, and nothing is written to their disks.
"""

import asyncio
from contextlib import suppress
from typing import Final, TypeVar

import msgspec
import structlog

from bridge.reconcile.program import Program
from slurmjobs.sylabs import inventory, slurm_config
from slurmjobs.sylabs.inventory import PREFIX, InventoryNode, Label, Measure
from slurmjobs.sylabs.slurm_config import SlurmConfig
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import STRATEGIC_MERGE_PATCH
from slurmruntime.kube.resource import Json, ResourceKind
from slurmruntime.kube.watch import Reflector
from slurmruntime.process import liveness
from slurmruntime.process.clock import pause
from slurmruntime.process.events import EventType
from slurmruntime.process.lifetime import Service
from slurmruntime.values import names
from slurmruntime.values.faults import shortened
from slurmruntime.values.oddities import About

CONFIG_MAP: Final = "slurm-config"
NAMESPACE: Final = "default"
"""Where Sylabs' own manifests create it."""
_KEY: Final = "config"
_PASS_S: Final = 60.0
"""Time between passes over all nodes without an event: failed writes are retried."""
_SHORTEST_S: Final = 1.0
_MOST_STEPS: Final = 3

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class _NodeStatus(ObjectStruct, frozen=True):
    capacity: dict[str, str] = msgspec.field(default_factory=dict)


class _Node(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    status: _NodeStatus = _NodeStatus()


class _ConfigMap(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    data: dict[str, str] | None = None


_nodes: Final = msgspec.json.Decoder(_Node)
_config_maps: Final = msgspec.json.Decoder(_ConfigMap)


def _read_node(body: Json) -> InventoryNode:
    node = resource.decoded(_nodes, "Node", body)
    meta = node.metadata
    return InventoryNode(
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        labels=_with_prefix(meta.labels),
        capacity=_with_prefix(node.status.capacity),
        written=meta.annotations.get(names.INVENTORY_ANNOTATION, ""),
    )


def _with_prefix(values: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in values.items() if name.startswith(PREFIX)}


def _read_config_map(body: Json) -> _ConfigMap:
    return resource.decoded(_config_maps, "ConfigMap", body)


_NODES: Final = ResourceKind(
    path=paths.collection("v1", "nodes"),
    read=_read_node,
    identify=lambda node: (node.name, node.resource_version, node.name),
)


class NodeInventory:
    """Applies `slurm-config` to the nodes; in every process, but writes only while it leads."""

    def __init__(self, program: Program) -> None:
        settings = program.settings
        self._program = program
        self._ours = inventory.hosts(
            (*settings.slurm.url, *settings.slurm.controller_host, *settings.sylabs.addresses)
        )
        configs = ResourceKind(
            path=paths.collection("v1", "configmaps", NAMESPACE),
            read=_read_config_map,
            identify=lambda it: (it.metadata.name, it.metadata.resource_version, it.metadata.name),
        )
        self._nodes: Cache[InventoryNode] = Cache(_NODES, program.set_aside)
        self._configs: Cache[_ConfigMap] = Cache(configs, program.set_aside)
        self._changed = asyncio.Event()
        self._nodes.subscribe(lambda _old, _new: self._changed.set())
        self._configs.subscribe(lambda _old, _new: self._changed.set())
        self._read_version = ""
        self._config = SlurmConfig()
        self._reported: dict[str, str] = {}

    def parts(self) -> tuple[Service, ...]:
        """Return the services of every replica: the two watches."""
        return (
            self._watch("nodes for slurm-config", self._nodes),
            self._watch("slurm-config", self._configs, f"metadata.name={CONFIG_MAP}"),
        )

    async def control(self, stop: asyncio.Event) -> None:
        """Keep the nodes up to date while this process leads."""
        self._reported.clear()
        await liveness.run("node inventory", self._forever(stop), stop)

    def _watch(self, name: str, cache: Cache[T], selector: str = "") -> Service:
        reflector = Reflector(
            self._program.kube,
            cache,
            field_selector=selector,
            set_aside=self._program.set_aside,
            jitter=self._program.rng.random,
            on_turn=liveness.turned,
        )

        async def run(stop: asyncio.Event) -> None:
            with liveness.loop(f"watch of {name}"):
                await reflector.run(stop)

        return Service(name=name, run=run)

    async def _forever(self, stop: asyncio.Event) -> None:
        while True:
            liveness.turned()
            if self._nodes.synced.is_set() and self._configs.synced.is_set():
                self._changed.clear()
                await self._update_nodes()
                liveness.turned(rests_s=_PASS_S)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), _PASS_S)
            await pause(_SHORTEST_S, stop)

    async def _update_nodes(self) -> None:
        """Update every node that has an entry or something that we wrote."""
        config_map = self._configs.get(CONFIG_MAP)
        config = await self._read(config_map)
        if config_map is not None and config.fault:
            meta = config_map.metadata
            about = About(kind="ConfigMap", namespace=meta.namespace, name=meta.name, uid=meta.uid)
            await self._report(about, f"data[{_KEY}]: {config.fault}")
        for node in self._nodes.values():
            entry = config.nodes.get(node.name)
            if entry is None and (not node.written or config.fault):
                continue  # an unreadable config proves nothing
            liveness.turned()
            about = About(kind="Node", name=node.name, uid=node.uid)
            await self._report(about, inventory.complaint(entry, self._ours) if entry else "")
            try:
                await self._update_node(node, inventory.desired(entry, self._ours))
            except errors.KubeError as error:
                _log.warning("inventory.not_written", node=node.name, error=str(error))

    async def _read(self, config_map: _ConfigMap | None) -> SlurmConfig:
        version = config_map.metadata.resource_version if config_map else ""
        if version != self._read_version or not version:
            text = (config_map.data or {}).get(_KEY, "") if config_map else ""
            self._config = await asyncio.to_thread(slurm_config.read, text)
            self._read_version = version
        return self._config

    async def _update_node(self, node: InventoryNode, desired: inventory.Inventory) -> None:
        for _ in range(_MOST_STEPS):
            action = inventory.step(node, desired)
            if action is None:
                return
            after = await self._write(node, action)
            self._nodes.observe(after, base=node.resource_version)
            node = after

    async def _write(self, node: InventoryNode, action: Label | Measure) -> InventoryNode:
        path = paths.of("api", "v1", "nodes", node.name)
        guard: dict[str, object] = {"uid": node.uid}  # exactly this node
        body = {"metadata": guard}
        if isinstance(action, Measure):
            path += "/status"
            body["status"] = {"capacity": action.capacity}
        else:
            body["metadata"] |= {
                "labels": action.labels,
                "annotations": {names.INVENTORY_ANNOTATION: action.written},
            }
        _log.info("inventory.written", node=node.name, wrote=type(action).__name__)
        kube = self._program.kube
        return _read_node(
            await kube.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)
        )

    async def _report(self, about: About, text: str) -> None:
        """Create an Event, once for each text while this process leads."""
        key = f"{about.kind} {about.name} {about.uid}"
        before = self._reported.get(key, "")
        self._reported[key] = text
        if not text or text == before:
            return
        _log.warning("inventory.odd", about=about.full_name, text=shortened(text, 500))
        await self._program.events.record(
            about,
            EventType.WARNING,
            action="WriteInventory",
            reason="SlurmConfig",
            note=text,
        )
