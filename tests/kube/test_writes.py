"""What the thin calls do on a real API server, the second time too."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from bridge.kube import decode, patches, writes
from sandbox.client import Sandbox
from slurmruntime.kube import errors, objects
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.leases import KubeLeases
from slurmruntime.model.leases import LeaseRecord
from slurmruntime.model.objects import Owner
from slurmruntime.process.clock import SystemClock
from slurmruntime.process.events import EventRecorder, EventType, Reporter
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, KubeNode, PodUid
from tests.kube import kube_nodes
from tests.kube.conftest import Calls, CreatePod
from tests.kube.manifests import container, pod

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
OTHER_UID = PodUid("00000000-0000-0000-0000-000000000000")
HERE, THERE = KubeNode("plain-0"), KubeNode("node-0")


async def test_bind_binds_and_may_be_repeated(client: KubeClient, create_pod: CreatePod) -> None:
    created = create_pod(pod("a", gates=(), finalizers=()))

    for _ in range(2):
        await writes.bind(
            client, namespace=created.namespace, name="a", uid=created.uid, kube_node=HERE
        )

    assert HERE == (await decode.get_pod(client, created.namespace, "a")).kube_node


async def test_bind_to_another_node_is_refused(client: KubeClient, create_pod: CreatePod) -> None:
    created = create_pod(pod("a", gates=(), finalizers=()))
    where = {"namespace": created.namespace, "name": "a"}
    await writes.bind(client, **where, uid=created.uid, kube_node=HERE)

    with pytest.raises(errors.AlreadyBound, match=r"wanted node node-0, but .* bound to plain-0"):
        await writes.bind(client, **where, uid=created.uid, kube_node=THERE)


async def test_bind_of_a_gated_pod_or_a_namesake_is_a_conflict(
    client: KubeClient, create_pod: CreatePod
) -> None:
    gated = create_pod(pod("gated"))
    free = create_pod(pod("free", gates=()))

    for name, uid in (("gated", gated.uid), ("free", OTHER_UID)):
        with pytest.raises(errors.Conflict) as refusal:
            await writes.bind(client, namespace=gated.namespace, name=name, uid=uid, kube_node=HERE)
        assert not isinstance(refusal.value, errors.AlreadyBound)

    assert not (await decode.get_pod(client, free.namespace, "free")).is_bound


async def test_bind_of_a_pod_that_is_gone_says_so(client: KubeClient, namespace: str) -> None:
    with pytest.raises(errors.NotFound):
        await writes.bind(client, namespace=namespace, name="never", uid=OTHER_UID, kube_node=HERE)


async def test_delete_is_for_one_uid_and_may_be_repeated(
    client: KubeClient, create_pod: CreatePod
) -> None:
    created = create_pod(pod("a", finalizers=()))
    where = {"namespace": created.namespace, "name": "a"}

    await writes.delete_pod(client, **where, uid=OTHER_UID, grace_s=0)
    assert not (await decode.get_pod(client, created.namespace, "a")).is_deleting

    for _ in range(2):
        await writes.delete_pod(client, **where, uid=created.uid, grace_s=0)
    with pytest.raises(errors.NotFound):
        await decode.get_pod(client, created.namespace, "a")


async def test_delete_of_one_version_leaves_any_other_alone(
    client: KubeClient, create_pod: CreatePod
) -> None:
    created = create_pod(pod("a"))
    labelled = await writes.patch_pod(client, created, patches.label_job_id(created, JobId(1)))

    async def delete(version: str) -> None:
        await writes.delete_pod(
            client, namespace=created.namespace, name="a", uid=created.uid, version=version
        )

    with pytest.raises(errors.Conflict):
        await delete(created.resource_version)
    assert not (await decode.get_pod(client, created.namespace, "a")).is_deleting

    await delete(labelled.resource_version)
    assert (await decode.get_pod(client, created.namespace, "a")).is_deleting


async def test_events_are_what_kubectl_describe_shows(
    client: KubeClient, control_plane: Sandbox, create_pod: CreatePod
) -> None:
    created = create_pod(pod("a"))
    events = EventRecorder(
        kube=client,
        reporter=Reporter(controller="slurm-bridge.dev/extender", instance="extender-0"),
        clock=SystemClock(),
    )
    record = partial(
        events.record, severity=EventType.WARNING, action="Submit", reason="InvalidAccount"
    )

    await record(created.about, note="Slurm: Invalid account — " + "ä" * 2000)
    node = await kube_nodes.read(client, THERE)
    await record(node.about, note="seen on the node")

    shown = control_plane.kubectl("describe", "pod", "a", "-n", created.namespace)
    line = next(line for line in shown.splitlines() if "InvalidAccount" in line)
    assert "Slurm: Invalid account — ää" in line
    assert line.endswith("ä…")
    assert "slurm-bridge.dev/extender" in line
    assert "seen on the node" in control_plane.kubectl("describe", "node", THERE)


async def test_objects_are_found_by_what_an_owner_reference_says(
    client: KubeClient, control_plane: Sandbox, calls: Calls, namespace: str
) -> None:
    root = control_plane.admin.create(
        f"/api/v1/namespaces/{namespace}/configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "root"}},
    )["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "root", "uid": root}
    created = control_plane.admin.create(
        f"/apis/batch/v1/namespaces/{namespace}/jobs",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": "train",
                "annotations": {"slurmjob.slinky.slurm.net/account": "physics"},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {
                "template": {"spec": {"containers": [container()], "restartPolicy": "Never"}},
                "suspend": True,
            },
        },
    )
    reader = objects.Objects(client)

    found = await reader.get("batch/v1", "Job", namespace, "train")
    node = await reader.get("v1", "Node", "", "node-0")
    above = await reader.get("v1", "ConfigMap", namespace, "root")

    assert created["metadata"]["uid"] == found.uid
    assert "physics" == found.annotations["slurmjob.slinky.slurm.net/account"]
    assert Owner(api_version="v1", kind="ConfigMap", name="root", uid=root) == found.owner
    assert (root, None) == (above.uid, above.owner)
    assert "node-0" == node.name
    assert 1 == calls.count(("GET /api", "ok"))
    assert namespace == (await objects.get_namespace(client, namespace)).name


@pytest.mark.parametrize(
    ("api_version", "kind", "name"),
    [
        pytest.param("batch/v1", "Job", "never", id="no such object"),
        pytest.param("batch/v1", "Jobb", "never", id="no such kind"),
        pytest.param("jobset.x-k8s.io/v1alpha2", "JobSet", "never", id="no such group"),
        pytest.param("", "Job", "never", id="no group at all"),
        pytest.param("v1", "ConfigMap", "../secrets/key", id="a path for a name"),
        pytest.param("v1", "ConfigMap", "%2e%2e%2fsecrets%2fkey", id="a quoted path"),
        pytest.param("v1/namespaces/kube-system", "Secret", "key", id="a path for a version"),
    ],
)
async def test_an_owner_that_is_not_there_is_not_found(
    client: KubeClient, namespace: str, api_version: str, kind: str, name: str
) -> None:
    with pytest.raises(errors.NotFound):
        await objects.Objects(client).get(api_version, kind, namespace, name)


async def test_no_name_leads_to_another_object(client: KubeClient, calls: Calls) -> None:
    """Whatever the text, what is asked for is a pod's binding."""
    for name in ("a/eviction", "a%2Feviction", "..", ""):
        with pytest.raises(errors.NotFound, match="is not a valid object name"):
            await writes.bind(client, namespace="default", name=name, uid=OTHER_UID, kube_node=HERE)
    assert [] == calls

    with pytest.raises(errors.NotFound):
        await writes.bind(
            client, namespace="default", name="a?dryRun=All#", uid=OTHER_UID, kube_node=HERE
        )
    assert [("POST pods/binding", "not_found")] == calls


