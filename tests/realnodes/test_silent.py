"""A kubelet falls silent, and nobody knows whether its containers still run."""

import pytest

from sandbox.client import Sandbox
from tests.realnodes.containers import Containers
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

NODE = "real-1"
PATH = f"/api/v1/nodes/{NODE}"
SILENT_S = 120.0
"""Kubernetes waits for 50 s before it takes a node for lost."""
FORCED = ("--wait=false", "--force", "--grace-period=0")
LITTLE = {"cpu": "500m"}
BEATS = "while :; do date +%s%N > /host/$HOSTNAME; sleep 0.1; done"
DISK = "/var/lib/kubelet"


def test_a_job_is_kept_until_somebody_says_that_the_machine_is_off(
    real: Sandbox, containers: Containers
) -> None:
    for name in ("stays", "forced"):
        containers.create(name, BEATS, node=NODE, limits=LITTLE, host_folder=DISK)
    began = containers.runs("stays")["status"]["containerStatuses"]
    containers.runs("forced")
    jobs = {name: containers.job_of(name) for name in ("stays", "forced")}
    real.pause(NODE)
    try:
        real.kubectl("-n", containers.namespace, "delete", "pod", "forced", *FORCED)
        wait_until(lambda: not is_ready(real), SILENT_S, sandbox=real)
        wait_until(lambda: "DRAIN" in shown(real), SILENT_S, sandbox=real)
        for job in jobs.values():
            assert "RUNNING" == state(real, job)
        assert "deletionTimestamp" in containers.get("forced")["metadata"]

        off = {"key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoSchedule"}
        taints = real.admin.get(PATH)["spec"].get("taints", [])
        real.admin.patch(PATH, {"spec": {"taints": [*taints, off]}})

        assert "CANCELLED" == containers.accounted_job(jobs["forced"])[0]
        assert "RUNNING" == state(real, jobs["stays"])
    finally:
        left = real.admin.get(PATH)["spec"].get("taints", [])
        kept = [taint for taint in left if taint["key"] != "node.kubernetes.io/out-of-service"]
        real.admin.patch(PATH, {"spec": {"taints": kept}})
        real.resume(NODE)
    wait_until(lambda: is_ready(real) and "DRAIN" not in shown(real), SILENT_S, sandbox=real)
    wait_until(lambda: has_gone(real, "forced"), SILENT_S, sandbox=real)
    assert began == containers.get("stays")["status"]["containerStatuses"]
    assert "RUNNING" == state(real, jobs["stays"])


def test_a_machine_whose_pods_all_go_is_given_up_and_their_jobs_failed_with_it(
    real: Sandbox, containers: Containers
) -> None:
    containers.create("only", BEATS, node=NODE, limits=LITTLE, host_folder=DISK)
    containers.runs("only")
    job = containers.job_of("only")
    real.pause(NODE)
    try:
        wait_until(lambda: not is_ready(real), SILENT_S, sandbox=real)

        real.kubectl("-n", containers.namespace, "delete", "pod", "only", "--wait=false")

        assert "NODE_FAIL" == containers.accounted_job(job)[0]
        assert "DOWN" in shown(real)
    finally:
        real.resume(NODE)
    wait_until(lambda: is_ready(real) and "IDLE" in shown(real), SILENT_S, sandbox=real)
    assert has_gone(real, "only"), "nothing starts there before its containers are gone"


def is_ready(real: Sandbox) -> bool:
    conditions = real.admin.get(PATH)["status"]["conditions"]
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def state(real: Sandbox, job: str) -> str:
    return real.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()


def shown(real: Sandbox) -> str:
    """What Slurm says of the node: IDLE, MIXED+DRAIN, DOWN+DRAIN and so on."""
    fields = real.run("scontrol", "--oneliner", "show", "node", NODE).split()
    (state,) = (field for field in fields if field.startswith("State="))
    return state.removeprefix("State=")


def has_gone(real: Sandbox, name: str) -> bool:
    """Ask the node itself whether the container still beats."""
    first, second = (real.on_node(NODE, "cat", f"{DISK}/{name}") for _ in range(2))
    return first == second
