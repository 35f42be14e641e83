"""Choose the Slurm nodes that a pod may go to, and express the choice in Slurm's terms.

Slurm filters by features much faster than by node names, so node selectors and affinities become a
feature expression wherever the features carry the same information as the labels. The same holds
for taints. What no feature expresses is expressed by the names of the nodes to leave out, not of those
that suit, unless just one does: as soon as one required node leaves Slurm, slurmctld ends the job at its
next restart, wherever it runs (measured with 26.05). An excluded node that is gone does no harm.
"""

import itertools
import math
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bridge.domain.model.devices import room
from bridge.domain.model.devices.room import Lack, Shape, Task
from bridge.domain.model.pods import Pod
from bridge.domain.request import fit, notation, selection
from bridge.domain.request.fit import NO_LIMITS, KubeLimits
from slurmruntime.model import affinity, nodes
from slurmruntime.model.affinity import Requirement
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts, Taint
from slurmruntime.values import hostlist
from slurmruntime.values.ids import ClusterId, KubeNode, SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgedNode:
    """A node that both systems know, and that Slurm holds for this cluster."""

    kube: KubeNodeFacts
    slurm: SlurmNodeFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """All bridged nodes, and what one pass over them finds out for every pod.

    It is rebuilt when a node changes.
    """

    cluster_feature: str
    nodes: Mapping[SlurmNode, BridgedNode] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    """Every feature that any of the nodes has. Slurm refuses expressions with any other (422, errno
    2029)."""
    published_keys: frozenset[str] = frozenset()
    """Label keys for which every node's features carry exactly what its labels do."""
    taints: Mapping[str, tuple[Taint, ...]] = field(default_factory=dict)
    """Feature → the lasting taints that it stands for."""
    has_taints_as_features: bool = True
    """Whether every node's feature says what its taints do."""
    shapes: frozenset[Shape] = frozenset()
    """What the nodes have in Slurm."""
    chosen: dict[bytes, "Candidates"] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Earlier choices (`bridge.domain.request.build`)."""

    def kube_node(self, slurm_node: SlurmNode) -> KubeNode | None:
        """Return the Kubernetes name of a Slurm node; None if it is not bridged."""
        node = self.nodes.get(slurm_node)
        return node.kube.name if node else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Where a job may go: `constraints` and `excluded_nodes` limit it to bridged nodes that suit."""

    constraints: str = ""
    required_nodes: tuple[SlurmNode, ...] = ()
    """The only node that suits: its job can run nowhere else."""
    excluded_nodes: tuple[SlurmNode, ...] = ()
    problem: str = ""
    """Why no node suits at all; then the other fields are empty and nothing may be submitted."""


MOST_NAMED_BYTES = 256 * 1024
"""Of the names of nodes that one job excludes: slurmctld keeps as much for each job."""


def pool(
    kube_nodes: Iterable[KubeNodeFacts], slurm_nodes: Iterable[SlurmNodeFacts], cluster: ClusterId
) -> Pool:
    """Pair the nodes of both systems."""
    mark = nodes.cluster_feature(cluster)
    ours = {
        node.name: node
        for node in slurm_nodes
        if mark in node.features and not nodes.is_parked(node)
    }
    claims: dict[SlurmNode, list[KubeNodeFacts]] = {}
    for kube_node in kube_nodes:
        # A job that starts to wait must not wait for a node that is about to leave Slurm.
        if nodes.is_wanted(kube_node) and (name := nodes.slurm_name(kube_node)) in ours:
            claims.setdefault(name, []).append(kube_node)
    pairs = {
        name: BridgedNode(kube=held_by, slurm=ours[name])
        for name, claimants in claims.items()
        if (held_by := nodes.holder(claimants))
    }
    classes = {nodes.taints_feature(n.kube): nodes.lasting_taints(n.kube) for n in pairs.values()}
    return Pool(
        cluster_feature=mark,
        nodes=pairs,
        features=frozenset(f for node in pairs.values() for f in node.slurm.features),
        published_keys=_published_keys(pairs.values()),
        shapes=frozenset(room.shape(node.slurm) for node in pairs.values()),
        taints=classes,
        has_taints_as_features=all(
            nodes.taints_feature(node.kube) in node.slurm.features for node in pairs.values()
        ),
    )


