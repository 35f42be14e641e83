"""A NodeSet on a real API server and a real Slurm: created, scaled, drained and deleted, and no job is lost.

KWOK plays the pods; the workers' nodes in Slurm are external ones, which need no slurmd.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridge.domain.model.jobs import JobPhase
from bridge.reconcile.program import opened
from bridge.settings.schema import Settings
from bridge.slurm import jobs, nodes
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmoperator.nodesets.assembly import NodeSets
from slurmoperator.nodesets.plan.placing import HOST_ANNOTATION
from slurmoperator.objects.definitions import definitions
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey, host_name
from slurmoperator.rendering.node_sets.claims import with_claims
from slurmoperator.rendering.node_sets.worker import pin_to_node
from slurmruntime.leading.lease import Accession
from slurmruntime.model.nodes import SlurmNodeSpec
from slurmruntime.process import lifetime
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import SlurmNode
from slurmruntime.values.names import AUTOSCALERS
from tests.servers import until, wait_until
from tests.slurm.placeholders import in_phase, spec
from tests.slurmoperator.examples import BY_NAME, manifest, path

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodesets.slinky.slurm.net"
NODE_SET = BY_NAME["NodeSet"]
DEADLINE_S = 90.0


@pytest.fixture
def nodesets(control_plane: Sandbox, namespace: str) -> Iterator[str]:
    """The path of NodeSets in a namespace of their own; another file may have had the definition."""
    admin = control_plane.admin
    where, name = DEFINITION.rsplit("/", 1)
    wait_until(lambda: not exists(admin, DEFINITION), DEADLINE_S, sandbox=control_plane)
    admin.create(where, next(d for d in definitions() if d["metadata"]["name"] == name))
    served = path(NODE_SET, namespace)
    wait_until(lambda: is_served(admin, served), DEADLINE_S, sandbox=control_plane)
    yield served
    with contextlib.suppress(ApiError):  # it is there only if the test failed
        admin.patch(f"{served}/gpu", {"metadata": {"finalizers": None}})
    admin.delete(DEFINITION)
    wait_until(lambda: not exists(admin, DEFINITION), DEADLINE_S, sandbox=control_plane)


def exists(admin: Api, where: str) -> bool:
    try:
        return bool(admin.get(where))
    except ApiError as error:
        if error.status != 404:
            raise
        return False


def is_served(admin: Api, where: str) -> bool:
    """Whether it can be listed; the API server says 404 and then 429 until then."""
    try:
        return bool(admin.get(where))
    except ApiError:
        return False


@asynccontextmanager
async def operator(kube: Sandbox, slurm: Sandbox, controller: str) -> AsyncIterator[None]:
    """The process, as the only candidate for the lease."""
    namespace = controller.partition("/")[0]
    settings = Settings.model_validate(
        {
            "kubernetes": {"kubeconfig": str(kube.kubeconfig), "namespace": namespace},
            "slurm": {"url": slurm.slurmrestd_url, "token_file": str(slurm.token_file)},
            "operator": {"controller": controller},
            "health": {"listen": "127.0.0.1:0"},
        }
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(run(settings, stop))
        try:
            yield
        finally:
            stop.set()


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """The controller of NodeSets alone."""
    async with opened("operator", settings) as program:
        node_sets = NodeSets(program, worker_pod, lambda _: 0)

        async def lead(until: asyncio.Event, _accession: Accession) -> None:
            await node_sets.control(until)

        await lifetime.run_parts(
            program.health_part(),
            program.token_part(),
            *node_sets.parts(),
            program.leader_part(lead),
            stop=stop,
        )


def worker_pod(of: NodeSetObject, key: WorkerKey, _key_step: int) -> Mapping[str, Any]:
    container = {"name": "slurmd", "image": "example.test/slurmd"}
    spec = {"hostname": host_name(of, key), "containers": [container]}
    return {"spec": with_claims(of, key, pin_to_node(key, spec))}


@asynccontextmanager
async def registered(client: SlurmClient, names: list[str]) -> AsyncIterator[None]:
    """The nodes as slurmd would register them."""
    for name in names:
        node = SlurmNode(name)
        made = SlurmNodeSpec(
            name=node, address="127.0.0.1", cpus=2, memory_mib=2000, features=("slurm-bridge", name)
        )
        await nodes.create(client, made)
    try:
        yield
    finally:
        for name in names:
            await nodes.delete(client, SlurmNode(name))


def workers(kube: Sandbox, namespace: str) -> list[str]:
    """The names of the pods that are not being deleted."""
    found = kube.admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    return sorted(
        each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"]
    )


def spared(kube: Sandbox, namespace: str) -> list[str]:
    """The names of the pods that autoscalers are to leave alone."""
    found = kube.admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    notes = {each["metadata"]["name"]: each["metadata"].get("annotations", {}) for each in found}
    return sorted(name for name, has in notes.items() if AUTOSCALERS.items() <= has.items())


async def test_idle_workers_go_at_once_and_a_busy_one_when_its_job_has_ended(
    control_plane: Sandbox, slurm: Sandbox, namespace: str, nodesets: str
) -> None:
    kube, prefix = control_plane, f"{namespace}-"
    template = {"spec": {"hostname": prefix}}
    made = manifest("NodeSet", "gpu", volumeClaimTemplates=..., template=template, replicas=3)
    made["metadata"]["namespace"] = namespace
    nodes_of_slurm = [f"{prefix}{number}" for number in range(5)]

    def status() -> dict[str, Any]:
        return dict(kube.admin.get(f"{nodesets}/gpu").get("status") or {})

    def scale(replicas: int) -> None:
        kube.kubectl("scale", "nodeset/gpu", f"--replicas={replicas}", "--namespace", namespace)

    async def until_ready(count: int) -> None:
        await until(
            lambda: [count] * 2 == [status().get(key) for key in ("replicas", "readyReplicas")],
            DEADLINE_S,
            sandbox=kube,
        )

    async with (
        SlurmClient.open(slurm.slurmrestd_url, token_file=slurm.token_file) as client,
        registered(client, nodes_of_slurm),
        operator(kube, slurm, f"{namespace}/site"),
    ):
        kube.admin.create(nodesets, made)
        await until_ready(3)
        scale(5)
        await until_ready(5)
        scales = kube.admin.get(f"{nodesets}/gpu/scale")
        assert 5 == scales["status"]["replicas"]

        # Three go: 0 and 2 are idle, and of the busy ones 4 is free first.
        busy = [
            await jobs.submit(
                client, spec(constraints=nodes_of_slurm[number], time_limit_min=minutes)
            )
            for number, minutes in ((1, 60), (3, 60), (4, 50))
        ]
        for job in busy:
            await in_phase(client, job, JobPhase.RUNNING)
        scale(2)
        await until(lambda: len(workers(kube, namespace)) == 3, DEADLINE_S, sandbox=kube)
        assert ["gpu-1", "gpu-3", "gpu-4"] == workers(kube, namespace)
        await until(lambda: "when its jobs have ended" in str(status()["conditions"]), DEADLINE_S)
        drained = await nodes.node(client, SlurmNode(nodes_of_slurm[4]))
        assert "DRAIN" in drained.states
        assert "slurm-operator: scaled in" == drained.reason
        for job in busy:
            await in_phase(client, job, JobPhase.RUNNING)
        assert ["gpu-1", "gpu-3", "gpu-4"] == workers(kube, namespace)
        everybody = ["gpu-1", "gpu-3", "gpu-4"]
        await until(lambda: everybody == spared(kube, namespace), DEADLINE_S, sandbox=kube)

        for job in (busy[0], busy[2]):
            await jobs.cancel(client, job)
        await until_ready(2)
        assert ["gpu-1", "gpu-3"] == workers(kube, namespace)
        await until(lambda: ["gpu-3"] == spared(kube, namespace), DEADLINE_S, sandbox=kube)

        for job in busy:
            await jobs.cancel(client, job)
        kube.admin.delete(f"{nodesets}/gpu")
        await until(lambda: not exists(kube.admin, f"{nodesets}/gpu"), DEADLINE_S, sandbox=kube)
        assert [] == workers(kube, namespace)


async def test_a_volume_that_is_not_bound_is_told_and_outlives_a_scale_in(
    control_plane: Sandbox, slurm: Sandbox, namespace: str, nodesets: str
) -> None:
    kube, prefix = control_plane, f"{namespace}-"
    storage = {
        "storageClassName": "",
        "volumeName": f"{namespace}-0",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    made = manifest(
        "NodeSet",
        "gpu",
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": storage}],
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"},
        template={"spec": {"hostname": prefix}},
        replicas=1,
    )
    made["metadata"]["namespace"] = namespace
    volume = {
        "metadata": {"name": f"{namespace}-0"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": f"/var/lib/{namespace}-0"},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    }
    claim = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/data-gpu-0"

    def status() -> dict[str, Any]:
        return dict(kube.admin.get(f"{nodesets}/gpu").get("status") or {})

    async with (
        SlurmClient.open(slurm.slurmrestd_url, token_file=slurm.token_file) as client,
        registered(client, [f"{prefix}0"]),
        operator(kube, slurm, f"{namespace}/site"),
    ):
        kube.admin.create(nodesets, made)
        await until(
            lambda: "unbound immediate PersistentVolumeClaims" in str(status().get("conditions")),
            DEADLINE_S,
            sandbox=kube,
        )
        kube.admin.create("/api/v1/persistentvolumes", volume)
        await until(lambda: status().get("readyReplicas") == 1, DEADLINE_S, sandbox=kube)
        uid = kube.admin.get(claim)["metadata"]["uid"]
        kube.kubectl("scale", "nodeset/gpu", "--replicas=0", "--namespace", namespace)
        await until(lambda: not workers(kube, namespace), DEADLINE_S, sandbox=kube)
        assert uid == kube.admin.get(claim)["metadata"]["uid"]
        kube.kubectl("scale", "nodeset/gpu", "--replicas=1", "--namespace", namespace)
        await until(lambda: status().get("readyReplicas") == 1, DEADLINE_S, sandbox=kube)
        kube.admin.delete(f"{nodesets}/gpu")
        await until(lambda: not exists(kube.admin, claim), DEADLINE_S, sandbox=kube)
        assert not exists(kube.admin, f"{nodesets}/gpu") or not workers(kube, namespace)
        await until(lambda: not exists(kube.admin, f"{nodesets}/gpu"), DEADLINE_S, sandbox=kube)
    kube.admin.delete(f"/api/v1/persistentvolumes/{namespace}-0")


async def test_each_kubernetes_node_that_is_selected_has_a_worker_that_waits_for_its_job(
    control_plane: Sandbox, slurm: Sandbox, namespace: str, nodesets: str
) -> None:
    kube, label = control_plane, f"{namespace}.example.test/gpu"
    machines = [item["metadata"]["name"] for item in kube.admin.get("/api/v1/nodes")["items"]][:2]
    made = manifest(
        "NodeSet",
        "gpu",
        volumeClaimTemplates=...,
        scalingMode="DaemonSet",
        template={"spec": {"nodeSelector": {label: "yes"}}},
    )
    made["metadata"]["namespace"] = namespace
    hosts = {name: f"{namespace}-{number}" for number, name in enumerate(machines)}
    pods = {name: f"gpu-{name}" for name in machines}

    def marked(name: str, value: str | None) -> None:
        override = {HOST_ANNOTATION: hosts[name] if value else None}
        changes = {"labels": {label: value}, "annotations": override}
        kube.admin.patch(f"/api/v1/nodes/{name}", {"metadata": changes})

    def status() -> dict[str, Any]:
        return dict(kube.admin.get(f"{nodesets}/gpu").get("status") or {})

    async def until_ready(count: int) -> None:
        await until(
            lambda: [count] * 2 == [status().get(key) for key in ("desired", "readyReplicas")],
            DEADLINE_S,
            sandbox=kube,
        )

    async with (
        SlurmClient.open(slurm.slurmrestd_url, token_file=slurm.token_file) as client,
        registered(client, list(hosts.values())),
        operator(kube, slurm, f"{namespace}/site"),
    ):
        first, second = machines
        marked(first, "yes")
        kube.admin.create(nodesets, made)
        await until_ready(1)
        marked(second, "yes")
        await until_ready(2)
        for name in machines:
            pod = kube.admin.get(f"/api/v1/namespaces/{namespace}/pods/{pods[name]}")
            assert (name, hosts[name]) == (pod["spec"]["nodeName"], pod["spec"]["hostname"])

        job = await jobs.submit(client, spec(constraints=hosts[first]))
        await in_phase(client, job, JobPhase.RUNNING)
        marked(first, None)
        await until(
            lambda: "when its jobs have ended" in str(status()["conditions"]),
            DEADLINE_S,
            sandbox=kube,
        )
        assert sorted(pods.values()) == workers(kube, namespace)
        await jobs.cancel(client, job)
        await until(lambda: [pods[second]] == workers(kube, namespace), DEADLINE_S, sandbox=kube)
        await until_ready(1)
        kube.admin.delete(f"{nodesets}/gpu")
        await until(lambda: not exists(kube.admin, f"{nodesets}/gpu"), DEADLINE_S, sandbox=kube)
        marked(second, None)
