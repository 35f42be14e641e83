"""Node selectors, affinity and taints, as kube-scheduler reads them."""

from collections.abc import Mapping

import pytest

from bridge.domain.request import selection
from slurmruntime.model import affinity
from slurmruntime.model.affinity import NodeTerm, Toleration
from tests.make import placing as build
from tests.make.placing import requirement, taint, term

NODE = build.kube_node("k1", labels={"zone": "a", "gpus": "8", "empty": ""})


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        pytest.param({}, True, id="no selector"),
        pytest.param({"zone": "a", "gpus": "8"}, True, id="all labels there"),
        pytest.param({"zone": "a", "gpus": "4"}, False, id="one differs"),
        pytest.param({"rack": "1"}, False, id="label missing"),
        pytest.param({"rack": ""}, False, id="missing is not empty"),
        pytest.param({"empty": ""}, True, id="empty is empty"),
    ],
)
def test_every_label_of_the_selector_must_match(selector: dict[str, str], *, matches: bool) -> None:
    assert matches == selection.selects(build.pod(node_selector=selector), NODE)


@pytest.mark.parametrize(
    ("key", "operator", "values", "matches"),
    [
        ("zone", "In", "a,b", True),
        ("zone", "In", "b,c", False),
        ("rack", "In", "1", False),
        ("zone", "NotIn", "b", True),
        ("zone", "NotIn", "a", False),
        ("rack", "NotIn", "1", True),
        ("zone", "Exists", "", True),
        ("rack", "Exists", "", False),
        ("zone", "DoesNotExist", "", False),
        ("rack", "DoesNotExist", "", True),
        ("gpus", "Gt", "7", True),
        ("gpus", "Gt", "8", False),
        ("gpus", "Lt", "9", True),
        ("gpus", "Lt", "8", False),
        ("zone", "Gt", "1", False),
        ("rack", "Lt", "1", False),
        ("gpus", "Gt", "many", False),
        ("gpus", "Near", "8", False),
    ],
)
def test_an_affinity_operator_compares(
    key: str, operator: str, values: str, *, matches: bool
) -> None:
    pod = build.pod(node_terms=(term((key, operator, values)),))

    assert matches == selection.selects(pod, NODE)


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        pytest.param((term(("zone", "In", "b")), term(("gpus", "In", "8"))), True, id="one of two"),
        pytest.param((term(("zone", "In", "a"), ("gpus", "In", "4")),), False, id="all of a term"),
        pytest.param((NodeTerm(),), False, id="an empty term matches nothing"),
        pytest.param(
            (NodeTerm(match_fields=(requirement("metadata.name", "In", "k1"),)),),
            True,
            id="the node's name",
        ),
        pytest.param(
            (NodeTerm(match_fields=(requirement("metadata.name", "NotIn", "k1"),)),),
            False,
            id="not this name",
        ),
    ],
)
def test_terms_are_alternatives(terms: tuple[NodeTerm, ...], *, matches: bool) -> None:
    assert matches == selection.selects(build.pod(node_terms=terms), NODE)


def test_selector_and_affinity_must_both_hold() -> None:
    pod = build.pod(node_selector={"zone": "b"}, node_terms=(term(("gpus", "Exists", "")),))

    assert not selection.selects(pod, NODE)


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        pytest.param(Toleration(key="gpu", operator="Exists"), True, id="any value"),
        pytest.param(Toleration(operator="Exists"), True, id="everything"),
        pytest.param(Toleration(key="gpu", value="yes"), True, id="this value"),
        pytest.param(Toleration(key="gpu", operator="", value="yes"), True, id="equal by default"),
        pytest.param(Toleration(key="gpu", value="no"), False, id="another value"),
        pytest.param(Toleration(key="cpu", operator="Exists"), False, id="another key"),
        pytest.param(
            Toleration(key="gpu", operator="Exists", effect="NoSchedule"), True, id="this effect"
        ),
        pytest.param(
            Toleration(key="gpu", operator="Exists", effect="NoExecute"), False, id="another effect"
        ),
    ],
)
def test_a_toleration_lifts_a_taint(toleration: Toleration, *, tolerates: bool) -> None:
    assert tolerates == affinity.tolerates(toleration, taint("gpu=yes:NoSchedule"))


def test_taints_that_only_discourage_keep_nobody_off() -> None:
    assert affinity.untolerated([taint("x:PreferNoSchedule")], []) is None
    assert taint("y:NoExecute") == affinity.untolerated(
        [taint("x:PreferNoSchedule"), taint("y:NoExecute")], []
    )


def test_a_cordon_counts_as_its_taint_once() -> None:
    cordoned = build.kube_node(is_unschedulable=True)
    tainted = build.kube_node(is_unschedulable=True, taints=(affinity.UNSCHEDULABLE,))

    assert (affinity.UNSCHEDULABLE,) == affinity.hard_taints(cordoned)
    assert (affinity.UNSCHEDULABLE,) == affinity.hard_taints(tainted)


def test_nodes_with_the_same_labels_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand nodes in three zones take three comparisons with each term, not a thousand."""
    compared: list[str] = []
    holds = affinity._holds

    def counted(
        each: affinity.Requirement, values: frozenset[str], labels: Mapping[str, str]
    ) -> bool:
        compared.append(each.key)
        return holds(each, values, labels)

    monkeypatch.setattr(affinity, "_holds", counted)
    pod = build.pod(node_terms=tuple(term(("zone", "In", f"z{n}")) for n in range(50)))
    nodes = [build.kube_node(f"k{n}", labels={"zone": f"z{n % 3 + 48}"}) for n in range(1000)]
    selector = affinity.Selector(pod.node_terms, pod.node_selector)

    found = [selector.selects(node) for node in nodes]

    assert [node.labels["zone"] in ("z48", "z49") for node in nodes] == found
    assert len(compared) <= 3 * 50


def test_terms_by_name_are_compared_with_each_node() -> None:
    pod = build.pod(
        node_terms=(NodeTerm(match_fields=(requirement("metadata.name", "In", "k1"),)),)
    )
    selector = affinity.Selector(pod.node_terms, pod.node_selector)

    assert [True, False] == [selector.selects(build.kube_node(name)) for name in ("k1", "k2")]
