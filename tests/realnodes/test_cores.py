"""Containers of a real node have the very cores that Slurm gave their pods, seen from inside."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sandbox import chart
from sandbox.client import Sandbox
from sandbox.options import Options
from sandbox.realnodes import box
from sandbox.realnodes.network import Network
from slurmruntime.values import names
from tests.realnodes import cores
from tests.realnodes.containers import STARTS_S, Containers
from tests.servers import fresh_namespace, running_sandbox, wait_until

pytestmark = pytest.mark.real_all

NODE = "real-0"
ROOT = Path(__file__).parents[2]
OPTIONS = Options(
    accounting=True, nodes=0, plain_nodes=0, real_nodes=1, settings=("agent.pin_cores=true",)
)
GANG = ("one", "two")


class Agent:
    """The agent of the node, as a process of this machine that looks into it."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._config = folder / "agent.yaml"
        group = box.group_of(Network.load(sandbox.instance.root), NODE)
        own = Path("/sys/fs/cgroup/cpuset") / group
        self._mounted = folder / "cgroup"
        self._mounted.mkdir()
        (self._mounted / "cpuset").symlink_to(own)
        (sandbox.instance.bridge / "agent").mkdir(exist_ok=True)
        self._config.write_text(
            yaml.safe_dump(
                {
                    "kubernetes": {"kubeconfig": str(chart.credentials(sandbox.instance, "agent"))},
                    "health": {"listen": "127.0.0.1:0"},
                    "agent": {"pin_cores": True},
                }
            )
        )
        self.start()

    def start(self) -> None:
        program = "import sys, pathlib, agent.__main__; sys.exit(agent.__main__.main(pathlib.Path(sys.argv.pop())))"
        arguments = ("--config", str(self._config), f"--node={NODE}", str(self._mounted))
        command = (sys.executable, "-c", program, *arguments)
        self._process = subprocess.Popen(command, cwd=ROOT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def node(able: None) -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as sandbox:
        yield sandbox


@pytest.fixture
def agent(node: Sandbox, tmp_path: Path) -> Iterator[Agent]:
    running = Agent(node, tmp_path)
    yield running
    running.kill()


@pytest.fixture
def containers(node: Sandbox) -> Iterator[Containers]:
    with fresh_namespace(node, labels={names.ENABLED_LABEL: "true"}) as namespace:
        yield Containers(node, namespace)


def test_two_pods_have_the_very_cores_that_slurm_gave_and_none_is_in_two_sets(
    containers: Containers, agent: Agent
) -> None:
    for name in ("one", "two"):
        containers.create(name, "sleep 600", limits=cores.ONE_CPU)
    for name in ("one", "two"):
        containers.runs(name)

    for name in ("one", "two"):
        cores.has_its_own(containers, name)

    assert not cores.inside(containers, "one") & cores.inside(containers, "two")


def test_a_gangs_members_divide_their_jobs_cores_and_each_members_containers_share_its(
    containers: Containers, agent: Agent
) -> None:
    half = {"cpu": "500m", "memory": "64Mi"}
    for name in GANG:
        containers.create(
            name,
            *("sleep 600", "sleep 600"),
            limits=half,
            labels={names.POD_GROUP_LABEL: "gang"},
            notes={names.POD_GROUP_SIZE_ANNOTATION: str(len(GANG))},
        )
    for name in GANG:
        containers.runs(name)
    everything = cores.given(containers, GANG[0])
    assert len(GANG) == len(everything)

    def own() -> list[frozenset[int]]:
        return [
            cores.inside(containers, name, container) for name in GANG for container in ("c0", "c1")
        ]

    wait_until(lambda: {1} == {len(each) for each in own()}, STARTS_S, sandbox=containers.sandbox)
    first, first_too, second, second_too = own()

    assert (first, second) == (first_too, second_too)
    assert first | second == everything
    ranks = {
        containers.get(name)["metadata"]["annotations"][names.RANK_ANNOTATION]: each
        for name, each in zip(GANG, (first, second), strict=True)
    }
    assert ranks["0"] == {min(everything)}


def test_restarts_of_container_kubelet_and_agent_change_nothing(
    node: Sandbox, containers: Containers, agent: Agent
) -> None:
    script = "[ -e /scratch/again ] && exec sleep 600; touch /scratch/again; until [ -e /scratch/go ]; do sleep 0.2; done; exit 1"
    containers.create("pod", script, limits=cores.ONE_CPU, restartPolicy="OnFailure")
    containers.runs("pod")
    cores.has_its_own(containers, "pod")
    agent.kill()
    containers.exec("pod", "touch", "/scratch/go")
    node.end_daemon(NODE, "kubelet")

    def runs_again() -> bool:
        (status,) = containers.get("pod")["status"]["containerStatuses"]
        return bool(status["restartCount"]) and "running" in status["state"]

    wait_until(runs_again, STARTS_S, sandbox=node)

    assert cores.given(containers, "pod") == cores.inside(
        containers, "pod"
    )  # by its pod's group alone
    agent.start()
    cores.has_its_own(containers, "pod")


def test_without_the_agent_containers_run_on_any_core(
    node: Sandbox, containers: Containers
) -> None:
    containers.create("pod", "sleep 600", limits=cores.ONE_CPU)
    containers.runs("pod")

    assert cores.given(containers, "pod") != cores.inside(containers, "pod")
