"""With the policies in force Kubernetes' own programs go on working, on our pods and on everybody else's.

Real controller manager, scheduler and (KWOK's) kubelets; extender and controllers act with nothing but their service accounts.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from slurmruntime.values import names
from tests.chart.policed import (
    JSON_PATCH,
    STRATEGIC,
    Cluster,
    binding,
    make_namespaces,
    pod,
    pods,
    refusal,
)
from tests.chart.rendering import Manifest
from tests.servers import wait_until

DEADLINE_S = 60
RUN_SECONDS = "sandbox.slurm-bridge.dev/run-seconds"
T = TypeVar("T")


def template(app: str, body: Manifest) -> dict[str, Any]:
    """A pod template with the pod's finalizers and spec."""
    metadata = {**body["metadata"], "labels": {**body["metadata"]["labels"], "app": app}}
    del metadata["name"]
    return {"metadata": metadata, "spec": body["spec"]}


def workload(kind: str, app: str, body: Manifest, **spec: Any) -> Manifest:
    version = {"Job": "batch/v1"}.get(kind, "apps/v1")
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": app}}}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": app},
        "spec": {**selector, **spec, "template": template(app, body)},
    }


def create(cluster: Cluster, body: Manifest) -> str:
    """Create a workload as alice; its path."""
    collection = f"/apis/{body['apiVersion']}/namespaces/{cluster.bridged}/{body['kind'].lower()}s"
    cluster.user().create(collection, body)
    return f"{collection}/{body['metadata']['name']}"


def of(cluster: Cluster, app: str) -> list[Manifest]:
    items: list[Manifest] = cluster.admin.get(pods(cluster.bridged), labelSelector=f"app={app}")[
        "items"
    ]
    return items


def eventually(cluster: Cluster, condition: Callable[[], T]) -> T:
    return wait_until(condition, DEADLINE_S, sandbox=cluster.sandbox)


def wait_for_pods(cluster: Cluster, app: str, count: int) -> list[str]:
    """Their names, once there are that many."""
    eventually(cluster, lambda: len(of(cluster, app)) == count)
    return [item["metadata"]["name"] for item in of(cluster, app)]


def wait_for_phase(cluster: Cluster, path: str, phase: str) -> None:
    eventually(cluster, lambda: cluster.admin.get(path)["status"].get("phase") == phase)


def wait_until_gone(cluster: Cluster, path: str) -> None:
    eventually(cluster, lambda: "not found" in refusal(cluster.admin, "GET", path, None))


def place(cluster: Cluster, name: str, node: str) -> None:
    """What the extender does from Slurm's start of the job to the binding."""
    extender, path = cluster.program("extender"), pods(cluster.bridged, name)
    condition = {"type": names.ALLOCATED_CONDITION, "status": "True"}
    status = {"status": {"conditions": [condition]}}
    cluster.assign(name, node)
    extender.request("PATCH", f"{path}/status", status, content_type=STRATEGIC)
    extender.create(f"{path}/binding", binding(name, node))


def release(cluster: Cluster, name: str) -> None:
    """What the controllers do when nothing of the pod is left in Slurm."""
    controllers, path = cluster.program("controllers"), pods(cluster.bridged, name)
    index = controllers.get(path)["metadata"]["finalizers"].index(names.FINALIZER)
    finalizer = f"/metadata/finalizers/{index}"
    patch = [
        {"op": "test", "path": finalizer, "value": names.FINALIZER},
        {"op": "remove", "path": finalizer},
    ]
    controllers.request("PATCH", path, patch, content_type=JSON_PATCH)


def test_job_of_ours_completes_and_is_collected(cluster: Cluster) -> None:
    body = pod(
        "job",
        metadata={"annotations": {RUN_SECONDS: "0"}},
        spec={"restartPolicy": "Never"},
    )
    path = create(cluster, workload("Job", "job", body))
    (name,) = wait_for_pods(cluster, "job", 1)

    place(cluster, name, "node-0")
    eventually(cluster, lambda: cluster.admin.get(path)["status"].get("succeeded") == 1)
    eventually(
        cluster,
        lambda: of(cluster, "job")[0]["metadata"]["finalizers"] == [names.FINALIZER],
    )
    release(cluster, name)
    cluster.user().delete(path, propagationPolicy="Foreground")

    wait_until_gone(cluster, path)
    assert of(cluster, "job") == []


