"""Where a pod may go, as Slurm is told."""

from dataclasses import replace

import pytest

from bridge.domain.model.pods import Pod
from bridge.domain.request import candidates
from bridge.domain.request.candidates import Candidates
from bridge.domain.request.fit import KubeLimits
from slurmruntime.model.affinity import NodeTerm, Toleration
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode
from tests.domain.request.zones import OURS, ZONES, pool
from tests.make import placing as build
from tests.make.placing import MARK, requirement, term


def constraints(text: str) -> Candidates:
    return Candidates(constraints=text)


def only(name: str) -> Candidates:
    return Candidates(required_nodes=(SlurmNode(name),))


def all_but(*names: str, constraints: str = OURS) -> Candidates:
    return Candidates(constraints=constraints, excluded_nodes=tuple(map(SlurmNode, names)))


def test_any_pod_is_limited_to_the_nodes_of_this_cluster() -> None:
    assert constraints(OURS) == candidates.choose(build.pod(), pool())


def test_a_node_that_is_to_leave_slurm_is_no_candidate() -> None:
    """A job that waits for it by name would stand in the way of its deletion."""
    leaving = build.kube_node("k1", labels={names.EXTERNAL_NODE_LABEL: "false"})
    found = candidates.pool([leaving], [build.slurm_node("k1")], build.CLUSTER)

    assert {} == found.nodes


def test_a_node_on_its_way_into_slurm_is_no_candidate() -> None:
    """Slurm refuses a job that names it: it is in no partition yet."""
    parked = build.slurm_node("k1", names.PARKED_FEATURE)

    assert {} == candidates.pool([build.kube_node("k1")], [parked], build.CLUSTER).nodes


def test_of_two_nodes_with_one_slurm_name_every_process_takes_the_same() -> None:
    label = {names.SLURM_NODE_NAME_LABEL: "s1"}
    rivals = [build.kube_node("b", labels=label), build.kube_node("a", labels=label)]

    for order in (rivals, rivals[::-1]):
        found = candidates.pool(order, [build.slurm_node("s1")], build.CLUSTER)
        assert "a" == found.kube_node(SlurmNode("s1"))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            build.pod(node_selector={"zone": "a", "disk": "ssd"}),
            f"{OURS}&disk=ssd&zone=a",
            id="a node selector",
        ),
        pytest.param(
            build.pod(node_terms=(term(("zone", "In", "b,a"), ("disk", "In", "ssd")),)),
            f"{OURS}&(zone=a|zone=b)&disk=ssd",
            id="one affinity term",
        ),
        pytest.param(
            build.pod(
                node_selector={"disk": "ssd"},
                node_terms=(term(("zone", "In", "a,b")), term(("zone", "In", "c"))),
            ),
            f"({OURS}&disk=ssd&zone=a)|({OURS}&disk=ssd&zone=b)|({OURS}&disk=ssd&zone=c)",
            id="alternatives are multiplied out, as parentheses do not nest",
        ),
        pytest.param(
            build.pod(node_terms=(term(("zone", "In", "a,nowhere")),)),
            f"{OURS}&zone=a",
            id="values that no node has are left out: Slurm refuses unknown features",
        ),
        pytest.param(
            build.pod(node_terms=(term(("zone", "In", "nowhere")), term(("zone", "In", "a")))),
            f"{OURS}&zone=a",
            id="so are terms that no node can match",
        ),
    ],
)
def test_labels_that_are_features_become_an_expression(pod: Pod, expected: str) -> None:
    assert constraints(expected) == candidates.choose(pod, pool())


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            build.pod(node_terms=(term(("zone", "NotIn", "a")),)), all_but("k1"), id="NotIn"
        ),
        pytest.param(
            build.pod(
                node_selector={"disk": "ssd"},
                node_terms=(term(("zone", "In", "a,b,c"), ("zone", "NotIn", "c")),),
            ),
            all_but(constraints=f"{OURS}&disk=ssd&(zone=a|zone=b|zone=c)"),
            id="features leave out all that have to be",
        ),
        pytest.param(
            build.pod(node_terms=(term(("disk", "DoesNotExist", "")),)),
            only("k3"),
            id="DoesNotExist",
        ),
        pytest.param(
            build.pod(
                node_terms=(NodeTerm(match_fields=(requirement("metadata.name", "In", "k2"),)),)
            ),
            only("k2"),
            id="a node's name",
        ),
        pytest.param(
            build.pod(node_selector={names.EXTERNAL_NODE_LABEL: "true", "zone": "a"}),
            only("k1"),
            id="a label that is not published",
        ),
    ],
)
def test_what_features_cannot_tell_becomes_names(pod: Pod, expected: Candidates) -> None:
    """Of the nodes to leave out: a required one that leaves Slurm takes the job along."""
    assert expected == candidates.choose(pod, pool())


