"""What a dying container still holds goes to nobody else, although Slurm has given it away."""

import httpx

from sandbox.client import Sandbox
from tests.realnodes.containers import Containers
from tests.servers import wait_until

NODE = "real-1"
DIES_SLOWLY = "trap '' TERM; n=0; while :; do n=$((n+1)); echo $n > /host/beat; sleep 0.1; done"
IS_ALONE = "before=$(cat /host/beat); sleep 1; [ $before = $(cat /host/beat) ]"
GRACE_S = 6
PATIENCE_S = 60.0
LITTLE = {"cpu": "100m", "memory": "32Mi"}


def test_after_scancel_nobody_starts_where_containers_are_still_dying(
    real: Sandbox, containers: Containers
) -> None:
    """The next one has the node for itself in Slurm; Kubernetes sees room for both."""
    disk = "/var/lib/kubelet"
    containers.create(
        "dying",
        DIES_SLOWLY,
        node=NODE,
        limits=LITTLE,
        host_folder=disk,
        terminationGracePeriodSeconds=GRACE_S,
    )
    containers.runs("dying")
    alone = {"slurmjob.slinky.slurm.net/exclusive": "true"}
    containers.create("next", IS_ALONE, node=NODE, limits=LITTLE, host_folder=disk, notes=alone)
    wait_until(lambda: "PENDING" in queued(real, "next"), PATIENCE_S, sandbox=real)

    real.run("scancel", containers.job_of("dying"))

    wait_until(lambda: "RUNNING" in queued(real, "next"), PATIENCE_S, sandbox=real)
    told = "has node real-1 since"
    wait_until(lambda: told in allocated(containers, "next"), PATIENCE_S, sandbox=real)
    assert "Succeeded" == containers.ends("next")["status"]["phase"]
    assert waited_s(real) >= GRACE_S / 2
    where = f"/apis/events.k8s.io/v1/namespaces/{containers.namespace}/events"
    notes = [e["note"] for e in real.admin.get(where)["items"] if e["reason"] == "NodeVacated"]
    assert len(notes) == 1
    assert "until terminating pods were gone" in notes[0]


def queued(real: Sandbox, name: str) -> str:
    return real.run("squeue", "-h", "-o", "%T", "--name", name)


def allocated(containers: Containers, name: str) -> str:
    said = containers.get(name)["status"].get("conditions", [])
    return next((c["message"] for c in said if c["type"].endswith("/Allocated")), "")


def waited_s(real: Sandbox) -> float:
    """What the metric says pods have waited for others to die."""
    lines = httpx.get(f"{real.instance.url('extender-health')}/metrics", trust_env=False).text
    name = 'slurm_bridge_step_duration_seconds_sum{step="room"} '
    return sum(
        float(line.removeprefix(name)) for line in lines.splitlines() if line.startswith(name)
    )