def test_deployment_of_ours_is_scaled(cluster: Cluster) -> None:
    path = create(cluster, workload("Deployment", "scaled", pod(), replicas=2))
    found = wait_for_pods(cluster, "scaled", 2)

    cluster.sandbox.kubectl("scale", "deployment/scaled", "--replicas=0", "-n", cluster.bridged)
    eventually(
        cluster,
        lambda: all("deletionTimestamp" in item["metadata"] for item in of(cluster, "scaled")),
    )
    for name in found:
        release(cluster, name)

    wait_for_pods(cluster, "scaled", 0)
    cluster.user().delete(path)


def test_taint_manager_evicts_our_pod(cluster: Cluster) -> None:
    name = cluster.create(pod("tainted"))
    path = pods(cluster.bridged, name)
    place(cluster, name, "node-1")
    wait_for_phase(cluster, path, "Running")

    cluster.sandbox.kubectl("taint", "node", "node-1", "example.test/gone:NoExecute")
    try:
        eventually(cluster, lambda: "deletionTimestamp" in cluster.admin.get(path)["metadata"])
    finally:
        cluster.sandbox.kubectl("taint", "node", "node-1", "example.test/gone:NoExecute-")
    release(cluster, name)
    wait_until_gone(cluster, path)


def test_controllers_evict_our_pod(cluster: Cluster) -> None:
    name = cluster.create(pod("evicted"))
    path = pods(cluster.bridged, name)
    place(cluster, name, "node-2")
    wait_for_phase(cluster, path, "Running")
    controllers = cluster.program("controllers")
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "SlurmCancelled"}
    status = {"status": {"conditions": [disrupted]}}

    controllers.request("PATCH", f"{path}/status", status, content_type=STRATEGIC)
    uid = controllers.get(path)["metadata"]["uid"]
    controllers.delete(path, preconditions={"uid": uid})
    release(cluster, name)

    wait_until_gone(cluster, path)


def test_real_daemonset_runs_in_a_bridged_namespace(cluster: Cluster) -> None:
    nodes = len(cluster.admin.get("/api/v1/nodes")["items"])
    at_once = {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "100%"}}}
    path = create(cluster, workload("DaemonSet", "agent", pod(ours=False), **at_once))
    newer = {"containers": [{"name": "main", "image": "example.test/newer"}]}

    def is_everywhere(generation: int) -> bool:
        status = cluster.admin.get(path)["status"]
        return (generation, nodes, nodes) == (
            status.get("observedGeneration"),
            status.get("updatedNumberScheduled"),
            status.get("numberReady"),
        )

    eventually(cluster, lambda: is_everywhere(1))
    update = {"spec": {"template": {"spec": newer}}}
    cluster.user().request("PATCH", path, update, content_type=STRATEGIC)
    eventually(cluster, lambda: is_everywhere(2))
    cluster.user().delete(path)
    wait_for_pods(cluster, "agent", 0)


def test_pod_older_than_the_label_runs_changes_and_goes(cluster: Cluster) -> None:
    namespace = f"{cluster.bridged}-late"
    make_namespaces(cluster.sandbox, {namespace: {}})
    body = pod("older", ours=False, spec={"schedulingGates": [{"name": "example.test/hold"}]})
    path = pods(namespace, cluster.create(body, namespace=namespace, by=cluster.admin))
    label = {"metadata": {"labels": {names.ENABLED_LABEL: "true"}}}
    cluster.admin.patch(f"/api/v1/namespaces/{namespace}", label)

    # Only now does the cluster's own scheduler bind it.
    cluster.admin.patch(path, {"spec": {"schedulingGates": None}})
    wait_for_phase(cluster, path, "Running")
    cluster.admin.patch(path, {"metadata": {"labels": {"a": "b"}}})
    cluster.admin.delete(path)

    wait_until_gone(cluster, path)
    cluster.admin.delete(f"/api/v1/namespaces/{namespace}")
