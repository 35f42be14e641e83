"""Containers of a real node have the very cores that Slurm gave their pods, seen from inside."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bridge.domain import names
from bridge.domain.model.cores import cpu_list
from sandbox import chart
from sandbox.client import Sandbox
from sandbox.options import Options
from tests.realnodes.containers import STARTS_S, Containers
from tests.servers import fresh_namespace, running_sandbox, wait_until

pytestmark = pytest.mark.real_all

NODE = "real-0"
ROOT = Path(__file__).parents[2]
OPTIONS = Options(
    accounting=True, nodes=0, plain_nodes=0, real_nodes=1, settings=("agent.pin_cores=true",)
)
ONE_CPU = {"cpu": "1", "memory": "64Mi"}


class Agent:
    """The agent of the node, as a process of this machine that looks into it."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._config = folder / "agent.yaml"
        own = next(
            path
            for path in Path("/sys/fs/cgroup/cpuset").iterdir()
            if path.name.endswith(f"-{NODE}") and (path / "kubepods").is_dir()
        )
        mounted = folder / "cgroup"
        mounted.mkdir()
        (mounted / "cpuset").symlink_to(own)
        (sandbox.instance.bridge / "agent").mkdir(exist_ok=True)
        self._config.write_text(
            yaml.safe_dump(
                {
                    "kubernetes": {"kubeconfig": str(chart.credentials(sandbox.instance, "agent"))},
                    "health": {"listen": "127.0.0.1:0"},
                    "agent": {
                        "pin_cores": True,
                        "node": NODE,
                        "cgroup_root": str(mounted),
                        "interval_s": 1,
                    },
                }
            )
        )
        self.start()

    def start(self) -> None:
        command = (sys.executable, "-m", "agent", "--config", str(self._config))
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


def cores(containers: Containers, name: str) -> str:
    """The processors of a pod's first container, as its first process sees them."""
    said = containers.exec(name, "grep", "Cpus_allowed_list", "/proc/1/status")
    return said.split()[-1]


def given(containers: Containers, name: str) -> str:
    """What Slurm gave it: CPU_IDs."""
    said = containers.sandbox.run("scontrol", "show", "job", "-d", containers.job_of(name))
    return next(word for word in said.split() if word.startswith("CPU_IDs=")).partition("=")[2]


def has_its_own(containers: Containers, name: str) -> None:
    wanted = given(containers, name)
    wait_until(lambda: cores(containers, name) == wanted, STARTS_S, sandbox=containers.sandbox)


def test_two_pods_have_the_very_cores_that_slurm_gave_and_none_is_in_two_sets(
    containers: Containers, agent: Agent
) -> None:
    for name in ("one", "two"):
        containers.create(name, "sleep 600", limits=ONE_CPU)
    for name in ("one", "two"):
        containers.runs(name)

    for name in ("one", "two"):
        has_its_own(containers, name)

    sets = [cpu_list.parse(cores(containers, name)) or frozenset() for name in ("one", "two")]
    assert all(sets)
    assert not sets[0] & sets[1]


def test_restarts_of_container_kubelet_and_agent_change_nothing(
    node: Sandbox, containers: Containers, agent: Agent
) -> None:
    script = "[ -e /scratch/again ] && exec sleep 600; touch /scratch/again; until [ -e /scratch/go ]; do sleep 0.2; done; exit 1"
    containers.create("pod", script, limits=ONE_CPU, restartPolicy="OnFailure")
    containers.runs("pod")
    has_its_own(containers, "pod")
    agent.kill()
    containers.exec("pod", "touch", "/scratch/go")
    node.end_daemon(NODE, "kubelet")

    def runs_again() -> bool:
        (status,) = containers.get("pod")["status"]["containerStatuses"]
        return bool(status["restartCount"]) and "running" in status["state"]

    wait_until(runs_again, STARTS_S, sandbox=node)

    assert given(containers, "pod") == cores(containers, "pod")  # by its pod's group alone
    agent.start()
    has_its_own(containers, "pod")


def test_without_the_agent_containers_run_on_any_core(
    node: Sandbox, containers: Containers
) -> None:
    containers.create("pod", "sleep 600", limits=ONE_CPU)
    containers.runs("pod")

    assert given(containers, "pod") != cores(containers, "pod")
