"""What becomes of the objects of a SlurmCluster, whatever there is already."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmoperator.clusters import expanding, planning
from slurmoperator.clusters.planning import MANAGER, ClusterSituation
from slurmoperator.objects.labels import TAKE_OVER_ANNOTATION
from slurmoperator.objects.own.slurm_cluster import API_VERSION, KIND, SlurmClusterObject
from slurmruntime.kube.apply import ownership
from slurmruntime.kube.apply.ownership import OwnershipMetadata
from tests.slurmoperator.clusters.peers import SIX_LINES, ClusterLeaders
from tests.virtual_time import VirtualClock, run

UID = "uid-slurm"
NAMES = st.sampled_from(["slurm", "slurm-worker-cpu", "slurm-login", "other"])
KINDS = st.sampled_from(["Controller", "NodeSet", "RestApi", "LoginSet", "Token"])
OWNERS = st.lists(
    st.sampled_from([UID, "uid-other"]).flatmap(
        lambda uid: st.just({"kind": "SlurmCluster", "name": "x", "uid": uid, "controller": True})
    ),
    max_size=2,
)
FIELDS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["f:spec", "f:metadata", "f:replicas", "f:."]),
    st.sampled_from([{}, {"f:replicas": {}}, {"f:controllerRef": {}, "f:replicas": {}}]),
)
MANAGED = st.lists(
    st.builds(
        lambda manager, operation, fields: {
            "manager": manager,
            "operation": operation,
            "fieldsV1": fields,
        },
        st.sampled_from([MANAGER, "kubectl", "argocd"]),
        st.sampled_from(["Apply", "Update"]),
        FIELDS,
    ),
    max_size=3,
)


def cluster(*, takes_over: bool) -> SlurmClusterObject:
    annotations = {TAKE_OVER_ANNOTATION: "true"} if takes_over else {}
    meta = {"name": "slurm", "namespace": "slurm", "uid": UID, "annotations": annotations}
    body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": SIX_LINES}
    return msgspec.convert(body, SlurmClusterObject)


@st.composite
def situations(draw: st.DrawFn) -> ClusterSituation:
    """Contradictory ones, too: objects of two owners, children that are not there."""
    wanted = cluster(takes_over=draw(st.booleans()))
    desired = expanding.expand(wanted)
    existing: dict[tuple[str, str], OwnershipMetadata] = {}
    for body in desired:
        if draw(st.booleans()):
            meta: dict[str, Any] = {
                "name": body["metadata"]["name"],
                "namespace": "slurm",
                "uid": f"uid-{body['kind']}",
                "ownerReferences": draw(OWNERS),
                "managedFields": draw(MANAGED),
            }
            if draw(st.booleans()):
                meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            existing[planning.object_id(body)] = msgspec.convert(meta, OwnershipMetadata)
    children = draw(st.lists(st.tuples(KINDS, NAMES), max_size=4))
    return ClusterSituation(cluster=wanted, desired=desired, existing=existing, children=children)


@settings(deadline=None)
@given(situations())
def test_whatever_there_is_nothing_is_written_or_deleted_on_doubt(
    situation: ClusterSituation,
) -> None:
    plan = planning.plan(situation)

    assert plan == planning.plan(situation)
    desired = {planning.object_id(body) for body in situation.desired}
    if plan.refused or plan.late:
        assert not plan.unwanted
    if plan.refused:
        assert not plan.objects
    may_go = {*situation.children, *map(planning.object_id, _extra(situation))}
    assert {planning.object_id(body) for body in plan.unwanted} <= may_go - desired
    for planned in plan.objects:
        existing = situation.existing.get(planning.object_id(planned.remaining.body))
        assert planned.uid == (existing.uid if existing else "")
        owner = planning.object_owner(situation.cluster.metadata)
        if existing is not None and not owner.takes_over:
            assert ownership.held_by(existing, MANAGER) is not None


def _extra(situation: ClusterSituation) -> tuple[dict[str, Any], ...]:
    return expanding.extra_objects(situation.cluster.metadata)


@given(st.dictionaries(NAMES, st.booleans()))
def test_a_deleted_cluster_stays_while_it_has_workers_and_deletes_only_its_own(
    node_sets: dict[str, bool],
) -> None:
    plan = planning.plan_release("slurm", node_sets)

    assert bool(plan.waits) is bool(node_sets)
    assert {name for name, is_ours in node_sets.items() if is_ours} == {
        body["metadata"]["name"] for body in plan.unwanted
    }


def test_what_was_just_written_is_not_ready_by_what_was_seen_before() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = ClusterLeaders(clock)
        leaders.api.create_cluster(SIX_LINES)
        await leaders.lead()
        assert "True" == leaders.api.told("Ready")[0]

        leaders.api.change("SlurmCluster", "slurm", nodes=[{"name": "cpu", "replicas": 3}])
        leaders.api._tell = lambda *_, **__: None  # type: ignore[method-assign]  # watches lag
        leaders.api.tell_all = lambda: None  # type: ignore[method-assign]  # and so do the others
        await leaders.lead(for_s=2)
        message = "NodeSet slurm-worker-cpu: its last change has not been processed yet"
        assert ("False", "NotReady", message) == leaders.api.told("Ready")

    run(main)


def test_a_name_that_others_have_is_seen_before_anything_is_written() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = ClusterLeaders(clock)
        leaders.api.create_cluster(SIX_LINES)
        await leaders.lead()
        taken = leaders.api.of("LoginSet")["slurm-login"]
        taken["metadata"]["managedFields"] = [
            {"manager": "argocd", "operation": "Apply", "fieldsV1": {}}
        ]
        leaders.api.change("SlurmCluster", "slurm", nodes=[{"name": "cpu", "replicas": 3}])
        await leaders.lead()
        assert "NotOurs" == leaders.api.told("Accepted")[1]
        assert 2 == leaders.api.of("NodeSet")["slurm-worker-cpu"]["spec"]["replicas"]

    run(main)
