"""slurm-operator's chart on real nodes, and a cluster's: installed, upgraded, uninstalled; the cluster outlives the operator."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.manifests import OPERATOR_CHART
from deploy.operator_rights import NAME
from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.realnodes.installed import surroundings
from tests.servers import fresh_namespace, wait_until

pytestmark = pytest.mark.real_all

RELEASE = "operator"
READY_S = 240.0
SLURM_CHART = OPERATOR_CHART.parents[1] / "slurm" / "chart"
ITS_LABEL = f"--selector=app.kubernetes.io/instance={RELEASE}"
OF_A_RELEASE = "deployments,pods,configmaps,serviceaccounts,poddisruptionbudgets,roles,rolebindings,clusterroles,clusterrolebindings"
CLUSTER: dict[str, Any] = {
    "controller": {"slurmctld": {"image": "no.such.registry.test/slurmctld:1"}, "persistence": {"enabled": False}},
    "restapi": {"slurmrestd": {"image": "no.such.registry.test/slurmrestd:1"}},
    "nodesets": {"cpu": {"slurmd": {"image": "no.such.registry.test/slurmd:1"}}},
}  # fmt: skip
"""Its pods never start here, for want of images; what is asked for is there all the same."""
KEYS = {"secret/slurm-auth-jwt", "secret/slurm-auth-slurm"}


@dataclass(frozen=True, slots=True)
class Operator:
    """A release of the chart."""

    sandbox: Sandbox
    namespace: str
    values: Path

    def helms(self, *arguments: str, namespace: str = "") -> None:
        done = subprocess.run(
            (surroundings.helm(), *arguments, "--namespace", namespace or self.namespace),
            env=self.sandbox.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=READY_S,
        )
        assert done.returncode == 0, done.stderr

    def install(self, how: str, *arguments: str) -> None:
        waits = ("--wait", f"--timeout={READY_S:.0f}s", "--values", str(self.values))
        self.helms(how, RELEASE, str(OPERATOR_CHART), *waits, *arguments)

    def leader(self) -> str:
        """Return the name of the pod that leads; "" while none does."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{NAME}"
        try:
            holder: str = self.sandbox.admin.get(path)["spec"].get("holderIdentity") or ""
        except ApiError:
            return ""
        return holder.partition("_")[0]

    def pods(self) -> list[str]:
        wanted = ("get", "pods", ITS_LABEL, "-o=name")
        return self.sandbox.kubectl("-n", self.namespace, *wanted).split()

    def workers(self, namespace: str) -> list[str]:
        wanted = ("get", "pods", "--selector=app.kubernetes.io/name=slurmd", "-o=name")
        return self.sandbox.kubectl("-n", namespace, *wanted).split()

    def inside(self, namespace: str) -> set[str]:
        """Return what is left in a cluster's namespace, but for what every namespace has."""
        kinds = "controllers,nodesets,restapis,statefulsets,deployments,pods,services,configmaps,secrets,poddisruptionbudgets"
        found = self.sandbox.kubectl("-n", namespace, "get", kinds, "-o=name").split()
        return {each for each in found if not each.endswith("/kube-root-ca.crt")}

    def left(self) -> list[str]:
        """Return all that says it is the release's."""
        wanted = ("get", OF_A_RELEASE, "--all-namespaces", ITS_LABEL, "-o=name")
        return self.sandbox.kubectl(*wanted).split()

    def has_made(self, namespace: str, replicas: int = 1) -> bool:
        path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
        sets = self.sandbox.admin.get(path)["items"]
        return [replicas] == [each["spec"]["replicas"] for each in sets]


@pytest.fixture(scope="module")
def operator(bare: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    values = tmp_path_factory.mktemp("operator") / "values.yaml"
    values.write_text(json.dumps({"config": {"log": {"level": "debug"}}}))
    with fresh_namespace(bare, labels={}) as namespace:
        for node in ("real-0", "real-1", "real-2"):
            bare.kubectl("label", "node", node, f"{names.EXTERNAL_NODE_LABEL}-")
        yield Operator(bare, namespace, values)
        for crd in bare.kubectl("get", "crd", "-o=name").split():
            if crd.endswith(".slinky.slurm.net"):
                bare.kubectl("delete", "--wait=false", crd)


def test_clusters_are_kept_through_the_life_of_a_release(operator: Operator) -> None:
    sandbox = operator.sandbox
    operator.install("install")
    with fresh_namespace(sandbox, labels={}) as namespace:
        cluster = operator.values.with_name("cluster.yaml")
        cluster.write_text(json.dumps(CLUSTER))
        chart = ("slurm", str(SLURM_CHART), "--values", str(cluster))
        operator.helms("install", *chart, namespace=namespace)
        wait_until(lambda: operator.has_made(namespace), READY_S, sandbox=sandbox)
        wait_until(lambda: operator.workers(namespace), READY_S, sandbox=sandbox)

        first = operator.leader()
        sandbox.kubectl("-n", operator.namespace, "delete", "pod", first, "--wait=false")
        wait_until(
            lambda: operator.leader() not in ("", first),
            READY_S,
            sandbox=sandbox,
        )
        path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
        for item in sandbox.admin.get(path)["items"]:
            sandbox.admin.delete(f"{path}/{item['metadata']['name']}")
        wait_until(lambda: operator.has_made(namespace), READY_S, sandbox=sandbox)

        operator.install("upgrade", "--set", "replicas=1")
        wait_until(lambda: 1 == len(operator.pods()), READY_S, sandbox=sandbox)

        operator.helms("uninstall", RELEASE)
        wait_until(lambda: not operator.left(), READY_S, sandbox=sandbox)
        assert not [
            each
            for each in sandbox.kubectl(
                "get", "clusterroles,clusterrolebindings", "-o=name"
            ).split()
            if each.endswith(NAME)
        ]
        assert operator.has_made(namespace), "clusters stay, and what they are made of"
        assert operator.workers(namespace)

        operator.install("install")
        operator.helms("uninstall", "slurm", namespace=namespace)
        wait_until(lambda: operator.inside(namespace) == KEYS, READY_S, sandbox=sandbox)
