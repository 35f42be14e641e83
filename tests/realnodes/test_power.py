"""Real nodes are paused, switched off and started again, and their disks outlive it."""

import pytest

from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from tests.realnodes.containers import Containers
from tests.servers import wait_until


def test_a_paused_node_does_not_answer_until_it_goes_on(real: Sandbox) -> None:
    real.pause("real-1")

    try:
        with pytest.raises(SandboxError):
            real.admin.request("GET", "/api/v1/nodes/real-1/proxy/healthz?timeout=2s")
        assert real.status()["real-1"].state == "paused"
    finally:
        real.resume("real-1")

    assert real.on_node("real-1", "uname", "-n") == "real-1\n"


def test_a_reboot_is_the_nodes_failure_and_keeps_the_disk(
    real: Sandbox, containers: Containers
) -> None:
    for name in ("doomed", "too"):
        containers.create(name, "sleep 600", node="real-0")
    for name in ("doomed", "too"):
        containers.runs(name)
    real.on_node("real-0", "touch", "/var/lib/kubelet/kept")

    real.restart("real-0", signal="KILL")

    ended = containers.ends("doomed")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "Unknown"
    assert containers.accounted("doomed")[0] == containers.accounted("too")[0] == "NODE_FAIL"
    assert real.on_node("real-0", "ls", "/var/lib/kubelet/kept")
    containers.create("after", "exit 0", node="real-0")
    assert containers.ends("after")["status"]["phase"] == "Succeeded"


def test_a_pod_that_its_kubelet_restarts_keeps_its_job_over_a_reboot(
    real: Sandbox, containers: Containers
) -> None:
    containers.create("stays", "sleep 600", node="real-0", restartPolicy="Always")
    containers.runs("stays")

    real.restart("real-0", signal="KILL")

    def runs_again() -> bool:
        (status,) = containers.get("stays")["status"]["containerStatuses"]
        return status["restartCount"] == 1 and "running" in status["state"]

    wait_until(runs_again, 60, sandbox=real)
    state = real.run("squeue", "-h", "-o", "%T", "-j", containers.job_of("stays")).strip()
    assert state == "RUNNING"


def test_switching_a_node_off_asks_its_containers_to_end(
    real: Sandbox, containers: Containers
) -> None:
    script = "trap 'echo bye > /host/said; exit 0' TERM; while :; do sleep 0.1; done"
    containers.create("polite", script, node="real-1", host_folder="/var/lib/kubelet")
    containers.runs("polite")

    real.stop("real-1")
    real.start("real-1")

    wait_until(lambda: containers.get("polite")["status"]["phase"] != "Running", 60, sandbox=real)
    assert real.on_node("real-1", "cat", "/var/lib/kubelet/said") == "bye\n"


def test_wrong_names_are_answered_with_the_right_ones(real: Sandbox) -> None:
    with pytest.raises(SandboxError, match=r"no real node 'etcd'.* it has real-0, real-1"):
        real.on_node("etcd", "true")
    with pytest.raises(
        SandboxError, match="no kind of pressure 'heat': expected none, memory, disk, pid"
    ):
        real.press("real-0", "heat")
    with pytest.raises(SandboxError, match="no daemon 'cron': expected containerd, kubelet"):
        real.end_daemon("real-0", "cron")
