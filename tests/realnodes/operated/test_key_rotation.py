"""The key of Slurm's daemons is replaced on real kubelets while jobs run: each job ends by itself, and all daemons have the new key only."""

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.image.slurm import SlurmImage
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

JOB_S = 30
ROTATES_S = 750.0
"""Three times all daemons, and each worker after its job."""
STATE = "/var/lib/test-slurmctld"
SLURM_USER = "401"
CONTROLLER = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/controllers/site"
RING = f"/api/v1/namespaces/{NAMESPACE}/secrets/site-auth-slurm-ring"
WORKERS = ("workers-0", "workers-1")


def with_state(sandbox: Sandbox) -> dict[str, Any]:
    """Let slurmctld's state outlive its pod: there are no volumes to claim here."""
    node = str(sandbox.admin.get("/api/v1/nodes")["items"][0]["metadata"]["name"])
    sandbox.on_node(node, "install", "-d", "-o", SLURM_USER, "-g", SLURM_USER, STATE)
    volume = {"name": "statesave", "hostPath": {"path": STATE, "type": "Directory"}}
    return {
        "template": {
            "spec": {"nodeSelector": {"kubernetes.io/hostname": node}, "volumes": [volume]}
        }
    }


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    with slurm_in_pods(slurm_images, controller=with_state) as found:
        yield found


class Load:
    """Always a job on each worker, or one that waits for it; and what was seen meanwhile."""

    def __init__(self, in_pods: InPods) -> None:
        self._in_pods = in_pods
        self.jobs: dict[str, list[str]] = {name: [] for name in WORKERS}
        self.said: set[str] = set()
        """All that the Controller was told of its key."""
        self.refusals: list[str] = []
        """What slurmctld said of keys that it does not know."""

    def goes_on(self) -> bool:
        """Look once; return whether all have the new key."""
        for name, jobs in self.jobs.items():
            has_ended = not jobs or self._in_pods.state(jobs[-1]) == "COMPLETED"
            if has_ended and (job := self._in_pods.submit(name, JOB_S)):
                jobs.append(job)
        status, message = self._in_pods.condition("controllers", "site", "SlurmKeyRotated")
        self.said.add(message)
        self.refusals += [each for each in self._log() if "decode_jwt" in each]
        return status == "True"

    def all(self) -> set[str]:
        return {job for jobs in self.jobs.values() for job in jobs}

    def _log(self) -> list[str]:
        try:
            return self._in_pods.sandbox.kubectl(
                "-n", NAMESPACE, "logs", "site-controller-0", "-c", "logfile"
            ).splitlines()
        except SandboxError:  # it is being replaced
            return []


def test_all_daemons_come_to_another_key_and_every_job_ends_by_itself(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    login = in_pods.log_in("login", in_pods.login_image)
    wait_until(lambda: in_pods.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n", STARTS_S)
    wait_until(
        lambda: in_pods.condition("nodesets", "workers", "SlurmKnown")[0] == "True",
        STARTS_S,
        sandbox=sandbox,
    )
    load = Load(in_pods)
    load.goes_on()
    wait_until(lambda: in_pods.run("squeue", "-h", "-o", "%t").split() == ["R", "R"], STARTS_S)
    mark = {"metadata": {"annotations": {"slurm-bridge.dev/slurm-key-number": "2"}}}
    sandbox.admin.patch(CONTROLLER, mark)
    wait_until(load.goes_on, ROTATES_S, sandbox=sandbox)

    steps = [f"key 2, step {number} of 3" for number in (1, 2, 3)]
    assert all(any(step in said for said in load.said) for step in steps), load.said
    assert any("waiting for pod workers-" in each for each in load.said), load.said
    assert not load.refusals
    assert {"slurm.key.2.jwks", "slurm.key.3.jwks"} == {*sandbox.admin.get(RING)["data"]}
    for worker in WORKERS:
        files = sandbox.kubectl(
            "-n", NAMESPACE, "exec", worker, "-c", "slurmd", "--", "cat", "/etc/slurm/slurm.jwks"
        )
        assert "key-2" in files
        assert "key-1" not in files

    wait_until(
        lambda: {"COMPLETED"} == {in_pods.state(jobs[-1]) for jobs in load.jobs.values()},
        STARTS_S,
        sandbox=sandbox,
    )
    wait_until(
        lambda: {(job, "COMPLETED") for job in load.all()} <= in_pods.accounted(),
        STARTS_S,
        sandbox=sandbox,
    )
    runs = in_pods.run("sacct", "-X", "-D", "-n", "-P", "-a", "-o", "JobID").split()
    assert [] == [job for job in load.all() if runs.count(job) != 1], "a job was run again"
    assert len(load.all()) >= 2 * len(steps)
    wait_until(
        lambda: {*in_pods.tries(login, "srun", "-N2", "hostname").split()} == {*WORKERS},
        STARTS_S,
        sandbox=sandbox,
    )
