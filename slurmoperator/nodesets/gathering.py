"""Gathers the facts about one NodeSet, from caches and readings of Slurm; it decides nothing."""

from dataclasses import dataclass

from slurmoperator.nodesets.conf_trials import ConfTrials
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.plan.look import NodeSetReadings, PodFacts, pod_facts
from slurmoperator.nodesets.views import WorkerViews
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import is_on_nodes
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube.cache import Cache
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetCaches:
    """What is watched for NodeSets."""

    node_sets: Cache[WatchedNodeSet]
    pods: Cache[WorkerPodObject]
    kube_nodes: Cache[KubeNodeFacts]


class NodeSetGathering:
    """Gathers for one leader."""

    def __init__(
        self, *, caches: NodeSetCaches, views: WorkerViews, tried: ConfTrials, clock: Clock
    ) -> None:
        node_sets, pods, self._kube_nodes = caches.node_sets, caches.pods, caches.kube_nodes
        self._views = views
        self._tried = tried
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

    def gather(self, node_set: NodeSetObject) -> NodeSetReadings:
        """Read what the plan for a NodeSet depends on."""
        pods, uid = self._own_pods(node_set.metadata), node_set.metadata.uid
        others = (watched.parsed for watched in self._by_controller.get(node_set.controller))
        return NodeSetReadings(
            pods=pods,
            slurm=self._views.facts(node_set.controller, [pod.slurm_node for pod in pods]),
            kube_nodes=self._nodes(node_set, pods),
            unreadable_nodes=frozenset(self._kube_nodes.unreadable.values()),
            others=tuple(other for other in others if other and other.metadata.uid != uid),
            hosts=self._hosts(node_set) if is_on_nodes(node_set) else {},
            trial=self._tried.of(node_set),
            now=self._clock.now(),
        )

    def _own_pods(self, node_set: ObjectMetadata) -> tuple[PodFacts, ...]:
        before = self._pods.get(node_set.uid, {})
        current = {}
        for pod in self._by_owner.get(node_set.key_as_owner):
            facts = before.get(pod.metadata.uid)
            if facts is None or facts.version is not pod:
                facts = pod_facts(node_set.name, pod)
            current[pod.metadata.uid] = facts
        self._pods[node_set.uid] = current
        return tuple(current.values())

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
