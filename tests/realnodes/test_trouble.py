"""What troubles a real node reaches Slurm as what it is, and makes no loop of starts and cancels."""

from sandbox.client import Sandbox
from tests.realnodes.containers import Containers
from tests.servers import wait_until

PATIENCE_S = 60.0


def drained_for(real: Sandbox, node: str) -> str:
    """Why Slurm starts nothing there; empty while it does."""
    state, _, reason = real.run("sinfo", "-h", "-n", node, "-o", "%T %E").strip().partition(" ")
    return reason if state.startswith("drain") else ""


def test_a_node_under_memory_pressure_is_drained_and_its_pod_was_evicted(
    real: Sandbox, containers: Containers
) -> None:
    containers.create("victim", "sleep 600", node="real-0")
    containers.runs("victim")

    real.press("real-0", "memory")
    try:
        victim = containers.ends("victim")["status"]
        assert "low on resource: memory" in victim["message"]
        assert ("FAILED", "255:0") == containers.accounted("victim")
        wait_until(
            lambda: "MemoryPressure" in drained_for(real, "real-0"), PATIENCE_S, sandbox=real
        )
        containers.create("next", "exit 0", node="real-0")
        wait_until(lambda: waits(real, containers), PATIENCE_S, sandbox=real)
    finally:
        real.press("real-0", "none")

    assert containers.ends("next", PATIENCE_S)["status"]["phase"] == "Succeeded"
    containers.accounted("next")
    jobs = real.run("sacct", "-X", "-n", "-P", "--name", "next", "-o", "State")
    assert jobs.split() == ["COMPLETED"]  # the first one was kept waiting, not cancelled


def waits(real: Sandbox, containers: Containers) -> bool:
    return "PENDING" in real.run("squeue", "-h", "-o", "%T", "--name", "next")


def test_a_device_plugin_that_is_away_ends_nothing_and_no_job_starts_there_meanwhile(
    real: Sandbox, containers: Containers
) -> None:
    containers.create("holder", "sleep 600", node="real-1", limits={"nvidia.com/gpu": "1"})
    containers.runs("holder")

    real.hold_daemon("real-1", "fake-gpus", held=True)
    try:
        wait_until(lambda: "devices are" in drained_for(real, "real-1"), PATIENCE_S, sandbox=real)
    finally:
        real.hold_daemon("real-1", "fake-gpus", held=False)

    wait_until(lambda: not drained_for(real, "real-1"), PATIENCE_S, sandbox=real)
    assert "running" in containers.get("holder")["status"]["containerStatuses"][0]["state"]
    state = real.run("squeue", "-h", "-o", "%T", "-j", containers.job_of("holder")).strip()
    assert state == "RUNNING"
    assert "gpu:2" in real.run("scontrol", "show", "node", "real-1")


def test_the_container_that_failed_first_counts(containers: Containers) -> None:
    eat = "exec dd if=/dev/zero of=/dev/null bs=200M count=2"
    limits = {"memory": "32Mi", "cpu": "500m"}
    containers.create("pair", "sleep 4; exit 2", eat, limits=limits)

    containers.ends("pair")

    assert ("OUT_OF_MEMORY", "0:125") == containers.accounted("pair")