def choose(
    pod: Pod,
    among: Pool,
    *,
    constraints: str = "",
    avoid: Sequence[SlurmNode] = (),
    hidden: KubeLimits = NO_LIMITS,
    task: Task | None = None,
    is_gang: bool = False,
) -> Candidates:
    """Choose where a pod may go, by its selector, affinity and tolerations.

    Args:
        constraints: the user's own feature expression, which applies as well.
        avoid: nodes that Kubernetes has just been unable to use. They are excluded unless nothing
            else is left.
        hidden: what else limits its nodes. If it leaves out any, these are excluded by name.
        task: what it takes in Slurm; Slurm ends a job for which no node is large enough.
        is_gang: the job may have several nodes, so that none can be required.
    """
    if not among.nodes:
        return Candidates(problem="no node of this cluster is registered in Slurm")
    lacking = {
        node.kube.name: why
        for node in among.nodes.values()
        if (why := fit.lacking(pod, node.kube, hidden.counted))
    }
    unsafe = {
        node.kube.name: why
        for node in among.nodes.values()
        if (why := hidden.why_unsafe(pod.demand, node.kube, node.slurm.gres))
    }
    small = _too_small(among, task)
    is_seen = not lacking and not unsafe and not hidden.reaches and not avoid
    if is_seen and _may_run(pod, among, small) and (exact := _exactly(pod, among, constraints)):
        return Candidates(constraints=exact)
    matched = tuple(selection.matching((node.kube for node in among.nodes.values()), pod))
    if not matched:
        return Candidates(
            problem=f"none of the {len(among.nodes)} nodes in Slurm both matches the pod's node "
            "selector and affinity and has only taints that the pod tolerates"
        )
    having = [kube_node for kube_node in matched if kube_node.name not in lacking]
    large_enough = [kube_node for kube_node in having if kube_node.name not in small]
    if not large_enough:
        why = (
            room.largest(small[kube_node.name] for kube_node in having)
            if having
            else f"has {Counter(lacking[node.name] for node in matched).most_common(1)[0][0]}"
        )
        return Candidates(problem=f"none of the {len(matched)} nodes that suit the pod {why}")
    safe = [kube_node for kube_node in large_enough if kube_node.name not in unsafe]
    if not safe:
        why = Counter(unsafe[kube_node.name] for kube_node in large_enough).most_common(1)[0][0]
        return Candidates(
            problem=f"none of the {len(large_enough)} nodes that suit the pod is safe: {why}"
        )
    selectors = [affinity.Selector(reach) for reach in hidden.reaches]
    suitable = [node for node in safe if all(one.selects(node) for one in selectors)]
    if not suitable:
        return Candidates(
            problem=f"the pod's volumes can be used from none of the {len(safe)} nodes in "
            "Slurm that suit it otherwise"
        )
    fitting = frozenset(map(nodes.slurm_name, suitable))
    left = (fitting - set(avoid)) or fitting
    if len(fitting) == 1 and not is_gang:
        return Candidates(constraints=constraints, required_nodes=tuple(fitting))
    # Slurm itself leaves out those that are too small.
    unnamed = left | {name for name, node in among.nodes.items() if node.kube.name in small}
    return _besides(unnamed, pod, among, constraints, is_gang=is_gang)


def _exactly(pod: Pod, among: Pool, constraints: str) -> str | None:
    ours = expression(pod, among)
    combined = notation.conjunction(ours, constraints) if ours is not None else None
    return combined if combined is not None and _is_short(combined) else None


def _besides(
    unnamed: Collection[SlurmNode], pod: Pod, among: Pool, constraints: str, *, is_gang: bool
) -> Candidates:
    """Exclude all nodes but these, and those that features leave out."""
    for all_of in _narrowings(pod, among):
        combined = _joined(all_of, constraints, is_gang=is_gang)
        if combined is not None and _is_short(combined):
            others = (
                name
                for name, node in among.nodes.items()
                if name not in unnamed
                and not any(any_of.isdisjoint(node.slurm.features) for any_of in all_of)
            )
            named = tuple(sorted(others))
            if (length := len(hostlist.compress(named))) > MOST_NAMED_BYTES:
                return Candidates(problem=_too_many(pod, among, len(named), length))
            return Candidates(constraints=combined, excluded_nodes=named)
    return Candidates(problem=f"constraints {constraints!r} cannot be combined with ours")


def _too_many(pod: Pod, among: Pool, names: int, length: int) -> str:
    keys = {*pod.node_selector, *(e.key for term in pod.node_terms for e in term.match_labels)}
    unpublished = ", ".join(sorted(keys - among.published_keys)) or "that its nodes share"
    return (
        f"{names} nodes that do not suit the pod must be excluded by name: {length >> 10} KiB for "
        f"each job, at most {MOST_NAMED_BYTES >> 10} are sent; ask the administrator to publish labels"
        f" ({unpublished}) in controllers.node_features"
    )


def _narrowings(pod: Pod, among: Pool) -> Iterator[list[frozenset[str]]]:
    """Yield what features express about a pod's nodes, as alternatives that must all hold.

    First everything they express, in the end our mark only: an expression may be too long.
    """
    mark = frozenset({among.cluster_feature})
    required = [frozenset(any_of) for any_of in _tolerated(pod, among) or ()]
    selected = [[f"{key}={value}"] for key, value in sorted(pod.node_selector.items())]
    if len(pod.node_terms) == 1:
        selected += [_features(e) for e in pod.node_terms[0].match_labels if e.operator == "In"]
    for any_of in selected:
        known = frozenset(any_of) & among.features
        if known and any_of[0].partition("=")[0] in among.published_keys:
            required.append(known)
    for most in range(len(required), -1, -1):
        yield [mark, *required[:most]]


