"""Two Slurms in pods on real kubelets, by one operator that was told of neither: each is read by itself."""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.image.slurm import SlurmImage
from sandbox.operator import demo
from tests.realnodes import slurm_objects
from tests.servers import running_sandbox, wait_until

pytestmark = pytest.mark.real_all

STARTS_S = 180.0
LEAVES_S = 120.0
JOB_S = 20
WORKERS = ["workers-0", "workers-1"]
NO_SLURM = "has no RestApi with replicas"


@dataclass(frozen=True, slots=True)
class SlurmInPods:
    """One of them."""

    sandbox: Sandbox
    namespace: str

    def make(self) -> None:
        """Make its objects, without an Accounting."""
        objects = copy.deepcopy(slurm_objects.OBJECTS)
        for manifest in objects:
            manifest.get("spec", {}).pop("accountingRef", None)
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.sandbox.kubectl("create", "namespace", self.namespace)
        self.sandbox.kubectl("-n", self.namespace, "apply", "-f", "-", stdin=listed)

    def run(self, *command: str) -> str:
        """Run a command beside slurmctld; "" while it cannot run."""
        pod = ("exec", "site-controller-0", "-c", "slurmctld", "--")
        try:
            return self.sandbox.kubectl("-n", self.namespace, *pod, *command)
        except SandboxError:
            return ""

    def submit(self, worker: str) -> str:
        """Submit a batch job to a worker; return its id."""
        command = ("--parsable", "--output=/dev/null", "-w", worker, f"--wrap=sleep {JOB_S}")
        return self.run("sbatch", *command).strip()

    def states(self, *jobs: str) -> set[str]:
        """Return the states of some jobs."""
        wanted = ("-h", "--states=all", "-j", ",".join(jobs), "-o", "%T")
        return {*self.run("squeue", *wanted).split()}

    def scale(self, kind: str, replicas: int) -> None:
        """Change how many there are."""
        patch = json.dumps({"spec": {"replicas": replicas}})
        self.sandbox.kubectl("-n", self.namespace, "patch", kind, "--type=merge", f"-p={patch}")

    def workers(self) -> list[str]:
        """Return the names of the workers' pods."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        found = self.sandbox.admin.get(path, labelSelector="app.kubernetes.io/name=slurmd")
        return sorted(item["metadata"]["name"] for item in found["items"])

    def drained(self) -> list[str]:
        """Return the workers that Slurm gives no more jobs."""
        lines = self.run("sinfo", "-h", "-N", "-o", "%N %T").splitlines()
        return [name for name, state in map(str.split, lines) if state.startswith("drain")]

    def slurm_known(self) -> tuple[str, str]:
        """Return status and message of the NodeSet's condition."""
        path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{self.namespace}/nodesets/workers"
        for condition in self.sandbox.admin.get(path).get("status", {}).get("conditions", []):
            if condition["type"] == "SlurmKnown":
                return condition["status"], condition.get("message", "")
        return "", ""


@pytest.fixture(scope="module")
def slurms(slurm_images: tuple[SlurmImage, ...]) -> Iterator[tuple[SlurmInPods, SlurmInPods]]:
    """Both, with two workers each, before any of them has a job."""
    with running_sandbox(demo.SHAPE) as sandbox:
        both = SlurmInPods(sandbox, "physics"), SlurmInPods(sandbox, "biology")
        for each in both:
            each.make()
        for each in both:
            wait_until(
                lambda each=each: (  # type: ignore[misc]  # called before the next one
                    each.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n"
                    and each.slurm_known()[0] == "True"
                ),
                STARTS_S,
                sandbox=sandbox,
            )
        yield both


def test_each_scales_in_only_when_its_own_slurm_says_that_a_worker_is_free(
    slurms: tuple[SlurmInPods, SlurmInPods],
) -> None:
    sandbox = slurms[0].sandbox
    jobs = [[each.submit(worker) for worker in WORKERS] for each in slurms]
    for each, ours in zip(slurms, jobs, strict=True):
        wait_until(
            lambda each=each, ours=ours: each.states(*ours) == {"RUNNING"},  # type: ignore[misc]  # called before the next one
            STARTS_S,
            sandbox=sandbox,
        )
        each.scale("nodeset/workers", 1)
    for slurm in slurms:
        (going,) = wait_until(slurm.drained, LEAVES_S, sandbox=sandbox)
        assert WORKERS == slurm.workers()
        assert going in WORKERS
    for each, ours in zip(slurms, jobs, strict=True):
        wait_until(lambda each=each: len(each.workers()) == 1, LEAVES_S, sandbox=sandbox)  # type: ignore[misc]  # called before the next one
        wait_until(
            lambda each=each, ours=ours: each.states(*ours) == {"COMPLETED"},  # type: ignore[misc]  # called before the next one
            LEAVES_S,
            sandbox=sandbox,
        )


def test_one_that_cannot_be_asked_keeps_its_workers_and_the_other_goes_on(
    slurms: tuple[SlurmInPods, SlurmInPods],
) -> None:
    """After the test above: each has one worker left."""
    away, other = slurms
    sandbox = away.sandbox
    (worker,) = away.workers()
    away.scale("restapi/site", 0)
    wait_until(lambda: NO_SLURM in away.slurm_known()[1], LEAVES_S, sandbox=sandbox)
    for slurm in slurms:
        slurm.scale("nodeset/workers", 0)
    wait_until(lambda: not other.workers(), LEAVES_S, sandbox=sandbox)
    assert [worker] == away.workers()

    away.scale("restapi/site", 1)
    wait_until(lambda: not away.workers(), LEAVES_S, sandbox=sandbox)
    assert "True" == away.slurm_known()[0]
