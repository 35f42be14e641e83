"""Objects of another namespace that name the uid of somebody's NodeSet, Controller or SlurmCluster as their controller's.

Kubernetes deletes them at some time, but a finalizer keeps them, and more can be created meanwhile.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.attacks import attack
from tests.make.apiserver import Manifest
from tests.slurmoperator.clusters.peers import SIX_LINES, ClusterLeaders
from tests.slurmoperator.daemons.peers import Leaders, controller, part
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, job, names_of, node_set
from tests.virtual_time import VirtualClock, run

WORKER = {"app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "gpu"}
CORDONED = {"nodeset.slinky.slurm.net/pod-cordon": "true"}
DEAR = {"nodeset.slinky.slurm.net/pod-deletion-cost": "1000000"}


def forged(name: str, *, hostname: str, annotations: dict[str, str]) -> Manifest:
    """A running pod of namespace `mallory`, as a user with the role `edit` there can have it."""
    owner = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "name": "gpu"}
    meta: dict[str, Any] = {
        "name": name,
        "namespace": "mallory",
        "uid": f"uid-{name}",
        "labels": WORKER,
        "annotations": annotations,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["mallory.example/stays"],
        "ownerReferences": [{**owner, "uid": "uid-gpu", "controller": True}],
    }
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2025-12-31T00:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            "hostname": hostname,
            "nodeName": "somewhere",
            "containers": [{"image": "sleep"}],
        },
        "status": {"phase": "Running", "conditions": [ready]},
    }


def put_surplus(operator: Operator) -> None:
    for name in ("gpu-7", "gpu-8"):
        operator.api.put(forged(name, hostname=name, annotations=DEAR))
        operator.slurm.register(name)


def put_cordoned(operator: Operator) -> None:
    operator.api.put(forged("gpu-9", hostname="gpu-0", annotations=CORDONED))


@pytest.mark.parametrize(
    "put",
    [
        attack(
            "surplus",
            "have another namespace's workers of Slurm drained and deleted as surplus, by pods of one's own that name its NodeSet as their owner",
            "a NodeSet's workers are the pods of its own namespace, and its uid alone makes no other pod one",
            put_surplus,
        ),
        attack(
            "cordoned",
            "have another namespace's worker drained in Slurm by a cordoned pod of one's own that has its host name and its owner",
            "a NodeSet's workers are the pods of its own namespace, and its uid alone makes no other pod one",
            put_cordoned,
        ),
    ],
)
def test_a_pod_of_another_namespace_is_nobodys_worker(put: Callable[[Operator], None]) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "gpu-1")
        await operator.lead(for_s=SETTLED_S)
        before = len(operator.trouble.writes)

        await operator.lead(for_s=3 * SETTLED_S, then={SETTLED_S: lambda: put(operator)})

        assert {"gpu-0", "gpu-1"} <= {*names_of(operator.api.pods)}
        assert ["", ""] == [operator.slurm.nodes.by_name[f"gpu-{n}"].reason for n in (0, 1)]
        assert [] == operator.trouble.writes[before:]
        assert 2 == operator.api.status("gpu")["replicas"]

    run(main)


@pytest.mark.attack(
    "keep another namespace's NodeSet from being deleted by a pod of one's own that names it as its owner",
    "a NodeSet waits for the pods of its own namespace only",
)
def test_a_deleted_node_set_does_not_wait_for_pods_of_another_namespace() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        put_surplus(operator)
        (path,) = (at for at, found in operator.api.objects.items() if found["kind"] == "NodeSet")
        leaving = {**operator.api.objects[path]}
        leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        operator.api._store(path, leaving)

        await operator.lead(for_s=3 * SETTLED_S)

        assert [] == [*operator.api.of("NodeSet")]
        assert ["gpu-7", "gpu-8"] == names_of(operator.api.pods)

    run(main)


def owned(made: Manifest, uid: str) -> Manifest:
    """The object in another namespace, with an owner of this one."""
    reference = {"apiVersion": "v1", "kind": "Controller", "name": "site", "uid": uid}
    made["metadata"] |= {
        "namespace": "mallory",
        "uid": "uid-mallory",
        "ownerReferences": [{**reference, "controller": True}],
    }
    return made


async def looks_at_part(clock: VirtualClock, *, forge: bool) -> int:
    leaders = Leaders(clock)
    leaders.api.put(controller())
    await leaders.lead()
    name = {"name": "x", "generation": 1}
    made = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": name}
    forged_set = owned({**made, "spec": {"replicas": 1}}, "uid-Controller-site")

    def put() -> None:
        forged_set["metadata"]["generation"] += 1
        leaders.api.put(forged_set)

    return await reads(leaders.api, lambda: leaders.lead(for_s=100), put if forge else None)


async def looks_at_cluster(clock: VirtualClock, *, forge: bool) -> int:
    leaders = ClusterLeaders(clock)
    leaders.api.create_cluster(SIX_LINES)
    await leaders.lead()
    forged_part = owned(part("RestApi"), "uid-slurm")

    def put() -> None:
        forged_part["metadata"]["generation"] += 1
        leaders.api.put(forged_part)

    return await reads(leaders.api, lambda: leaders.lead(for_s=100), put if forge else None)


async def reads(api: Any, lead: Callable[[], Any], put: Callable[[], None] | None) -> int:
    """How often a leader reads objects of the namespace while others are put in another one."""
    read, paths = api._read, list[str]()

    def reading(method: str, path: str) -> Manifest:
        paths.append(path)
        answer: Manifest = read(method, path)
        return answer

    api._read = reading
    if put:
        for second in range(5, 45):
            asyncio.get_running_loop().call_later(second, put)
    await lead()
    return sum("/namespaces/slurm/" in path for path in paths)


@pytest.mark.parametrize(
    "looks",
    [
        attack(
            "daemon",
            "have slurm-operator look at another namespace's Controller again and again, by a StatefulSet of one's own that names it as its owner",
            "an owner is in the namespace of what it owns",
            looks_at_part,
        ),
        attack(
            "cluster",
            "have slurm-operator look at another namespace's SlurmCluster again and again, by a RestApi of one's own that names it as its owner",
            "an owner is in the namespace of what it owns",
            looks_at_cluster,
        ),
    ],
)
def test_what_another_namespace_owns_wakes_nobody(looks: Callable[..., Any]) -> None:
    counts: list[int] = []

    async def main(clock: VirtualClock) -> None:
        counts.append(await looks(clock, forge=False))

    async def forging(clock: VirtualClock) -> None:
        counts.append(await looks(clock, forge=True))

    run(main)
    run(forging)
    assert counts[0] > 0
    assert counts[0] == counts[1]