def _joined(all_of: Sequence[frozenset[str]], constraints: str, *, is_gang: bool) -> str | None:
    """Join our conjunction with the user's expression; None if Slurm has no way to express that."""
    ours = "&".join(notation.any_of(sorted(any_of)) for any_of in all_of)
    combined = notation.conjunction(ours, constraints)
    if combined is not None or "*" in constraints or "|" in ours:
        return combined
    products = None if is_gang and "[" in constraints else notation.products(constraints)
    if products is None:
        return None
    return "|".join(f"({ours}&{'&'.join(product)})" for product in products)


def of_several(where: Candidates, among: Pool, key: str) -> Candidates:
    """Require one value of the label for all nodes of the job.

    Slurm's matching OR, `[a|b]`, allows any of the values, but the same one on all nodes
    (salloc(1), --constraint).
    """
    if where.problem:
        return where
    if key not in among.published_keys:
        return Candidates(
            problem=f"the pods must share one {key}, but Slurm's nodes do not have it as a "
            "feature: the administrator can add it to controllers.node_features"
        )
    values = {node.kube.labels[key] for node in among.nodes.values() if key in node.kube.labels}
    features = sorted(f"{key}={value}" for value in values)
    matching_or = features[0] if len(features) == 1 else f"[{'|'.join(features)}]"
    combined = notation.conjunction(where.constraints, matching_or)
    if combined is None or len(combined.encode()) > notation.MAX_TEXT_BYTES:
        return Candidates(problem=f"Slurm has no way to express that the pods share one {key}")
    return replace(where, constraints=combined)


def _too_small(among: Pool, task: Task | None) -> dict[KubeNode, Lack]:
    """Return the nodes that have less in Slurm than the task takes, and of what."""
    shapes = room.too_small(task, among.shapes) if task is not None else {}
    if not shapes:
        return {}
    return {
        node.kube.name: lack
        for node in among.nodes.values()
        if (lack := shapes.get(room.shape(node.slurm)))
    }


def _may_run(pod: Pod, among: Pool, small: Container[KubeNode]) -> bool:
    """Check whether any node that suits the pod is large enough.

    An expression may match no node: each of its features is on some node, all together on none.
    """
    suiting = selection.matching((node.kube for node in among.nodes.values()), pod)
    return any(kube_node.name not in small for kube_node in suiting)


def expression(pod: Pod, among: Pool) -> str | None:
    """Write node selector and affinity as a feature expression; None if that cannot be done."""
    tolerated = _tolerated(pod, among)
    if tolerated is None:
        return None
    always = [[among.cluster_feature], *tolerated]
    always += [[f"{key}={value}"] for key, value in sorted(pod.node_selector.items())]
    terms = [term.match_labels for term in pod.node_terms]
    if any(term.match_fields or not term.match_labels for term in pod.node_terms):
        return None
    needed = {*pod.node_selector, *(requirement.key for term in terms for requirement in term)}
    if not needed <= among.published_keys or any(e.operator != "In" for t in terms for e in t):
        return None
    alternatives = [
        always + [_features(requirement) for requirement in term] for term in terms
    ] or [always]
    known = [
        [[feature for feature in any_of if feature in among.features] for any_of in all_of]
        for all_of in alternatives
    ]
    possible = [all_of for all_of in known if all(all_of)]
    if not possible:
        return None
    if len(possible) == 1:
        return "&".join(notation.any_of(any_of) for any_of in possible[0])
    if (
        sum(math.prod(len(any_of) for any_of in all_of) for all_of in possible)
        > notation.MAX_PRODUCTS
    ):
        return None
    # Parentheses do not nest, so each alternative is expanded.
    return "|".join(
        f"({'&'.join(choice)})" for all_of in possible for choice in itertools.product(*all_of)
    )


def _published_keys(pairs: Iterable[BridgedNode]) -> frozenset[str]:
    published: set[str] = set()
    disagreeing: set[str] = set()
    for node in pairs:
        labels = dict(feature.split("=", 1) for feature in node.slurm.features if "=" in feature)
        published |= labels.keys()
        disagreeing |= {key for key, value in labels.items() if node.kube.labels.get(key) != value}
        disagreeing |= node.kube.labels.keys() - labels.keys()
    return frozenset(published - disagreeing)


def _tolerated(pod: Pod, among: Pool) -> list[list[str]] | None:
    """Return the features of nodes whose taints the pod tolerates, as a list of alternatives.

    Empty if it tolerates all that exist, and might tolerate others; None if features do not show it.
    Most pods tolerate no taint at all: they must not get a node that is tainted while they wait.
    """
    tolerated = [
        feature
        for feature, taints in among.taints.items()
        if affinity.untolerated(taints, pod.tolerations) is None
    ]
    if not among.has_taints_as_features:
        return [] if len(tolerated) == len(among.taints) else None
    may_more = len(tolerated) == len(among.taints) and selection.may_tolerate(pod.tolerations)
    return [] if may_more else [sorted(tolerated)]


def _is_short(text: str) -> bool:
    return len(text.encode()) <= notation.MAX_TEXT_BYTES


def _features(requirement: Requirement) -> list[str]:
    return [f"{requirement.key}={value}" for value in sorted(set(requirement.values))]
