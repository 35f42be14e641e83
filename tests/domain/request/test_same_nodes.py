"""Slurm, which reads what we write, and Kubernetes, which reads what the pod says, choose the same nodes."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.model.pods import Pod
from bridge.domain.request import candidates, selection
from bridge.domain.request.candidates import Candidates
from slurmruntime.model.affinity import Toleration
from slurmruntime.model.nodes import SlurmNodeFacts, taints_feature
from slurmruntime.values.ids import SlurmNode
from tests.make import placing as build
from tests.make.placing import MARK, taint, term

LABELS = st.dictionaries(st.sampled_from("xy"), st.sampled_from("123"))
REQUIREMENTS = st.tuples(
    st.sampled_from("xy"), st.sampled_from(["In", "NotIn"]), st.sampled_from(["1", "2,3", "1,9"])
)
TAINTS = st.lists(st.sampled_from(["a=b:NoSchedule", "c:NoExecute"]), max_size=2, unique=True)
PODS = st.builds(
    lambda selector, terms, tolerated: build.pod(
        node_selector=selector,
        node_terms=tuple(term(*each) for each in terms),
        tolerations=(
            build.OUR_TOLERATION,
            *(Toleration(key=key, operator="Exists") for key in tolerated),
        ),
    ),
    LABELS,
    st.lists(st.lists(REQUIREMENTS, min_size=1, max_size=3), max_size=3),
    st.sets(st.sampled_from("ac")),
)
AVOIDED = st.sets(st.sampled_from(["k0", "k1"]).map(SlurmNode))


@given(PODS, st.lists(st.tuples(LABELS, TAINTS), min_size=1, max_size=6), AVOIDED)
def test_slurm_and_kubernetes_choose_the_same_nodes(
    pod: Pod, described: list[tuple[dict[str, str], list[str]]], avoid: set[SlurmNode]
) -> None:
    """An expression, read as Slurm reads it, picks exactly what Kubernetes' own rules pick."""
    kube_nodes = [
        build.kube_node(f"k{index}", labels=labels, taints=tuple(map(taint, taints)))
        for index, (labels, taints) in enumerate(described)
    ]
    slurm_nodes = [
        build.slurm_node(
            f"k{index}",
            features=(
                MARK,
                taints_feature(kube_nodes[index]),
                *(f"{key}={value}" for key, value in labels.items()),
            ),
        )
        for index, (labels, _) in enumerate(described)
    ]
    bridged = candidates.pool(kube_nodes, slurm_nodes, build.CLUSTER)
    found = candidates.choose(pod, bridged, avoid=tuple(avoid))

    suitable = {node.name for node in selection.matching(kube_nodes, pod)}

    assert (suitable - avoid or suitable) == _chosen(found, slurm_nodes)


def _chosen(found: Candidates, slurm_nodes: list[SlurmNodeFacts]) -> set[str]:
    if found.required_nodes:
        return set(found.required_nodes)
    return {
        n.name
        for n in slurm_nodes
        if found.constraints
        and n.name not in found.excluded_nodes
        and _holds(found.constraints, n.features)
    }


def _holds(expression: str, features: tuple[str, ...]) -> bool:
    """As slurmctld evaluates it: from left to right, one level of parentheses, no precedence."""
    tokens = re.findall(r"[&|()]|[^&|()]+", expression)
    assert max(itertools.accumulate({"(": 1, ")": -1}.get(token, 0) for token in tokens)) <= 1
    value, operator = True, "&"
    outer: list[tuple[bool, str]] = []
    for token in tokens:
        match token:
            case "&" | "|":
                operator = token
            case "(":
                outer.append((value, operator))
                value, operator = True, "&"
            case ")":
                before, joined = outer.pop()
                value = before and value if joined == "&" else before or value
            case feature:
                found = feature in features
                value = value and found if operator == "&" else value or found
    return value
