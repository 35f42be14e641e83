"""Our chart with the values a user keeps, our images, real kubelets: from `helm install` to `helm uninstall`.

Set are only what the install page asks for, and on which node our pods are.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bridge.domain import names
from sandbox import assets, nss, slurm_conf
from sandbox.assets import AssetName
from sandbox.client import Sandbox
from tests.realnodes.containers import Containers
from tests.realnodes.installed import surroundings
from tests.servers import fresh_namespace, wait_until

pytestmark = pytest.mark.real_all

CHART = surroundings.ROOT / "deploy" / "chart"
RELEASE, NAMESPACE = "slurm-bridge", names.RELEASE_NAMESPACE
COMPONENTS = ("webhook", "extender", "controllers", "scheduler")
OURS, FOR_SLURM = "real-0", "real-1"
READY_S = 240.0
_REPLICAS = 2
LEFT = (
    "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,"
    "validatingwebhookconfigurations,mutatingwebhookconfigurations,deployments,services,pods,"
    "configmaps,secrets,serviceaccounts,roles,rolebindings,poddisruptionbudgets"
)
LEASES = {
    f"lease.coordination.k8s.io/{RELEASE}-{component}"
    for component in ("controllers", "extender", "scheduler")
}
"""Made by those who lead, not by the release: they say who led last, until the namespace goes."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The release."""

    sandbox: Sandbox
    helm: Path

    def helms(self, *arguments: str) -> None:
        done = subprocess.run(
            (self.helm, *arguments, "--namespace", NAMESPACE),
            env=self.sandbox.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=READY_S,
        )
        assert done.returncode == 0, done.stderr

    def pods(self) -> list[dict[str, Any]]:
        found = self.sandbox.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods")
        pods: list[dict[str, Any]] = found["items"]
        return pods

    def left(self) -> list[str]:
        """All objects that say they are the release's."""
        ours = f"--selector=app.kubernetes.io/instance={RELEASE}"
        return self.sandbox.kubectl("get", LEFT, "--all-namespaces", ours, "-o=name").split()

    def inside(self) -> set[str]:
        """What is in the release's namespace that could be somebody's, whatever its labels."""
        kinds = "configmaps,deployments.apps,leases,secrets,services"
        return set(self.sandbox.kubectl("-n", NAMESPACE, "get", kinds, "-o=name").split())

    def unready(self) -> list[str]:
        """Our Deployments without all their replicas Ready, and what their pods say."""
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
        found = {each["metadata"]["name"]: each for each in self.sandbox.admin.get(path)["items"]}
        short = [
            name
            for component in COMPONENTS
            if found.get(name := f"{RELEASE}-{component}", {"status": {}})["status"].get(
                "readyReplicas"
            )
            != _REPLICAS
        ]
        said = [
            f"{pod['metadata']['name']}: {json.dumps(pod['status'].get('containerStatuses'))}"
            for pod in self.pods()
        ]
        return short and [*short, *said]


@pytest.fixture(scope="module")
def installed(bare: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with assets.shown(sys.stderr) as report:
        helm = assets.resolve(AssetName.HELM, report=report).bin / "helm"
    folder = tmp_path_factory.mktemp("release")
    surroundings.load_scheduler(bare, folder)
    # One node stays Kubernetes' own: our pods are there, as on a cluster's nodes for infrastructure.
    bare.kubectl("label", "node", OURS, f"{names.EXTERNAL_NODE_LABEL}-")
    token = bare.run("scontrol", "token", "username=root").strip().removeprefix("SLURM_JWT=")
    bare.kubectl("create", "namespace", NAMESPACE)
    secret = ("create", "secret", "generic", "slurm-token", f"--from-literal=token={token}")
    bare.kubectl("-n", NAMESPACE, *secret)
    with surroundings.reachable(bare) as address:
        release = Installed(bare, helm)
        values = folder / "my-values.yaml"
        values.write_text(json.dumps(_values(bare, address)))
        release.helms("install", RELEASE, str(CHART), "--values", str(values))
        _await_ready(release)
        yield release


def _values(sandbox: Sandbox, address: str) -> dict[str, Any]:
    ports, here = sandbox.instance.ports, {"nodeSelector": {"kubernetes.io/hostname": OURS}}
    return {
        "scheduler": {"image": {"repository": surroundings.SCHEDULER}, **here},
        "webhook": here,
        "extender": here,
        "controllers": here,
        "config": {
            "slurm": {
                "insecure": True,  # slurmrestd is on this host and speaks no TLS
                "url": f"http://{address}:{ports['slurmrestd']}",
                "controller_host": address,
                "controller_port": ports["slurmctld"],
                "partition": slurm_conf.PARTITION,
                "user": nss.JOB_USER.name,
                "group": nss.JOB_USER.name,
                "account": nss.JOB_USER.name,
            }
        },
    }


def _await_ready(release: Installed) -> None:
    last: list[str] = ["nothing seen"]

    def ready() -> bool:
        last[:] = release.unready()
        return not last

    try:
        wait_until(ready, READY_S, sandbox=release.sandbox)
    except AssertionError as error:
        raise AssertionError("\n".join((*last, str(error)))) from None


@pytest.fixture
def containers(installed: Installed) -> Iterator[Containers]:
    labels = {names.ENABLED_LABEL: "true"}
    with fresh_namespace(installed.sandbox, labels=labels) as namespace:
        yield Containers(installed.sandbox, namespace)


def test_our_programs_are_pods_of_our_image_on_a_real_node(installed: Installed) -> None:
    pods = installed.pods()

    assert {pod["spec"]["nodeName"] for pod in pods} == {OURS}
    assert len(pods) == _REPLICAS * len(COMPONENTS)
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


def test_uninstalling_leaves_nothing_and_kills_nothing(
    installed: Installed, containers: Containers
) -> None:
    sandbox = installed.sandbox
    containers.create("stays", "sleep 600", limits={"cpu": "1", "memory": "64Mi"})
    before = containers.runs("stays")["status"]["containerStatuses"]
    job = containers.job_of("stays")

    assert set(COMPONENTS) <= {name.rpartition("-")[2] for name in installed.left()}

    installed.helms("uninstall", RELEASE)

    wait_until(lambda: not installed.left(), READY_S, sandbox=sandbox)
    wait_until(lambda: not installed.pods(), READY_S, sandbox=sandbox)
    assert installed.inside() == {"configmap/kube-root-ca.crt", "secret/slurm-token", *LEASES}
    assert containers.get("stays")["status"]["containerStatuses"] == before
    assert sandbox.run("squeue", "-h", "-o", "%T", "-j", job).strip() == "RUNNING"