def test_a_label_that_all_nodes_have_leaves_none_out() -> None:
    """`kubernetes.io/os: linux`, which many charts select."""
    labels = {"kubernetes.io/os": "linux"}
    alike = candidates.pool(
        [build.kube_node(name, labels=labels) for name in ZONES],
        [build.slurm_node(name) for name in ZONES],
        build.CLUSTER,
    )

    assert constraints(OURS) == candidates.choose(build.pod(node_selector=labels), alike)


def test_unpublished_labels_are_looked_up_by_us() -> None:
    pod = build.pod(node_selector={"zone": "b"})

    assert only("k2") == candidates.choose(pod, pool(published=False))


def test_features_that_lag_behind_the_labels_are_not_believed() -> None:
    kube_nodes = [
        build.kube_node(name, labels={"zone": zone})
        for name, zone in (("k1", "a"), ("k2", "a"), ("k3", "b"))
    ]
    slurm_nodes = [
        build.slurm_node(name, f"zone={zone}")
        for name, zone in (("k1", "a"), ("k2", "b"), ("k3", "b"))
    ]
    lagging = candidates.pool(kube_nodes, slurm_nodes, build.CLUSTER)

    assert all_but("k3") == candidates.choose(build.pod(node_selector={"zone": "a"}), lagging)


def test_nodes_with_a_taint_the_pod_does_not_tolerate_are_left_out() -> None:
    taints = {"k1": "nvidia.com/gpu=present:NoSchedule"}
    tainted = pool(taints=taints)
    tolerant = build.pod(
        tolerations=(build.OUR_TOLERATION, Toleration(key="nvidia.com/gpu", operator="Exists"))
    )

    assert constraints(f"{MARK}&{build.NO_TAINTS}") == candidates.choose(build.pod(), tainted)
    assert constraints(MARK) == candidates.choose(tolerant, tainted)
    unpublished = pool(taints=taints, published=False)
    assert all_but("k1", constraints=MARK) == candidates.choose(build.pod(), unpublished)


def test_taints_of_several_kinds_are_alternatives() -> None:
    tainted = pool(taints={"k1": "a=b:NoSchedule", "k2": "c:NoExecute"})
    pod = build.pod(tolerations=(build.OUR_TOLERATION, Toleration(key="c", operator="Exists")))

    found = candidates.choose(pod, tainted)

    (c,) = {
        feature
        for feature in tainted.nodes[SlurmNode("k2")].slurm.features
        if feature.startswith(names.TAINTS_FEATURE)
    }
    assert constraints(f"{MARK}&({c}|{build.NO_TAINTS})") == found


@pytest.mark.parametrize(
    "passing",
    [
        "node.kubernetes.io/unschedulable:NoSchedule",
        "node.kubernetes.io/not-ready:NoExecute",
        "slinky.slurm.net/managed-node=slurm-bridge-scheduler:NoSchedule",
    ],
)
def test_what_passes_by_itself_leaves_no_node_out(passing: str) -> None:
    """The job may wait longer than that; Slurm drains the node meanwhile, and the fit check looks again."""
    assert constraints(OURS) == candidates.choose(build.pod(), pool(taints={"k1": passing}))


def test_no_node_at_all_is_a_problem_and_no_submit() -> None:
    nowhere = candidates.choose(build.pod(node_selector={"zone": "nowhere"}), pool())
    empty = candidates.choose(build.pod(), candidates.pool([], [], build.CLUSTER))

    assert "none of the 3 nodes in Slurm both matches" in nowhere.problem
    assert "no node of this cluster is registered in Slurm" == empty.problem


def test_nodes_to_avoid_are_left_out_unless_nothing_else_is_left() -> None:
    pod = build.pod(node_terms=(term(("zone", "NotIn", "a")),))

    assert all_but("k1", "k2") == candidates.choose(pod, pool(), avoid=[SlurmNode("k2")])
    assert all_but("k1") == candidates.choose(pod, pool(), avoid=[SlurmNode("k2"), SlurmNode("k3")])
    assert all_but("k3") == candidates.choose(build.pod(), pool(), avoid=[SlurmNode("k3")])


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        pytest.param("a100", f"{OURS}&zone=a&a100", id="one feature"),
        pytest.param("a100&nvlink", f"{OURS}&zone=a&a100&nvlink", id="and"),
        pytest.param("a100|h100", f"{OURS}&zone=a&(a100|h100)", id="or"),
        pytest.param("nvlink&(a100|h100)", f"{OURS}&zone=a&nvlink&(a100|h100)", id="both"),
        pytest.param("[rack1|rack2]", f"{OURS}&zone=a&[rack1|rack2]", id="matching or"),
    ],
)
def test_the_users_own_constraints_hold_besides(users: str, expected: str) -> None:
    pod = build.pod(node_selector={"zone": "a"})

    assert constraints(expected) == candidates.choose(pod, pool(), constraints=users)


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        ("(a100&ib)|h100", f"({OURS}&disk=ssd&a100&ib)|({OURS}&disk=ssd&h100)"),
        ("a100|(h100&ib)", f"({OURS}&disk=ssd&a100)|({OURS}&disk=ssd&h100&ib)"),
        (
            "[r1|r2]|r3&r4",
            f"({OURS}&disk=ssd&r1&r4)|({OURS}&disk=ssd&r2&r4)|({OURS}&disk=ssd&r3&r4)",
        ),
    ],
)
def test_constraints_that_cannot_be_joined_are_multiplied_out(users: str, expected: str) -> None:
    pod = build.pod(node_selector={"disk": "ssd"})

    assert constraints(expected) == candidates.choose(pod, pool(), constraints=users)


