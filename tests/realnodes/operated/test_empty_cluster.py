"""What costs only jobs changes in a cluster that is suspended and has none, and in no other."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.image.slurm import SlurmImage
from sandbox.operator import demo
from tests.realnodes import slurm_objects
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods
from tests.servers import running_sandbox, wait_until

pytestmark = pytest.mark.real_all

IMEX = "switch/nvidia_imex"
IN_FORCE_S = 240.0
"""Half a minute between two looks at its jobs, then a trial, and another slurmctld."""


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    (login,) = (image.name for image in slurm_images if image.daemon == "login")
    with running_sandbox(demo.SHAPE) as sandbox:
        sandbox.kubectl("create", "namespace", NAMESPACE)
        body = json.dumps(slurm_objects.CLUSTER)
        sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=body)
        yield InPods(sandbox, login)


def change(in_pods: InPods, **spec: Any) -> None:
    patch = f"-p={json.dumps({'spec': spec})}"
    in_pods.sandbox.kubectl("-n", NAMESPACE, "patch", "slurmcluster/site", "--type=merge", patch)


def said(in_pods: InPods) -> str:
    return in_pods.condition("controllers", "site", "Configured")[1]


def switches(in_pods: InPods, plugin: str) -> bool:
    """Check what slurmctld runs with."""
    return plugin in in_pods.run("scontrol", "show", "config")


def pings(in_pods: InPods) -> bool:
    return "UP" in in_pods.run("scontrol", "ping")


def idle(in_pods: InPods) -> bool:
    return in_pods.run("sinfo", "-h", "-o", "%D %t") == "1 idle\n"


def test_it_waits_for_workers_and_jobs_and_is_in_force_without_them(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    wait_until(lambda: idle(in_pods), IN_FORCE_S, sandbox=sandbox)
    job = in_pods.submit("cpu-0", 60)
    held = in_pods.run("sbatch", "--parsable", "--hold", "--wrap", "true").strip()
    assert all((job, held))
    wait_until(lambda: "RUNNING" == in_pods.state(job), STARTS_S, sandbox=sandbox)

    change(in_pods, config={"SwitchType": IMEX})
    wait_until(
        lambda: "these NodeSets want workers: site-worker-cpu" in said(in_pods),
        STARTS_S,
        sandbox=sandbox,
    )
    change(in_pods, suspend=True)
    wait_until(lambda: "running or pending jobs" in said(in_pods), STARTS_S, sandbox=sandbox)
    wait_until(lambda: "COMPLETED" == in_pods.state(job), STARTS_S, sandbox=sandbox)
    wait_until(
        lambda: "Slurm has 1 running or pending jobs" in said(in_pods), STARTS_S, sandbox=sandbox
    )
    assert "PENDING" == in_pods.state(held)
    assert not switches(in_pods, IMEX)

    in_pods.run("scancel", held)
    wait_until(lambda: switches(in_pods, IMEX), IN_FORCE_S, sandbox=sandbox)
    change(in_pods, config={"SwitchType": None})  # no such devices here
    wait_until(lambda: not switches(in_pods, IMEX) and pings(in_pods), IN_FORCE_S, sandbox=sandbox)
    change(in_pods, suspend=False)
    wait_until(lambda: idle(in_pods), IN_FORCE_S, sandbox=sandbox)
    again = in_pods.submit("cpu-0", 1)
    wait_until(lambda: "COMPLETED" == in_pods.state(again), STARTS_S, sandbox=sandbox)
    wait_until(
        lambda: "True" == in_pods.condition("controllers", "site", "Configured")[0],
        STARTS_S,
        sandbox=sandbox,
    )
