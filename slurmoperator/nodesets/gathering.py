"""Everything that a decision about one NodeSet depends on, from the caches and from the readings of Slurm."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from slurmoperator.nodesets import names, planning
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.planning import NodeSetSituation
from slurmoperator.nodesets.slurm_view import Interest
from slurmoperator.nodesets.status import Refusal
from slurmoperator.nodesets.views import WorkerViews
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.placing import PodPlacing
from slurmoperator.objects.placing import placing as read_placing
from slurmoperator.objects.workers import OnNode, WorkerKey, age, is_on_nodes, namesakes
from slurmoperator.rendering.node_sets.worker import worker_tolerations
from slurmoperator.workers import placing, pruning
from slurmoperator.workers.placing import NodePlan
from slurmoperator.workers.situation import SeenWorker
from slurmruntime.kube.cache import Cache
from slurmruntime.model.affinity import Selector
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.process.clock import Clock
from slurmruntime.values.faults import Refused
from slurmruntime.values.ids import SlurmNode
from slurmruntime.values.names import TOPOLOGY_ANNOTATION

WorkerTemplates = Callable[[NodeSetObject, WorkerKey, int], Mapping[str, Any] | Refused]
"""Makes the pod of one of a NodeSet's workers with a step of the daemons' key, or says why there is none."""
KeySteps = Callable[[NodeSetObject], int]
"""Says which step of the daemons' key new workers of a NodeSet get: see `slurmoperator.keys.rings`."""

_UNSURE: Final = SeenWorker(is_sure=False)


