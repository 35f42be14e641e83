"""Gathers the input of a decision about one NodeSet, from caches and readings of Slurm."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from slurmoperator.nodesets import names, planning
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.owned.conf_trials import ConfTrials
from slurmoperator.nodesets.planning import NodeSetSituation
from slurmoperator.nodesets.slurm_view import Interest
from slurmoperator.nodesets.status import Refusal
from slurmoperator.nodesets.views import WorkerViews
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.placing import NodeConstraints
from slurmoperator.objects.placing import placing as read_placing
from slurmoperator.objects.workers import OnNode, WorkerKey, age, is_on_nodes, namesakes
from slurmoperator.rendering.node_sets.worker import worker_tolerations
from slurmoperator.workers import placing, pruning
from slurmoperator.workers.placing import NodePlan
from slurmoperator.workers.situation import WorkerObservation
from slurmruntime.kube.cache import Cache
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.process.clock import Clock
from slurmruntime.values.faults import Refused
from slurmruntime.values.ids import SlurmNode
from slurmruntime.values.names import TOPOLOGY_ANNOTATION

WorkerTemplates = Callable[[NodeSetObject, WorkerKey, int], Mapping[str, Any] | Refused]
"""Renders the pod of a worker with a version of the daemons' key, or returns why it cannot."""
KeySteps = Callable[[NodeSetObject], int]
"""Returns the version of the daemons' key that new workers get: see `slurmoperator.keys.rings`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetCaches:
    """What is watched for NodeSets."""

    node_sets: Cache[WatchedNodeSet]
    pods: Cache[WorkerPodObject]
    kube_nodes: Cache[KubeNodeFacts]

    async def synced(self) -> None:
        """Wait until all are complete."""
        await self.node_sets.synced.wait()
        await self.pods.synced.wait()
        await self.kube_nodes.synced.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSource:
    """What workers are made from."""

    templates: WorkerTemplates
    key_step: KeySteps
    tried: ConfTrials


_UNSURE: Final = WorkerObservation(is_sure=False)


class NodeSetGathering:
    """Gathers for one leader."""

    def __init__(
        self, *, caches: NodeSetCaches, views: WorkerViews, templates: WorkerTemplates, clock: Clock
    ) -> None:
        node_sets, pods, self._kube_nodes = caches.node_sets, caches.pods, caches.kube_nodes
        self._views = views
        self._templates = templates
        self._clock = clock
        self._by_owner = pods.index(lambda pod: [pod.metadata.controller_uid])
        self._by_mode = node_sets.index(
            lambda node_set: [node_set.parsed.spec.scaling_mode] if node_set.parsed else []
        )
        self._by_controller = node_sets.index(
            lambda node_set: [node_set.parsed.controller] if node_set.parsed else []
        )
        self._by_host = pods.index(lambda pod: [f"{pod.metadata.namespace}/{pod.slurm_node}"])

    def pods(self, uid: str) -> tuple[WorkerPodObject, ...]:
        """Return the pods that a NodeSet owns."""
        return tuple(self._by_owner.get(uid))

    def uids_in_same_slurm(self, watched: WatchedNodeSet) -> list[str]:
        """Return the uids of the NodeSets of its Slurm, whose workers may have the same names."""
        node_set = watched.parsed
        others = self._by_controller.get(node_set.controller) if node_set else ()
        return [other.metadata.uid for other in others]

    def situation(
        self,
        node_set: NodeSetObject,
        pods: tuple[WorkerPodObject, ...],
        *,
        revision: str,
        key_step: int,
        may_replace: bool,
    ) -> NodeSetSituation:
        """Gather the situation, and register with the view what matters from now on.

        Args:
            pods: all pods that it owns.
            revision: the hash of its template.
            key_step: the version of the daemons' key, which is part of the revision.
            may_replace: as far as is known, pods can be made from its template.
        """
        situation = NodeSetSituation(
            node_set=node_set,
            pods=pods,
            seen=lambda _: _UNSURE,
            cordons={pod.kube_node: why for pod in pods if (why := self._cordon(pod.kube_node))},
            revision=revision,
            key_step=key_step,
            on_nodes=self._plan_nodes(node_set, pods),
            may_replace=may_replace,
            in_window=self._in_window(node_set),
            has_node=self._has_node,
            now=self._clock.now(),
        )
        if planning.is_outdated(situation) and isinstance(
            self._templates(node_set, 0, key_step), Refused
        ):
            situation = replace(situation, may_replace=False)
        view = self._views.of(node_set.controller)
        jobs = planning.needs_jobs(situation, self.states(node_set))
        interest = Interest(nodes=frozenset(pod.slurm_node for pod in pods), jobs=jobs)
        self._views.follow(node_set.controller, node_set.metadata.uid, interest)
        if view is None:
            return situation
        return replace(
            situation, seen=lambda node: view.seen(node, jobs=jobs), free_at=view.free_at
        )

    def _in_window(self, node_set: NodeSetObject) -> Callable[[str], bool]:
        """Return a function that checks whether a Slurm node is in the reservation, if it has to be."""
        if planning.strategy(node_set) != "ScheduledUpdate":
            return lambda _: True
        listed, name = self.listed(node_set), names.reservation(node_set.metadata.name)

        def is_in(node: str) -> bool:
            slurm_node = listed(node) if listed is not None else None
            return slurm_node is not None and slurm_node.reservation == name

        return is_in

    def states(self, node_set: NodeSetObject) -> Callable[[str], frozenset[str] | None]:
        """Return a function that returns a node's states in the last reading."""
        view = self._views.of(node_set.controller)
        return view.states if view is not None else lambda _: None

    def listed(self, node_set: NodeSetObject) -> Callable[[str], SlurmNodeFacts | None] | None:
        """Return a lookup into the last reading of its Slurm; None while its state is unknown."""
        view = self._views.of(node_set.controller)
        return view.listed if view is not None and view.trouble == "" else None

    def nodes_to_delete(self, node_set: NodeSetObject) -> tuple[SlurmNode, ...]:
        """Return the Slurm nodes to delete: none unless pruning is on and the cache is complete."""
        view = self._views.of(node_set.controller)
        prunes = node_set.spec.prune_slurm_node_records != "Never" and is_on_nodes(node_set)
        if not prunes or view is None or view.trouble != "" or self._kube_nodes.unreadable:
            return ()
        hosts = {placing.host_of(kube_node) for kube_node in self._kube_nodes.values()}
        namespace = node_set.metadata.namespace
        return pruning.nodes_to_delete(
            view.nodes,
            feature=node_set.slurm_name,
            is_needed=lambda host: host in hosts or bool(self._by_host.get(f"{namespace}/{host}")),
        )

    def topology(self, kube_node: str) -> str:
        """Return a Kubernetes node's place in Slurm's topology by its annotation; "" without one."""
        node = self._kube_nodes.get(kube_node)
        return node.annotations.get(TOPOLOGY_ANNOTATION, "") if node is not None else ""

    def trouble(self, node_set: NodeSetObject) -> str | None:
        """Return why its Slurm's state is unknown; "" if it is known, None before the first try."""
        return self._views.trouble(node_set.controller)

    def refusal(self, node_set: NodeSetObject) -> Refusal | None:
        """Return why a NodeSet gets no workers; None if it does."""
        if is_on_nodes(node_set) and isinstance(constraints := _constraints(node_set), Refused):
            return Refusal(reason="BadInput", text=constraints.text)
        if other := self._namesake(node_set):
            text = f"its Slurm node names clash with those of NodeSet {other}: set another spec.template.spec.hostname in one of them"
            return Refusal(reason="BadInput", text=text)
        return None

    def _namesake(self, node_set: NodeSetObject) -> str:
        watched = self._by_controller.get(node_set.controller)
        node_sets = filter(None, (other.parsed for other in watched))
        return namesakes(node_sets).get(node_set.metadata.uid, "")

    def on_nodes(self) -> list[str]:
        """Return the uids of all NodeSets that have one worker on each fitting Kubernetes node."""
        return [node_set.metadata.uid for node_set in self._by_mode.get("DaemonSet")]

    def _plan_nodes(
        self, node_set: NodeSetObject, pods: tuple[WorkerPodObject, ...]
    ) -> NodePlan | None:
        if not is_on_nodes(node_set):
            return None
        keys = (planning.worker_key(node_set, pod) for pod in pods)
        current = {key.kube_node: key.host for key in keys if isinstance(key, OnNode)}
        constraints = _constraints(node_set)
        if isinstance(constraints, Refused):  # existing workers stay where they are
            return NodePlan(hosts=current, leaving={})
        return placing.plan(
            self._kube_nodes.values(),
            current,
            selector=constraints.selector,
            tolerations=constraints.tolerations,
            host_owner=self._host_owner(node_set),
            unreadable=frozenset(self._kube_nodes.unreadable.values()),
        )

    def _host_owner(self, node_set: NodeSetObject) -> Callable[[str], str]:
        """Return a function that names the owner of a host name, or returns "".

        A pod owns its name. Beyond that the NodeSets decide, as other NodeSets' pods may not be in
        the cache yet: a name that ends in a number may be that of a future worker, and one that
        several NodeSets want for a Kubernetes node belongs to the oldest of them.
        """
        meta = node_set.metadata
        others = [
            other for other in self._others(node_set) if other.metadata.deletion_timestamp is None
        ]
        older = [
            (other.metadata.name, self._fitting_hosts(other))
            for other in others
            if is_on_nodes(other) and age(other.metadata) < age(meta)
        ]
        numbered = [other for other in others if not is_on_nodes(other)]

        def host_owner(host: str) -> str:
            for name, hosts in older:
                if host in hosts:
                    return f"the older NodeSet {name} (let only one of them select a node)"
            for pod in self._by_host.get(f"{meta.namespace}/{host}"):
                if pod.metadata.controller_uid != meta.uid:
                    return f"pod {pod.metadata.name}"
            for other in numbered:
                number = host.removeprefix(other.node_prefix)
                if number != host and number.isdecimal():
                    return f"the numbered workers of NodeSet {other.metadata.name}"
            return ""

        return host_owner

    def _others(self, node_set: NodeSetObject) -> list[NodeSetObject]:
        watched = self._by_controller.get(node_set.controller)
        others = (other.parsed for other in watched)
        return [other for other in others if other and other.metadata.uid != node_set.metadata.uid]

    def _fitting_hosts(self, node_set: NodeSetObject) -> frozenset[str]:
        constraints = _constraints(node_set)
        if isinstance(constraints, Refused):
            return frozenset()
        return placing.fitting_hosts(
            self._kube_nodes.values(),
            selector=constraints.selector,
            tolerations=constraints.tolerations,
        )

    def _has_node(self, name: str) -> bool:
        return (
            self._kube_nodes.get(name) is not None or name in self._kube_nodes.unreadable.values()
        )

    def _cordon(self, kube_node: str) -> str:
        node = self._kube_nodes.get(kube_node) if kube_node else None
        if node is None or not node.is_unschedulable:
            return ""
        reason = node.annotations.get(names.CORDON_REASON_ANNOTATION, "")
        return reason or f"Kubernetes has node {node.name} cordoned"


def _constraints(node_set: NodeSetObject) -> NodeConstraints | Refused:
    """Return where its workers may run, or why that cannot be read."""
    constraints = read_placing(node_set.spec.pod_spec)
    ours = read_placing({"tolerations": worker_tolerations(node_set)})
    if isinstance(constraints, Refused) or isinstance(ours, Refused):
        return constraints
    return replace(constraints, tolerations=(*ours.tolerations, *constraints.tolerations))
