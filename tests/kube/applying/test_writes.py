"""Server-side apply on a real API server: once, not against others, and not against a stranger's object."""

from collections.abc import Mapping
from typing import Any

import pytest

from sandbox.client import Sandbox
from slurmruntime.kube import errors
from slurmruntime.kube.apply import ownership, writes
from slurmruntime.kube.apply.ownership import Ownership
from slurmruntime.kube.client import KubeClient

OURS = "slurm-bridge-operator"


def config_map(namespace: str, name: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"a": "b"}, **more}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "1"}}


def stateful_set(namespace: str, owner: str) -> dict[str, Any]:
    """With all that the API server writes in another way: amounts, defaults, keyed and atomic lists."""
    container = {
        "name": "main",
        "image": "i",
        "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
        "ports": [{"containerPort": 6817}],
        "env": [{"name": "A", "value": ""}],
        "args": [],
    }
    labels = {"app": "x"}
    claim = {
        "metadata": {"name": "state"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "4096Mi"}},
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": "slurm-controller",
            "namespace": namespace,
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": "owner",
                    "uid": owner,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "serviceName": "x",
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {}},
                "spec": {
                    "containers": [container],
                    "volumes": [{"name": "run", "emptyDir": {}}],
                    "tolerations": [{"key": "a", "operator": "Exists"}],
                    "securityContext": {"fsGroup": 401},
                },
            },
            "volumeClaimTemplates": [claim],
        },
    }


async def judged(client: KubeClient, body: Mapping[str, Any], owner: str) -> Ownership:
    found = await writes.find(client, body)
    return ownership.judge(found, body, owner_uid=owner, manager=OURS, takes_over=False).ownership


async def test_what_was_applied_is_in_force_though_others_write_their_fields_there(
    client: KubeClient, control_plane: Sandbox, namespace: str
) -> None:
    owner = (await writes.apply(client, config_map(namespace, "owner"), manager=OURS)).uid
    body = stateful_set(namespace, owner)
    assert await judged(client, body, owner) is Ownership.ABSENT
    await writes.apply(client, body, manager=OURS)
    assert await judged(client, body, owner) is Ownership.IN_FORCE

    admin, where = control_plane.admin, writes.path(body)
    note = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
    admin.patch(where, {"spec": {"template": {"metadata": {"annotations": note}}}})
    assert await judged(client, body, owner) is Ownership.IN_FORCE

    admin.patch(where, {"spec": {"replicas": 3}})
    assert await judged(client, body, owner) is Ownership.DIFFERENT
    found = await writes.find(client, body)
    assert found is not None
    await writes.apply(client, body, manager=OURS, uid=found.uid)
    assert await judged(client, body, owner) is Ownership.IN_FORCE
    after = admin.get(where)
    assert after["spec"]["replicas"] == 1
    assert after["spec"]["template"]["metadata"]["annotations"] == note


async def test_applying_twice_writes_once(
    client: KubeClient, control_plane: Sandbox, namespace: str
) -> None:
    """So a reply may be lost."""
    body = config_map(namespace, "files")
    uid = (await writes.apply(client, body, manager=OURS)).uid
    before = control_plane.admin.get(writes.path(body))

    await writes.apply(client, body, manager=OURS)
    await writes.apply(client, body, manager=OURS, uid=uid)

    assert control_plane.admin.get(writes.path(body)) == before


async def test_nothing_is_applied_over_an_object_that_was_not_seen(
    client: KubeClient, control_plane: Sandbox, namespace: str
) -> None:
    mine = config_map(namespace, "files")
    where = f"/api/v1/namespaces/{namespace}/configmaps"
    theirs = control_plane.admin.create(where, {**mine, "data": {"x": "theirs"}})
    assert await judged(client, mine, "uid") is Ownership.NOT_OURS

    with pytest.raises(errors.Conflict):  # it came after we had looked
        await writes.apply(client, mine, manager=OURS)
    with pytest.raises(errors.Conflict):  # it is another one than we have seen
        await writes.apply(client, mine, manager=OURS, uid="f00")
    with pytest.raises(errors.Conflict):
        await writes.delete(client, mine, uid="f00")

    left = control_plane.admin.get(f"{where}/files")
    assert left["data"] == {"x": "theirs"}
    uid = theirs["metadata"]["uid"]
    await writes.apply(client, mine, manager=OURS, uid=uid)
    assert control_plane.admin.get(f"{where}/files")["data"] == {"x": "1"}
    with pytest.raises(errors.Conflict):  # it has changed since we looked
        await writes.delete(client, mine, uid=uid, version=theirs["metadata"]["resourceVersion"])
    assert control_plane.admin.get(f"{where}/files")["data"] == {"x": "1"}
    await writes.delete(client, mine, uid=uid)
    await writes.delete(client, mine, uid=uid)  # it is gone
    assert await writes.find(client, mine) is None


async def test_an_object_is_detached_from_one_owner_and_from_no_other(
    client: KubeClient, control_plane: Sandbox, namespace: str
) -> None:
    admin, references = control_plane.admin, []
    for name in ("first", "second"):
        uid = (await writes.apply(client, config_map(namespace, name), manager=OURS)).uid
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
        references.append(owner)
    body = config_map(namespace, "files", ownerReferences=references)
    await writes.apply(client, body, manager=OURS)

    await writes.detach(client, body, owner_uid=references[0]["uid"])
    await writes.detach(client, body, owner_uid=references[0]["uid"])  # the reply was lost

    left = admin.get(writes.path(body))["metadata"]["ownerReferences"]
    assert [owner["name"] for owner in left] == ["second"]
    await writes.detach(client, config_map(namespace, "gone"), owner_uid=references[0]["uid"])


async def test_a_misspelt_field_is_refused_with_its_name(
    client: KubeClient, namespace: str
) -> None:
    body = config_map(namespace, "files")
    body["daat"] = {}

    with pytest.raises(errors.Rejected, match="daat"):
        await writes.apply(client, body, manager=OURS)