RECORD = LeaseRecord(
    holder="extender-0",
    acquired_at=NOON,
    renewed_at=NOON.replace(microsecond=123456),
    duration_s=15,
    transitions=3,
)


async def test_a_lease_is_read_as_it_was_written(client: KubeClient, namespace: str) -> None:
    leases = KubeLeases(client, namespace)
    assert await leases.get("extender") is None

    await leases.create("extender", RECORD)

    found = await leases.get("extender")
    assert found is not None
    assert RECORD == replace(found, resource_version="")


async def test_a_lease_is_written_by_one_of_two(client: KubeClient, namespace: str) -> None:
    leases = KubeLeases(client, namespace)
    await leases.create("extender", RECORD)
    with pytest.raises(errors.Conflict):
        await leases.create("extender", RECORD)
    found = await leases.get("extender")
    assert found is not None

    written = await leases.replace("extender", replace(found, holder=""))
    assert written == await leases.get("extender")
    with pytest.raises(errors.Conflict):
        await leases.replace("extender", replace(found, holder="extender-1"))

    now = await leases.get("extender")
    assert now is not None
    assert "" == now.holder


async def test_a_lease_made_by_hand_is_free(
    client: KubeClient, control_plane: Sandbox, namespace: str
) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "bare"}}
    control_plane.admin.create(path, body)

    found = await KubeLeases(client, namespace).get("bare")

    assert found is not None
    assert ("", 0, 0) == (found.holder, found.duration_s, found.transitions)


async def test_a_finalizer_is_removed_wherever_it_stands_by_now(
    client: KubeClient, create_pod: CreatePod
) -> None:
    """A Job's tracking goes at the same time, and a finalizer is removed by its place in the list."""
    seen = create_pod(pod("a", finalizers=("example.com/tracking", names.FINALIZER)))
    body = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/tracking"]}}
    await writes.patch_pod(client, seen, patches.MergePatch(body))

    released = await writes.release_pod(client, seen)

    assert () == released.finalizers


async def test_a_finalizer_that_has_gone_already_is_no_failure(
    client: KubeClient, create_pod: CreatePod
) -> None:
    seen = create_pod(pod("a", finalizers=(names.FINALIZER,)))
    once = await writes.release_pod(client, seen)

    assert once == await writes.release_pod(client, seen)

    with pytest.raises(errors.NotFound):
        await writes.release_pod(client, replace(seen, uid=OTHER_UID))
