"""The node agent as the chart runs it: a pod of its DaemonSet on a real node, and the cpusets of two pods, seen from inside."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from sandbox.client import Sandbox
from slurmcli import plugin
from slurmruntime.values import names
from tests.realnodes import cores
from tests.realnodes.containers import Containers
from tests.realnodes.installed import release, surroundings
from tests.realnodes.installed.release import FOR_SLURM, READY_S, Installed
from tests.servers import fresh_namespace, wait_until
from tests.slurmcli import sowing

pytestmark = pytest.mark.real_all

CHART = surroundings.ROOT / "deploy" / "chart"
STRICT = {"managedTaint": {"actions": ["Deny"]}}
"""Others' pods are kept off Slurm's nodes; the agent tolerates every taint."""
VOUCHED = f"{names.CPU_MANAGER_LABEL}=none"


@pytest.fixture(scope="module")
def installed(bare: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    file = tmp_path_factory.mktemp("release") / "my-values.yaml"
    with release.ground(bare) as address:
        bare.kubectl("label", "node", FOR_SLURM, VOUCHED)
        ours = Installed(bare, surroundings.helm())
        values = release.values(bare, address)
        values["config"]["agent"] = {"pin_cores": True}
        strict = {"networkPolicy": {"enabled": True}, "policies": STRICT}
        file.write_text(json.dumps({**values, **strict}))
        ours.install(CHART, file)
        yield ours
        ours.remove()
        bare.kubectl("label", "node", FOR_SLURM, f"{names.CPU_MANAGER_LABEL}-")


@pytest.fixture
def containers(installed: Installed) -> Iterator[Containers]:
    labels = {names.ENABLED_LABEL: "true"}
    with fresh_namespace(installed.sandbox, labels=labels) as namespace:
        yield Containers(installed.sandbox, namespace)


def agents(installed: Installed) -> dict[str, dict[str, Any]]:
    """The ready pods of the DaemonSet, by node."""
    return {
        pod["spec"]["nodeName"]: pod
        for pod in installed.pods("agent")
        for condition in pod["status"].get("conditions", ())
        if (condition["type"], condition["status"]) == ("Ready", "True")
    }


def says_of_cores(installed: Installed) -> str:
    """What `kubectl slurm nodes` says of Slurm's node."""
    asked = CliRunner().invoke(plugin.app(), ["nodes", "-o", "json"], env=installed.sandbox.env)
    (row,) = [row for row in json.loads(asked.stdout) if row["kube_node"] == FOR_SLURM]
    return str(row["cores"])


def test_two_pods_of_an_installed_release_have_the_very_cores_that_slurm_gave(
    installed: Installed, containers: Containers
) -> None:
    sandbox = installed.sandbox
    wait_until(lambda: set(agents(installed)) == {FOR_SLURM}, READY_S, sandbox=sandbox)
    for name in ("one", "two"):
        containers.create(name, "sleep 600", limits=cores.ONE_CPU)
    for name in ("one", "two"):
        containers.runs(name)

    for name in ("one", "two"):
        cores.has_its_own(containers, name)

    assert not cores.inside(containers, "one") & cores.inside(containers, "two")
    agent = agents(installed)[FOR_SLURM]
    assert not any(
        container_status["restartCount"]
        for container_status in agent["status"]["containerStatuses"]
    )
    path = f"/api/v1/namespaces/{installed.namespace}/pods/{agent['metadata']['name']}:8080/proxy"
    told = sandbox.kubectl("get", "--raw", f"{path}/metrics")
    assert 'slurm_bridge_agent_pods{cores="pinned"} 2.0' in told.splitlines()


def test_nodes_and_doctor_go_by_the_agents_own_pod(
    installed: Installed, containers: Containers
) -> None:
    sandbox = installed.sandbox
    wait_until(lambda: set(agents(installed)) == {FOR_SLURM}, READY_S, sandbox=sandbox)
    containers.create("pod", "sleep 600", limits=cores.ONE_CPU)
    containers.runs("pod")
    cores.has_its_own(containers, "pod")

    def doctor() -> str:
        return str(sowing.examined(dict(sandbox.env))["node agents"]["found"])

    assert "exact" == says_of_cores(installed)
    assert "node agents pin the cores of pods on 1 nodes" == doctor()

    sandbox.kubectl("label", "node", FOR_SLURM, f"{names.CPU_MANAGER_LABEL}-")
    wait_until(lambda: not installed.pods("agent"), READY_S, sandbox=sandbox)

    assert "counts only" == says_of_cores(installed)
    assert "no external node is labelled" in doctor()
    assert cores.given(containers, "pod") == cores.inside(containers, "pod")
    sandbox.kubectl("label", "node", FOR_SLURM, VOUCHED)


def test_the_agent_can_do_nothing_to_kubernetes_and_has_no_capability(
    installed: Installed,
) -> None:
    sandbox = installed.sandbox
    wait_until(lambda: set(agents(installed)) == {FOR_SLURM}, READY_S, sandbox=sandbox)
    pod = agents(installed)[FOR_SLURM]["metadata"]["name"]
    account = f"--as=system:serviceaccount:{installed.namespace}:{release.RELEASE}-agent"

    listed = sandbox.kubectl("auth", "can-i", "--list", account, "--no-headers")
    status = sandbox.kubectl(
        *("-n", installed.namespace, "exec", pod, "--"),
        *("python", "-c", "print(open('/proc/1/status').read())"),
    )

    (pods,) = [line for line in listed.splitlines() if line.startswith("pods ")]
    assert "[list watch]" in pods
    for verb in ("create", "update", "patch", "delete"):
        assert f" {verb} " not in pods.replace("[", " ").replace("]", " ")
    assert "CapEff:\t0000000000000000" in status.splitlines()
    assert "NoNewPrivs:\t1" in status.splitlines()