def test_constraints_with_counts_of_nodes_go_alone_if_just_one_node_suits() -> None:
    users = "[rack1*2&rack2*4]"

    one = candidates.choose(build.pod(node_selector={"zone": "a"}), pool(), constraints=users)
    two = candidates.choose(build.pod(node_selector={"disk": "ssd"}), pool(), constraints=users)

    assert Candidates(constraints=users, required_nodes=(SlurmNode("k1"),)) == one
    assert "constraints '[rack1*2&rack2*4]' cannot be combined with ours" == two.problem


ONE_ZONE = "[zone=a|zone=b|zone=c]"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [({}, f"{OURS}&{ONE_ZONE}"), ({"zone": "a"}, f"{OURS}&zone=a&{ONE_ZONE}")],
)
def test_nodes_that_share_a_label_are_asked_for_as_matching_or(
    selector: dict[str, str], expected: str
) -> None:
    where = candidates.choose(build.pod(node_selector=selector), pool())

    assert constraints(expected) == candidates.of_several(where, pool(), "zone")


def test_a_label_to_share_that_slurm_does_not_know_is_told() -> None:
    where = candidates.choose(build.pod(), pool())

    found = candidates.of_several(where, pool(), "rack")

    assert "can add it to controllers.node_features" in found.problem
    assert "" == found.constraints


def test_an_expression_that_is_too_long_becomes_names() -> None:
    """Slurm takes 1024 bytes."""
    zones = [f"{index:060}" for index in range(20)]
    many = candidates.pool(
        [build.kube_node(f"k{zone}", labels={"zone": zone}) for zone in zones],
        [build.slurm_node(f"k{zone}", f"zone={zone}") for zone in zones],
        build.CLUSTER,
    )
    pod = build.pod(node_terms=(term(("zone", "In", ",".join(zones[1:]))),))

    assert all_but(f"k{zones[0]}") == candidates.choose(pod, many)


def test_alternatives_that_multiply_without_end_become_names() -> None:
    values = ",".join("abc")
    pod = build.pod(
        node_terms=tuple(term(("zone", "In", values), ("zone", "In", values)) for _ in range(1000))
    )

    assert constraints(OURS) == candidates.choose(pod, pool())


def test_nodes_without_what_slurm_does_not_count_are_left_out() -> None:
    wanting = build.pod(demand=build.demands(**{"rdma/hca": "2", "nvidia.com/gpu": "1"}))
    counted = KubeLimits(counted={"nvidia.com/gpu": "gpu"})

    def found(**amounts: int) -> Candidates:
        around = pool()
        with_some = {
            name: replace(
                node,
                kube=replace(
                    node.kube,
                    allocatable=replace(
                        node.kube.allocatable,
                        extended={"rdma/hca": amounts.get(str(name), 0)},
                    ),
                ),
            )
            for name, node in around.nodes.items()
        }
        return candidates.choose(wanting, replace(around, nodes=with_some), hidden=counted)

    assert only("k2") == found(k1=1, k2=2)
    assert constraints(OURS) == found(k1=2, k2=2, k3=4)
    assert "none of the 3 nodes that suit the pod has 2 rdma/hca" == found(k1=1).problem


def test_too_little_disk_or_no_room_for_any_pod_is_no_candidate() -> None:
    full = build.kube_node("k1", pods=0)
    around = candidates.pool(
        [full, build.kube_node("k2")],
        [build.slurm_node("k1"), build.slurm_node("k2")],
        build.CLUSTER,
    )
    fat = build.pod(demand=build.demands(**{"ephemeral-storage": "101Gi"}))

    assert only("k2") == candidates.choose(build.pod(), around)
    assert "has 103424Mi of ephemeral-storage" in candidates.choose(fat, around).problem


def test_a_pod_goes_where_all_of_its_volumes_can_be_used() -> None:
    def found(*reaches: tuple[NodeTerm, ...]) -> Candidates:
        return candidates.choose(build.pod(), pool(), hidden=KubeLimits(reaches=reaches))

    in_a_or_b = (term(("zone", "In", "a")), term(("zone", "In", "b")))
    on_an_ssd, not_in_a = (term(("disk", "In", "ssd")),), (term(("zone", "NotIn", "a")),)

    assert all_but("k3") == found(in_a_or_b)
    assert only("k2") == found(on_an_ssd, not_in_a)
    assert "volumes can be used from none of the 3" in found((term(("zone", "In", "x")),)).problem
