"""What each patch does to a pod or node of a real API server, and that it does nothing to any other."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle.actions import Cause
from bridge.domain.model.pods import Condition, Phase, Pod
from bridge.kube import decode, patches, writes
from sandbox.client import Sandbox
from slurmruntime.kube import errors
from slurmruntime.kube.client import STRATEGIC_MERGE_PATCH, KubeClient
from slurmruntime.model.nodes import NodeCondition, Taint
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, KubeNode, PodUid, Sluid
from tests.kube import kube_nodes
from tests.kube.conftest import CreatePod
from tests.kube.manifests import Manifest, pod
from tests.make import lives

NODE = KubeNode("node-2")
JOB = JobId(4711)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def assignment(pod: Pod) -> patches.JsonPatch:
    return patches.assign(pod, job_id=JOB, kube_node=NODE, sluid=None, grant="")


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(assignment, id="assign"),
        pytest.param(patches.release, id="release"),
        pytest.param(lambda p: patches.label_job_id(p, JOB), id="label_job_id"),
        pytest.param(lambda p: patches.adopt(p, job_id=JOB, sluid=None), id="adopt"),
    ],
)
async def test_a_namesake_is_never_patched(
    client: KubeClient,
    create_pod: CreatePod,
    patch: object,
) -> None:
    created = create_pod(pod("a", labels={"app": "x"}))
    other = replace(created, uid=PodUid("00000000-0000-0000-0000-000000000000"))
    assert callable(patch)

    with pytest.raises(errors.Conflict):
        await writes.patch_pod(client, other, patch(other))

    now = await decode.get_pod(client, created.namespace, "a")
    assert created.resource_version == now.resource_version


async def test_a_namesake_gets_no_status(client: KubeClient, create_pod: CreatePod) -> None:
    created = create_pod(pod("a"))
    other = replace(created, uid=PodUid("00000000-0000-0000-0000-000000000000"))

    for patch in (
        patches.pod_condition(
            other, names.ALLOCATED_CONDITION, holds=False, reason="Priority", message="", now=NOON
        ),
        patches.evicted(other, Cause.PREEMPTED, "", NOON),
        patches.end_pod(other, Cause.CANCELLED, "", NOON),
    ):
        with pytest.raises(errors.Conflict):
            await writes.patch_pod_status(client, other, patch)

    now = await decode.get_pod(client, created.namespace, "a")
    assert created.resource_version == now.resource_version


async def test_adopt_writes_the_job_that_stands_in_and_hears_the_operator(
    client: KubeClient, create_pod: CreatePod
) -> None:
    lost = {
        names.SLUID_ANNOTATION: "lost",
        names.WHEN_LOST_ANNOTATION: "restore",
        names.CPUS_ANNOTATION: "0-1",
        "other": "x",
    }
    created = create_pod(pod("a", labels={names.JOB_ID_LABEL: "1"}, annotations=lost))

    adopted = await writes.patch_pod(
        client, created, patches.adopt(created, job_id=JOB, sluid=Sluid("new"))
    )

    assert (JOB, "new", "") == (adopted.job_id, adopted.sluid, adopted.when_lost)
    assert "x" == adopted.annotations["other"]
    assert names.CPUS_ANNOTATION not in adopted.annotations  # Slurm may have given others


async def test_who_was_overtaken_adopts_nothing(client: KubeClient, create_pod: CreatePod) -> None:
    notes = {names.SLUID_ANNOTATION: "lost"}
    created = create_pod(pod("a", labels={names.JOB_ID_LABEL: "1"}, annotations=notes))
    first = patches.adopt(created, job_id=JOB, sluid=Sluid("new"))
    await writes.patch_pod(client, created, first)

    late = patches.adopt(created, job_id=JobId(1), sluid=Sluid("late"))
    with pytest.raises(errors.Conflict):
        await writes.patch_pod(client, created, late)

    now = await decode.get_pod(client, created.namespace, "a")
    assert (JOB, "new") == (now.job_id, now.sluid)


async def test_release_removes_our_finalizer_and_no_other(
    client: KubeClient, create_pod: CreatePod
) -> None:
    created = create_pod(
        pod("a", finalizers=("example.com/before", names.FINALIZER, "example.com/after"))
    )

    released = await writes.patch_pod(client, created, patches.release(created))

    assert ("example.com/before", "example.com/after") == released.finalizers
    with pytest.raises(errors.Conflict):
        await writes.patch_pod(client, created, patches.release(created))


async def test_release_of_a_deleted_pod_lets_it_go(
    client: KubeClient, create_pod: CreatePod
) -> None:
    created = create_pod(pod("a"))
    where = {"namespace": created.namespace, "name": "a"}
    await writes.delete_pod(client, **where, uid=created.uid, grace_s=0)
    deleting = await decode.get_pod(client, created.namespace, "a")
    assert deleting.is_deleting

    await writes.patch_pod(client, deleting, patches.release(deleting))

    with pytest.raises(errors.NotFound):
        await decode.get_pod(client, created.namespace, "a")


async def test_the_job_id_label_of_a_gated_pod_comes_and_changes(
    client: KubeClient, create_pod: CreatePod
) -> None:
    created = create_pod(pod("a"))

    first = await writes.patch_pod(client, created, patches.label_job_id(created, JOB))
    second = await writes.patch_pod(client, first, patches.label_job_id(first, JobId(4712)))

    assert [JOB, 4712] == [first.job_id, second.job_id]


async def test_a_placed_pods_job_id_label_stays(client: KubeClient, create_pod: CreatePod) -> None:
    gated = create_pod(pod("a"))
    placed = await writes.patch_pod(client, gated, assignment(gated))

    with pytest.raises(errors.Conflict):
        await writes.patch_pod(client, gated, patches.label_job_id(gated, JobId(4712)))

    assert placed == await decode.get_pod(client, gated.namespace, "a")


async def test_end_pod_ends_a_gated_pod_as_disrupted(
    client: KubeClient, control_plane: Sandbox, create_pod: CreatePod
) -> None:
    created = create_pod(pod("a"))

    ended = await writes.patch_pod_status(
        client, created, patches.end_pod(created, Cause.CANCELLED, "cancelled by alice", NOON)
    )

    assert (Phase.FAILED, "SlurmCancelled") == (ended.phase, ended.reason)
    disrupted = Condition(
        type="DisruptionTarget",
        status="True",
        reason="SlurmCancelled",
        message="cancelled by alice",
    )
    assert disrupted == ended.condition("DisruptionTarget")
    shown = control_plane.kubectl("get", "pod", "a", "-n", created.namespace)
    assert "SlurmCancelled" in shown


async def test_end_pod_for_the_pods_own_doing_is_no_disruption(
    client: KubeClient, create_pod: CreatePod
) -> None:
    created = create_pod(pod("a"))

    ended = await writes.patch_pod_status(
        client, created, patches.end_pod(created, Cause.TIME_LIMIT, "too long", NOON)
    )

    assert Phase.FAILED == ended.phase
    assert ended.condition("DisruptionTarget") is None


async def test_end_pod_is_refused_when_the_pod_has_changed_in_any_way(
    client: KubeClient, create_pod: CreatePod
) -> None:
    created = create_pod(pod("a"))
    assigned = await writes.patch_pod(client, created, assignment(created))

    with pytest.raises(errors.Conflict) as refusal:
        await writes.patch_pod_status(
            client, created, patches.end_pod(created, Cause.CANCELLED, "", NOON)
        )

    assert 409 == refusal.value.status
    now = await decode.get_pod(client, created.namespace, "a")
    assert (Phase.PENDING, assigned.resource_version) == (now.phase, now.resource_version)


async def test_a_disruption_may_be_for_one_version_only(
    client: KubeClient, create_pod: CreatePod
) -> None:
    created = create_pod(pod("a"))
    labelled = await writes.patch_pod(client, created, patches.label_job_id(created, JOB))

    def disruption(of: Pod) -> patches.MergePatch:
        return patches.evicted(of, Cause.NODE_FAIL, "", NOON, if_unchanged=True)

    with pytest.raises(errors.Conflict):
        await writes.patch_pod_status(client, created, disruption(created))
    disrupted = await writes.patch_pod_status(client, labelled, disruption(labelled))

    assert disrupted.condition("DisruptionTarget") is not None


async def test_a_pod_that_is_to_blame_is_told_so_by_our_condition_alone(
    client: KubeClient, create_pod: CreatePod
) -> None:
    created = create_pod(pod("a"))

    told = await writes.patch_pod_status(
        client, created, patches.evicted(created, Cause.TIME_LIMIT, "over", NOON)
    )

    assert told.condition("DisruptionTarget") is None
    assert Cause.TIME_LIMIT is outcome.evicted_for(told)


@pytest.mark.parametrize("own", [{}, {"activeDeadlineSeconds": 3600}])
async def test_a_pods_deadline_is_brought_forward_so_that_its_end_is_a_failure(
    client: KubeClient, create_pod: CreatePod, own: Manifest
) -> None:
    created = create_pod(pod("a", **own))

    failing = await writes.patch_pod(client, created, patches.fail(created))
    again = await writes.patch_pod(client, failing, patches.fail(failing))

    assert [1, 1] == [failing.deadline_s, again.deadline_s]


async def test_a_condition_moves_its_time_only_with_its_status(
    client: KubeClient, control_plane: Sandbox, create_pod: CreatePod
) -> None:
    told = create_pod(pod("a"))
    times: list[str] = []
    for hour, (is_allocated, reason) in enumerate(
        [(False, "Priority"), (False, "Resources"), (True, "Allocated")]
    ):
        patch = patches.pod_condition(
            told,
            names.ALLOCATED_CONDITION,
            holds=is_allocated,
            reason=reason,
            message="as Slurm says",
            now=NOON + timedelta(hours=hour),
        )
        told = await writes.patch_pod_status(client, told, patch)
        raw = control_plane.admin.get(f"/api/v1/namespaces/{told.namespace}/pods/a")
        times += [
            c["lastTransitionTime"]
            for c in raw["status"]["conditions"]
            if c["type"] == names.ALLOCATED_CONDITION
        ]

    assert ["2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z", "2026-01-01T14:00:00Z"] == times


async def test_a_condition_written_meanwhile_by_somebody_else_survives(
    client: KubeClient, create_pod: CreatePod
) -> None:
    """As when a kubelet reports: the list it left is longer than the one our patch was made for."""
    created = create_pod(pod("a"))
    foreign = {"type": "example.com/Checked", "status": "True"}
    await client.request(
        "PATCH",
        f"/api/v1/namespaces/{created.namespace}/pods/a/status",
        body={"status": {"conditions": [foreign]}},
        content_type=STRATEGIC_MERGE_PATCH,
    )

    patch = patches.evicted(created, Cause.PREEMPTED, "preempted", NOON)
    patched = await writes.patch_pod_status(client, created, patch)

    ours = {names.ALLOCATED_CONDITION, "DisruptionTarget"}
    assert {"PodScheduled", "example.com/Checked", *ours} == {c.type for c in patched.conditions}


async def test_a_taint_comes_changes_and_goes_among_others(client: KubeClient) -> None:
    node = await kube_nodes.read(client, KubeNode("node-3"))
    ours = Taint(key=names.MANAGED_NODE_TAINT, effect="NoSchedule")
    others = Taint(key="example.com/other", value="x", effect="PreferNoSchedule")
    before = node.taints

    for taint in (others, ours, replace(ours, value="again")):
        node = await writes.patch_node(client, node, patches.taint(node, taint))
    assert (*before, others, replace(ours, value="again")) == node.taints

    node = await writes.patch_node(client, node, patches.untaint(node, ours.key))
    assert (*before, others) == node.taints
    node = await writes.patch_node(client, node, patches.untaint(node, others.key))
    assert before == node.taints


async def test_a_taint_is_refused_when_the_taints_have_changed(client: KubeClient) -> None:
    node = await kube_nodes.read(client, KubeNode("node-1"))
    assert () == node.taints
    first = Taint(key="example.com/first", effect="PreferNoSchedule")
    tainted = await writes.patch_node(client, node, patches.taint(node, first))
    try:
        second = Taint(key="example.com/second", effect="PreferNoSchedule")
        with pytest.raises(errors.Conflict):
            await writes.patch_node(client, node, patches.taint(node, second))
    finally:
        await writes.patch_node(client, tainted, patches.untaint(tainted, first.key))


async def test_a_cordon_of_ours_comes_and_goes_with_its_mark(client: KubeClient) -> None:
    node = await kube_nodes.read(client, KubeNode("node-2"))
    cordoned = await writes.patch_node(client, node, patches.cordon(node, "drained by ops"))
    assert (True, "drained by ops") == (
        cordoned.is_unschedulable,
        cordoned.annotations[names.CORDON_ANNOTATION],
    )
    with pytest.raises(errors.Conflict):  # somebody else's cordon would become ours
        await writes.patch_node(client, cordoned, patches.cordon(node, "again"))

    lifted = await writes.patch_node(client, cordoned, patches.uncordon(cordoned))
    assert (False, node.annotations) == (lifted.is_unschedulable, lifted.annotations)


async def test_an_uncordon_of_somebodys_is_only_noted(client: KubeClient) -> None:
    node = await kube_nodes.read(client, KubeNode("node-2"))
    cordoned = await writes.patch_node(client, node, patches.cordon(node, "drained by ops"))
    theirs = patches.JsonPatch([{"op": "remove", "path": "/spec/unschedulable"}])
    lifted = await writes.patch_node(client, cordoned, theirs)

    noted = await writes.patch_node(client, lifted, patches.uncordon(lifted))
    assert (False, node.annotations) == (noted.is_unschedulable, noted.annotations)


async def test_a_condition_stands_beside_the_kubelets(client: KubeClient) -> None:
    node = await kube_nodes.read(client, KubeNode("node-2"))
    wanted = NodeCondition(type="example.com/State", status="False", reason="Drained", message="x")

    patch = patches.node_condition(node, wanted, NOON)
    told = await writes.patch_node_status(client, node, patch)
    assert (wanted, True) == (told.condition(wanted.type), told.is_ready)
    assert {c.type for c in node.conditions} < {c.type for c in told.conditions}

    removal = patches.remove_node_condition(told, wanted.type)
    gone = await writes.patch_node_status(client, told, removal)
    assert (None, True) == (gone.condition(wanted.type), gone.is_ready)


def test_a_placed_pod_is_kept_from_autoscalers_and_a_users_own_word_stays() -> None:
    mine = {"karpenter.sh/do-not-disrupt": "false"}
    plain, own = (
        patches.assign(
            replace(lives.gated(), annotations=annotations),
            job_id=JOB,
            kube_node=NODE,
            sluid=None,
            grant="",
        )
        for annotations in ({"a": "b"}, mine)
    )

    for key in names.AUTOSCALERS:
        assert key.replace("/", "~1") in str(plain)
    assert "do-not-disrupt" not in str(own)
    assert "safe-to-evict" in str(own)