class NodeSetGathering:
    """Gathers for one leader."""

    def __init__(
        self,
        *,
        node_sets: Cache[WatchedNodeSet],
        pods: Cache[WorkerPodObject],
        kube_nodes: Cache[KubeNodeFacts],
        views: WorkerViews,
        templates: WorkerTemplates,
        clock: Clock,
    ) -> None:
        self._kube_nodes = kube_nodes
        self._views = views
        self._templates = templates
        self._clock = clock
        self._by_owner = pods.index(lambda pod: [pod.metadata.controller_uid])
        self._by_mode = node_sets.index(
            lambda each: [each.whole.spec.scaling_mode] if each.whole else []
        )
        self._by_controller = node_sets.index(
            lambda each: [each.whole.controller] if each.whole else []
        )
        self._by_host = pods.index(lambda pod: [f"{pod.metadata.namespace}/{pod.slurm_node}"])

    def pods(self, uid: str) -> tuple[WorkerPodObject, ...]:
        """Return the pods that a NodeSet owns."""
        return tuple(self._by_owner.get(uid))

    def same_names(self, found: WatchedNodeSet) -> list[str]:
        """Return the uids of the NodeSets of its Slurm, whose workers may have the same names."""
        whole = found.whole
        others = self._by_controller.get(whole.controller) if whole else ()
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
        """Gather, and tell the view what matters from now on.

        Args:
            node_set: whose workers.
            pods: all that it owns.
            revision: the hash of its template.
            key_step: of the daemons' key, which is part of the revision.
            may_replace: workers could be made of its template.
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
        """Return what says whether a Slurm node is in the reservation for an update, if it has to be."""
        if planning.strategy(node_set) != "ScheduledUpdate":
            return lambda _: True
        listed, name = self.listed(node_set), names.reservation(node_set.metadata.name)

        def is_in(node: str) -> bool:
            found = listed(node) if listed is not None else None
            return found is not None and found.reservation == name

        return is_in

    def states(self, node_set: NodeSetObject) -> Callable[[str], frozenset[str] | None]:
        """Return what tells the states of a node of its Slurm by the last reading."""
        view = self._views.of(node_set.controller)
        return view.states if view is not None else lambda _: None

    def listed(self, node_set: NodeSetObject) -> Callable[[str], SlurmNodeFacts | None] | None:
        """Return what gives a node of its Slurm by the last reading; None while nothing is known of that Slurm."""
        view = self._views.of(node_set.controller)
        return view.listed if view is not None and view.trouble == "" else None

    def forgotten(self, node_set: NodeSetObject) -> tuple[SlurmNode, ...]:
        """Return the nodes that its Slurm is to forget, if it wants that; none while it is in doubt what Kubernetes has."""
        view = self._views.of(node_set.controller)
        wants = node_set.spec.prune_slurm_node_records != "Never" and is_on_nodes(node_set)
        if not wants or view is None or view.trouble != "" or self._kube_nodes.unreadable:
            return ()
        hosts = {placing.host_of(kube_node) for kube_node in self._kube_nodes.values()}
        namespace = node_set.metadata.namespace
        return pruning.forgotten(
            view.nodes,
            feature=node_set.slurm_name,
            is_needed=lambda host: host in hosts or bool(self._by_host.get(f"{namespace}/{host}")),
        )

    def topology(self, kube_node: str) -> str:
        """Return where a Kubernetes node is in Slurm's topology, as it says; "" if it does not."""
        found = self._kube_nodes.get(kube_node)
        return found.annotations.get(TOPOLOGY_ANNOTATION, "") if found is not None else ""

    def trouble(self, node_set: NodeSetObject) -> str | None:
        """Return why Slurm is not known of this NodeSet; "" if it is, None if nobody has tried yet."""
        return self._views.trouble(node_set.controller)

    def refusal(self, node_set: NodeSetObject) -> Refusal | None:
        """Return why a NodeSet gets no workers."""
        if is_on_nodes(node_set) and isinstance(read := _placing(node_set), Refused):
            return Refusal(reason="BadInput", text=read.text)
        if other := self._namesake(node_set):
            text = (
                f"its Slurm nodes would have the names of those of NodeSet {other}: give one of "
                "them another spec.template.spec.hostname"
            )
            return Refusal(reason="BadInput", text=text)
        return None

    def _namesake(self, node_set: NodeSetObject) -> str:
        """Return the NodeSet of the same cluster that had the same names first, or ""."""
        found = (each.whole for each in self._by_controller.get(node_set.controller))
        return namesakes(filter(None, found)).get(node_set.metadata.uid, "")

    def on_nodes(self) -> list[str]:
        """Return the uids of all NodeSets that have one worker on each Kubernetes node that fits."""
        return [each.metadata.uid for each in self._by_mode.get("DaemonSet")]

    def _plan_nodes(
        self, node_set: NodeSetObject, pods: tuple[WorkerPodObject, ...]
    ) -> NodePlan | None:
        if not is_on_nodes(node_set):
            return None
        keys = (planning.worker_key(node_set, pod) for pod in pods)
        there = {key.kube_node: key.host for key in keys if isinstance(key, OnNode)}
        found = _placing(node_set)
        if isinstance(found, Refused):  # those that are there stay where they are
            return NodePlan(hosts=there, leaving={})
        return placing.plan(
            self._kube_nodes.values(),
            there,
            selector=Selector(found.node_terms, found.node_selector),
            tolerations=found.tolerations,
            taken=self._taken(node_set),
            unreadable=frozenset(self._kube_nodes.unreadable.values()),
        )

    def _taken(self, node_set: NodeSetObject) -> Callable[[str], str]:
        """Return what says whose a name in Slurm is, or "".

        A pod has its own. Beyond that the NodeSets decide, as others' pods may not be in the cache yet: a name that ends in a
        number may be that of a worker to come, and one that several NodeSets want for a Kubernetes node is the oldest one's.
        """
        mine = node_set.metadata
        others = [
            other for other in self._others(node_set) if other.metadata.deletion_timestamp is None
        ]
        wanted = [
            (other.metadata.name, self._fitting_hosts(other))
            for other in others
            if is_on_nodes(other) and age(other.metadata) < age(mine)
        ]
        numbered = [other for other in others if not is_on_nodes(other)]

        def taken(host: str) -> str:
            for name, hosts in wanted:
                if host in hosts:
                    return f"that of the older NodeSet {name} (let only one of them select a node)"
            for pod in self._by_host.get(f"{mine.namespace}/{host}"):
                if pod.metadata.controller_uid != mine.uid:
                    return f"pod {pod.metadata.name}"
            for each in numbered:
                number = host.removeprefix(each.node_prefix)
                if number != host and number.isdecimal():
                    return f"one with a number of NodeSet {each.metadata.name}"
            return ""

        return taken

    def _others(self, node_set: NodeSetObject) -> list[NodeSetObject]:
        """Return the other NodeSets of its Slurm."""
        found = (each.whole for each in self._by_controller.get(node_set.controller))
        return [each for each in found if each and each.metadata.uid != node_set.metadata.uid]

    def _fitting_hosts(self, node_set: NodeSetObject) -> frozenset[str]:
        found = _placing(node_set)
        if isinstance(found, Refused):
            return frozenset()
        return placing.fitting_hosts(
            self._kube_nodes.values(),
            selector=Selector(found.node_terms, found.node_selector),
            tolerations=found.tolerations,
        )

    def _has_node(self, name: str) -> bool:
        return (
            self._kube_nodes.get(name) is not None or name in self._kube_nodes.unreadable.values()
        )

    def _cordon(self, kube_node: str) -> str:
        found = self._kube_nodes.get(kube_node) if kube_node else None
        if found is None or not found.is_unschedulable:
            return ""
        said = found.annotations.get(names.CORDON_REASON_ANNOTATION, "")
        return said or f"Kubernetes has node {found.name} cordoned"


def _placing(node_set: NodeSetObject) -> PodPlacing | Refused:
    """Return where its workers may go, or why that cannot be read."""
    template = node_set.spec.template
    given = (template.spec or {}) if template else {}
    found = read_placing(given)
    ours = read_placing({"tolerations": worker_tolerations(node_set)})
    if isinstance(found, Refused) or isinstance(ours, Refused):
        return found
    return replace(found, tolerations=(*ours.tolerations, *found.tolerations))
