"""docs/failures.md on real kubelets: a peer is away, and what runs, waits, ends or comes meanwhile does what the page says."""

from pathlib import Path

import pytest

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.integration.clock_ahead import controllers_an_hour_ahead
from tests.realnodes.containers import LIMITS, Containers
from tests.servers import fresh_namespace, wait_until

pytestmark = pytest.mark.real_all

NODE = "real-0"
FLAGS = "/var/lib/kubelet"
"""A folder of the node; a file in it tells a pod to end."""
CODE = 3
RUNS_S = 60.0
SETTLED_S = 120.0
"""Once the peer is back: leases, retries and a slurmctld that counts its nodes."""


@pytest.mark.parametrize(
    ("peer", "refused"),
    [
        ("webhook", "failed calling webhook"),
        ("extender", ""),
        ("controllers", ""),
        ("bridge-scheduler", ""),
        ("slurmrestd", ""),
        ("slurmctld", ""),
        ("slurmdbd", ""),
        ("apiserver", "no answer"),
    ],
)
def test_a_peer_that_is_away_ends_nothing_and_loses_nothing(
    real: Sandbox, containers: Containers, peer: str, refused: str
) -> None:
    containers.create("steady", "sleep 600", node=NODE)
    containers.create("ends", until_told(peer), node=NODE, host_folder=FLAGS)
    began = containers.runs("steady")["status"]["containerStatuses"]
    containers.runs("ends")
    containers.create("waits", "exit 0", node=NODE, limits={**LIMITS, "cpu": "2"})
    wait_until(lambda: waits(containers), RUNS_S, sandbox=real)

    real.stop(peer)
    try:
        if refused:
            with pytest.raises(ApiError, match=refused):
                containers.create("comes", "exit 0")
        else:
            containers.create("comes", "exit 0")
        if peer != "apiserver":
            assert_others_start(real)
        real.on_node(NODE, "touch", f"{FLAGS}/{peer}")
        wait_until(lambda: has_ended(real, peer), RUNS_S, sandbox=real)
    finally:
        real.start(peer)

    if refused:
        wait_until(lambda: created(containers, "comes"), SETTLED_S, sandbox=real)
    for name, code in (("ends", CODE), ("comes", 0)):
        containers.ends(name, SETTLED_S)
        state = "FAILED" if code else "COMPLETED"
        assert (state, f"{code}:0") == containers.accounted(name)
    assert began == containers.get("steady")["status"]["containerStatuses"]
    assert "RUNNING" in real.run("squeue", "-h", "-j", containers.job_of("steady"), "-o", "%T")
    real.run("scancel", containers.job_of("steady"))
    containers.ends("waits", SETTLED_S)
    assert ("COMPLETED", "0:0") == containers.accounted("waits")


def test_a_leader_an_hour_ahead_ends_no_container(
    real: Sandbox, containers: Containers, tmp_path: Path
) -> None:
    limited = {f"{names.REQUEST_PREFIX}timelimit": "30"}
    containers.create("steady", "sleep 600", notes=limited)
    began = containers.runs("steady")["status"]["containerStatuses"]
    log = tmp_path / "controllers.log"

    with controllers_an_hour_ahead(real, log):
        wait_until(lambda: b"clock.differs" in log.read_bytes(), SETTLED_S, sandbox=real)
        containers.create("short", "exit 3", notes=limited)
        containers.ends("short")
        assert ("FAILED", "3:0") == containers.accounted("short")
        # The other was in its queue before, so it has looked at it.

    assert began == containers.get("steady")["status"]["containerStatuses"]
    limit = real.run("squeue", "-h", "-j", containers.job_of("steady"), "-o", "%T %l")
    assert "RUNNING 30:00" == limit.strip()


def until_told(peer: str) -> str:
    """Return a script that ends when its flag is there, and says so on the node."""
    told, done = f"/host/{peer}", f"/host/{peer}-done"
    return (
        f"rm -f {told} {done}; until [ -e {told} ]; do sleep 0.1; done; touch {done}; exit {CODE}"
    )


def has_ended(real: Sandbox, peer: str) -> bool:
    """Ask the node itself: there may be no API server."""
    return f"{peer}-done" in real.on_node(NODE, "ls", FLAGS).split()


def waits(containers: Containers) -> bool:
    """Check whether Slurm has the job of the pod that finds no room."""
    return names.JOB_ID_LABEL in containers.get("waits")["metadata"]["labels"]


def created(containers: Containers, name: str) -> bool:
    """Try once more, as controllers do."""
    try:
        containers.create(name, "exit 0")
    except ApiError:
        return False
    return True


def assert_others_start(real: Sandbox) -> None:
    """A namespace that is not Slurm's does not notice."""
    with fresh_namespace(real, labels={}) as plain:
        others = Containers(real, plain)
        others.create("other", "exit 0")
        wait_until(
            lambda: others.get("other")["status"]["phase"] in ("Running", "Succeeded"),
            RUNS_S,
            sandbox=real,
        )
