"""Gathers the facts about one NodeSet, from caches and readings of Slurm; it decides nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slurmoperator.nodesets.conf_trials import ConfTrial, ConfTrials
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.plan.look import (
    ConfInForce,
    NodeSetFacts,
    PodFacts,
    PreparationResult,
    pod_facts,
)
from slurmoperator.nodesets.preparation import KeySteps
from slurmoperator.nodesets.views import WorkerViews
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey, is_on_nodes
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube.cache import Cache
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.clock import Clock
from slurmruntime.values import faults

WorkerTemplates = Callable[[NodeSetObject, WorkerKey, int], Mapping[str, Any]]
"""Renders the pod of a worker with a version of the daemons' key, or raises a `faults.Refusal`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetCaches:
    """What is watched for NodeSets."""

    node_sets: Cache[WatchedNodeSet]
    pods: Cache[WorkerPodObject]
    kube_nodes: Cache[KubeNodeFacts]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSource:
    """What workers are made from."""

    templates: WorkerTemplates
    key_step: KeySteps
    tried: ConfTrials


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """What has to be known of a NodeSet before anything is prepared for it."""

    pods: tuple[PodFacts, ...]
    others: tuple[NodeSetObject, ...]
    """The other NodeSets of its Slurm, whose workers may have the same names."""
    trial: ConfTrial | None
    """Whether slurmctld accepts its `extraConf`; None if that has not been tried."""


class NodeSetGathering:
    """Gathers for one leader."""

    def __init__(
        self, *, caches: NodeSetCaches, views: WorkerViews, source: WorkerSource, clock: Clock
    ) -> None:
        node_sets, pods, self._kube_nodes = caches.node_sets, caches.pods, caches.kube_nodes
        self._views = views
        self._templates = source.templates
        self._tried = source.tried
        self._clock = clock
        self._by_owner = pods.index(lambda pod: [pod.metadata.controller_key])
        self._by_namespace = pods.index(lambda pod: [pod.metadata.namespace])
        self._by_mode = node_sets.index(
            lambda node_set: [node_set.parsed.spec.scaling_mode] if node_set.parsed else []
        )
        self._by_controller = node_sets.index(
            lambda node_set: [node_set.parsed.controller] if node_set.parsed else []
        )
        self._pods: dict[str, dict[str, PodFacts]] = {}
        """By the uids of NodeSets and pods, as of the last look."""

    def forget(self, uid: str) -> None:
        """Drop a NodeSet."""
        self._pods.pop(uid, None)
        self._tried.forget(uid)

    def has_pods(self, node_set: ObjectMetadata) -> bool:
        """Check whether a NodeSet owns pods."""
        return bool(self._by_owner.get(node_set.key_as_owner))

    def neighbours(self, node_set: NodeSetObject) -> Neighbours:
        """Return the pods that a NodeSet owns, and the other NodeSets of its Slurm."""
        uid, name = node_set.metadata.uid, node_set.metadata.name
        before = self._pods.get(uid, {})
        current = {}
        for pod in self._by_owner.get(node_set.metadata.key_as_owner):
            facts = before.get(pod.metadata.uid)
            if facts is None or facts.version is not pod:
                facts = pod_facts(name, pod)
            current[pod.metadata.uid] = facts
        self._pods[uid] = current
        others = (watched.parsed for watched in self._by_controller.get(node_set.controller))
        return Neighbours(
            pods=tuple(current.values()),
            others=tuple(other for other in others if other and other.metadata.uid != uid),
            trial=self._tried.of(node_set),
        )

    def uids_in_same_slurm(self, watched: WatchedNodeSet) -> list[str]:
        """Return the uids of the NodeSets of its Slurm, whose workers may have the same names."""
        node_set = watched.parsed
        others = self._by_controller.get(node_set.controller) if node_set else ()
        return [other.metadata.uid for other in others]

    def on_nodes(self, namespace: str = "") -> list[str]:
        """Return the uids of the NodeSets, of one namespace or all, that have one worker on each fitting Kubernetes node."""
        return [
            node_set.metadata.uid
            for node_set in self._by_mode.get("DaemonSet")
            if namespace in ("", node_set.metadata.namespace)
        ]

    def gather(
        self,
        conf: ConfInForce,
        neighbours: Neighbours,
        prepared: PreparationResult,
    ) -> NodeSetFacts:
        """Gather what the plan depends on, of a NodeSet whose neighbours were read just now."""
        node_set, pods = conf.node_set, neighbours.pods
        return NodeSetFacts(
            conf=conf,
            pods=pods,
            slurm=self._views.facts(node_set.controller, [pod.slurm_node for pod in pods]),
            kube_nodes=self._nodes(node_set, pods),
            unreadable_nodes=frozenset(self._kube_nodes.unreadable.values()),
            others=neighbours.others,
            hosts=self._hosts(node_set) if is_on_nodes(node_set) else {},
            prepared=prepared,
            template_fault=self._template_fault(node_set, pods, prepared),
            now=self._clock.now(),
        )

    def _nodes(
        self, node_set: NodeSetObject, pods: tuple[PodFacts, ...]
    ) -> dict[str, KubeNodeFacts]:
        if is_on_nodes(node_set):
            return {kube_node.name: kube_node for kube_node in self._kube_nodes.values()}
        pins = node_set.status.ordinal_to_node or {}
        names = {*(pod.kube_node for pod in pods), *pins.values()}
        nodes = (self._kube_nodes.get(name) for name in names)
        return {node.name: node for node in nodes if node is not None}

    def _hosts(self, node_set: NodeSetObject) -> dict[str, str]:
        meta = node_set.metadata
        hosts: dict[str, str] = {}
        for pod in self._by_namespace.get(meta.namespace):
            if pod.metadata.controller_uid == meta.uid:
                hosts.setdefault(pod.slurm_node, "")
            else:
                hosts[pod.slurm_node] = pod.metadata.name
        return hosts

    def _template_fault(
        self, node_set: NodeSetObject, pods: tuple[PodFacts, ...], prepared: PreparationResult
    ) -> str:
        """Render a pod, which takes long, only if there is one to replace."""
        if all(pod.revision == prepared.revision for pod in pods):
            return ""
        try:
            self._templates(node_set, 0, prepared.key_step)
        except faults.Refusal as error:
            return error.text
        return ""
