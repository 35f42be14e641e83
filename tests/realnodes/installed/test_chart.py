"""Our chart with the values a user keeps, our images, real kubelets: from `helm install` to `helm uninstall`.

In between, what a cluster's administrator does to the nodes our programs are on.
"""

import json
import subprocess
from collections.abc import Iterator

import pytest

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.realnodes.containers import Containers
from tests.realnodes.installed import release, surroundings
from tests.realnodes.installed.release import (
    COMPONENTS,
    FOR_SLURM,
    OURS,
    READY_S,
    RELEASE,
    REPLICAS,
    Installed,
)
from tests.servers import fresh_namespace, wait_until

pytestmark = pytest.mark.real_all

CHART = surroundings.ROOT / "deploy" / "chart"
LIMITS = {"cpu": "500m", "memory": "64Mi"}
_TOO_MANY_REQUESTS = 429
LEASES = {
    f"lease.coordination.k8s.io/{RELEASE}-{component}"
    for component in ("controllers", "extender", "scheduler")
}
"""Made by those who lead, not by the release: they say who led last, until the namespace goes."""


@pytest.fixture(scope="module")
def installed(bare: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    file = tmp_path_factory.mktemp("release") / "my-values.yaml"
    with release.ground(bare) as address:
        ours = Installed(bare, surroundings.helm())
        file.write_text(json.dumps(release.values(bare, address)))
        ours.install(CHART, file)
        yield ours
        ours.remove()


@pytest.fixture
def containers(installed: Installed) -> Iterator[Containers]:
    labels = {names.ENABLED_LABEL: "true"}
    with fresh_namespace(installed.sandbox, labels=labels) as namespace:
        yield Containers(installed.sandbox, namespace)


def runs_through(containers: Containers, name: str) -> None:
    """A new pod is taken, placed, run and accounted."""
    containers.create(name, "exit 0", limits=LIMITS)
    pod = containers.ends(name)
    assert ("Succeeded", FOR_SLURM) == (pod["status"]["phase"], pod["spec"]["nodeName"])
    assert names.JOB_ID_LABEL in pod["metadata"]["labels"]


def test_our_programs_are_pods_of_our_image_on_real_nodes(installed: Installed) -> None:
    pods = installed.pods()

    assert {pod["spec"]["nodeName"] for pod in pods} <= set(OURS)
    assert len(pods) == REPLICAS * len(COMPONENTS)
    assert not [
        status["name"]
        for pod in pods
        for status in pod["status"]["containerStatuses"]
        if status["restartCount"]
    ]


def test_a_pod_is_taken_by_the_webhook_placed_by_slurm_runs_and_is_accounted(
    installed: Installed, containers: Containers
) -> None:
    containers.create("hello", "echo from Slurm", limits={"cpu": "1", "memory": "64Mi"})

    pod = containers.ends("hello")

    assert pod["status"]["phase"] == "Succeeded"
    assert pod["spec"]["nodeName"] == FOR_SLURM
    assert pod["spec"]["schedulerName"] == "slurm-bridge-scheduler"  # by the webhook's Service
    said = installed.sandbox.kubectl("-n", containers.namespace, "logs", "hello")
    assert said == "from Slurm\n"
    assert ("COMPLETED", "0:0") == containers.accounted("hello")


def test_only_one_pod_of_a_service_can_be_evicted_at_a_time(
    installed: Installed, containers: Containers
) -> None:
    first, second = (pod["metadata"]["name"] for pod in installed.pods("webhook"))

    evict(installed, first)
    with pytest.raises(ApiError) as refused:
        evict(installed, second)

    assert refused.value.status == _TOO_MANY_REQUESTS
    runs_through(containers, "meanwhile")
    installed.await_ready()


def evict(installed: Installed, pod: str) -> None:
    path = f"/api/v1/namespaces/{installed.namespace}/pods/{pod}/eviction"
    installed.sandbox.admin.create(path, {"metadata": {"name": pod}})


def test_after_a_crash_of_the_leaders_node_all_is_as_before(
    installed: Installed, containers: Containers
) -> None:
    containers.create("stays", "sleep 600", limits=LIMITS)
    before = containers.runs("stays")["status"]["containerStatuses"]
    node = installed.leader()["spec"]["nodeName"]

    installed.sandbox.restart(node, signal="KILL")

    def crashed_once() -> bool:
        return any(
            status["restartCount"]
            for pod in installed.pods()
            for status in pod["status"]["containerStatuses"]
        )

    wait_until(crashed_once, READY_S, sandbox=installed.sandbox)
    installed.await_ready()
    runs_through(containers, "after")
    assert containers.get("stays")["status"]["containerStatuses"] == before


def test_draining_the_leaders_node_moves_our_programs_and_stops_nothing(
    installed: Installed, containers: Containers
) -> None:
    """The API server refuses no pod meanwhile, and every pod is Slurm's to place."""
    sandbox = installed.sandbox
    containers.create("stays", "sleep 600", limits=LIMITS)
    before = containers.runs("stays")["status"]["containerStatuses"]
    leader = installed.leader()
    node = leader["spec"]["nodeName"]
    command = (str(sandbox.instance.bin / "kubectl"), "drain", node, f"--timeout={READY_S:.0f}s")

    with subprocess.Popen(command, env=sandbox.env, stdout=subprocess.DEVNULL) as draining:
        count = 0
        while draining.poll() is None:
            runs_through(containers, f"meanwhile-{count}")
            count += 1
    try:
        assert 0 == draining.returncode
        assert count
        installed.await_ready()
        pods = installed.pods()
        assert node not in {pod["spec"]["nodeName"] for pod in pods}
        assert len(pods) == REPLICAS * len(COMPONENTS)
        assert installed.leader()["metadata"]["name"] != leader["metadata"]["name"]
        assert containers.get("stays")["status"]["containerStatuses"] == before
    finally:
        sandbox.kubectl("uncordon", node)


def test_uninstalling_leaves_nothing_and_kills_nothing(
    installed: Installed, containers: Containers
) -> None:
    sandbox = installed.sandbox
    containers.create("stays", "sleep 600", limits=LIMITS)
    before = containers.runs("stays")["status"]["containerStatuses"]
    job = containers.job_of("stays")

    assert set(COMPONENTS) <= {name.rpartition("-")[2] for name in installed.left()}

    installed.helms("uninstall", RELEASE)

    wait_until(lambda: not installed.left(), READY_S, sandbox=sandbox)
    wait_until(lambda: not installed.pods(), READY_S, sandbox=sandbox)
    assert installed.inside() == {"configmap/kube-root-ca.crt", "secret/slurm-token", *LEASES}
    assert containers.get("stays")["status"]["containerStatuses"] == before
    assert sandbox.run("squeue", "-h", "-o", "%T", "-j", job).strip() == "RUNNING"
