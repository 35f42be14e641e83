"""`python -m tests.soak.operator`: random histories of a Slurm of pods, on real kubelets and with real jobs.

NodeSets are scaled and updated, Kubernetes nodes cordoned, workers evicted and deleted, daemons, workers, kubelets and the operator
killed, Slurm and the API server away. A job may end by itself, by a person, or with its worker if the history killed that.
Writes its section of docs/reliability.md, and ends with 1 if a contract was broken.
"""

import contextlib
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import typer

from sandbox.api import ApiError
from sandbox.errors import SandboxError
from sandbox.operator import images
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until
from tests.soak import report
from tests.soak.operator import lives
from tests.soak.operator.lives import NativeJob

_MOST_WORKERS = 2
"""As many as there are nodes."""
_STEPS = (6, 12)
_PAUSE_S = (0.5, 4.0)
_JOB_S = (1.0, 20.0)
_AWAY_S = (1.0, 15.0)
_SETTLES_S = 300.0
_AWAY = (SandboxError, ApiError, AssertionError, KeyError, ValueError, subprocess.TimeoutExpired)
"""What a step fails with while something is away; the history goes on."""
_NODE_SET = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/nodesets/workers"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


class OperatorHistory:
    """One history; the same seed draws the same."""

    def __init__(self, in_pods: InPods, seed: int) -> None:
        self._in_pods = in_pods
        self._sandbox = in_pods.sandbox
        self._admin = in_pods.sandbox.admin
        self._dice = random.Random(seed)  # noqa: S311  # seeded: the same draws come again
        self.jobs: list[NativeJob] = []
        self.told: list[str] = []

    def live(self) -> None:
        """Let things happen, then calm down."""
        kinds: dict[Callable[[], None], float] = {
            self.submit: 10,
            self.cancel: 1,
            self.scale: 4,
            self.cordon: 3,
            self.update: 2,
            self.evict: 3,
            self.delete_a_pod: 1,
            self.kill_the_operator: 2,
            self.kill_a_daemon: 2,
            self.kill_a_worker: 1,
            self.kill_a_kubelet: 1,
            self.slurm_is_away: 2,
            self.the_api_is_away: 1,
        }
        self._tried(self.submit)
        for _ in range(self._dice.randint(*_STEPS)):
            (chosen,) = self._dice.choices(list(kinds), list(kinds.values()))
            self._tried(chosen)
            time.sleep(self._dice.uniform(*_PAUSE_S))
        wait_until(self._is_calm, STARTS_S)

    def _tried(self, step: Callable[[], None]) -> None:
        try:
            step()
            self.told.append(step.__name__)
        except _AWAY as error:
            self.told.append(f"{step.__name__} failed: {str(error)[:80]}")

    # -- what happens -----------------------------------------------------------------------------

    def submit(self) -> None:
        for _ in range(self._dice.randint(1, 3)):
            job = NativeJob("", self._dice.uniform(*_JOB_S), self._dice.choice((0, 0, 0, 7)))
            command = ("--parsable", "--output=/dev/null", f"--wrap={job.script}")
            job.id = self._in_pods.run("sbatch", *command).strip()
            if job.id:
                self.jobs.append(job)

    def cancel(self) -> None:
        if self.jobs:
            job = self._dice.choice(self.jobs)
            job.is_cancelled = True  # whether or not the answer comes
            self._in_pods.run("scancel", job.id)

    def scale(self) -> None:
        self._admin.patch(_NODE_SET, {"spec": {"replicas": self._dice.randint(0, _MOST_WORKERS)}})

    def cordon(self) -> None:
        node = self._dice.choice(self._sandbox.instance.options.real_node_names)
        is_cordoned = self._dice.random() < 0.6
        self._admin.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": is_cordoned}})

    def update(self) -> None:
        template = {"metadata": {"annotations": {"soak": str(self._dice.randrange(10**6))}}}
        self._admin.patch(_NODE_SET, {"spec": {"template": template}})

    def evict(self) -> None:
        """As `kubectl drain` asks for it, again and again; a refusal is what it should be for a worker with work."""
        for name in self._in_pods.workers():
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            with contextlib.suppress(ApiError):
                self._admin.create(f"{_PODS}/{name}/eviction", body)

    def delete_a_pod(self) -> None:
        """Its preStop drains it and waits for its jobs."""
        if names := self._in_pods.workers():
            self._admin.delete(f"{_PODS}/{self._dice.choice(names)}")

    def kill_the_operator(self) -> None:
        self._sandbox.restart("operator", signal="KILL", wait=False)

    def kill_a_daemon(self) -> None:
        daemon = self._dice.choice(("slurmctld", "slurmdbd", "slurmrestd"))
        if daemon == "slurmctld":
            self._in_pods.let_save()  # else it loses what it was told within the last seconds
        self._in_pods.kill(daemon)

    def kill_a_worker(self) -> None:
        names = self._in_pods.workers()
        if not names:
            return
        name = self._dice.choice(names)
        # A job may start there just before or after: whoever has run there until it is back may be lost.
        self._excuse(name)
        try:
            self._in_pods.kill_worker(name)
        finally:
            self._excuse(name)

    def _excuse(self, worker: str) -> None:
        wait_until(lambda: " is UP" in self._in_pods.run("scontrol", "ping"), STARTS_S)
        there = self._in_pods.run("squeue", "-h", "-w", worker, "-o", "%i").split()
        for job in self.jobs:
            job.is_excused |= job.id in there

    def kill_a_kubelet(self) -> None:
        node = self._dice.choice(self._sandbox.instance.options.real_node_names)
        self._sandbox.end_daemon(node, "kubelet")

    def slurm_is_away(self) -> None:
        with self._in_pods.frozen("slurmrestd"):
            self._tried(self.scale)
            time.sleep(self._dice.uniform(*_AWAY_S))

    def the_api_is_away(self) -> None:
        self._sandbox.pause("apiserver")
        try:
            time.sleep(self._dice.uniform(*_AWAY_S))
        finally:
            self._sandbox.resume("apiserver")

    # -- in the end -------------------------------------------------------------------------------

    def _is_calm(self) -> bool:
        try:
            for node in self._sandbox.instance.options.real_node_names:
                self._admin.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": False}})
            self._admin.patch(_NODE_SET, {"spec": {"replicas": _MOST_WORKERS}})
        except _AWAY:
            return False
        return True

    def breaches(self) -> list[str]:
        """Wait until all is as it should be; return what is not."""
        found: list[str] = []
        try:
            wait_until(self._is_settled, _SETTLES_S)
        except AssertionError:
            conditions = self._admin.get(_NODE_SET)["status"].get("conditions", [])
            words = [each.get("message", "") for each in conditions]
            nodes = self._in_pods.run("sinfo", "-h", "-N", "-o", "%N %T %E")
            found.append(f"not settled: {words} {nodes!r} {self._open()}")
        return found + list(lives.breaches(self.jobs, self._attempts()))

    def _is_settled(self) -> bool:
        try:
            kinds = ("Ready", "Updated", "SlurmKnown")
            self._cancel_forgotten()
            said = [self._in_pods.condition("nodesets", "workers", each)[0] for each in kinds]
            return said == ["True"] * 3 and not self._open()
        except _AWAY:
            return False

    def _cancel_forgotten(self) -> None:
        """Do what somebody does who does not want to wait for the worker's next registration."""
        attempts = self._attempts()  # first: who ends in between is not forgotten
        running = self._in_pods.run("squeue", "-h", "-t", "RUNNING", "-o", "%i").split()
        for job in lives.forgotten(self.jobs, attempts, running):
            job.ended = attempts[job.id]
            self._in_pods.run("scancel", job.id)

    def _open(self) -> list[str]:
        return [job.id for job in lives.open_ones(self.jobs, self._attempts())]

    def _attempts(self) -> Any:
        shape = ("-X", "-D", "-n", "-P", "-a", "-o", "JobID,State,ExitCode")
        return lives.accounted(self._in_pods.run("sacct", *shape, "-S", "now-2hours"))


def main(
    *,
    histories: Annotated[
        int, typer.Option(help="How many, those of earlier runs included.", min=1)
    ] = 200,
    minutes: Annotated[
        float, typer.Option(help="Begin no history after so many minutes; 0: all.", min=0)
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 1,
    anew: Annotated[
        bool, typer.Option("--anew", help="Do not go on where the last run ended.")
    ] = False,
) -> None:
    """Find out whether anything can cost a job that runs on a worker."""
    began_s = time.monotonic()
    found = None if anew else report.kept("operator")
    if found is None or found["seed"] != seed:
        found = {**report.about(seed), "done": 0, "jobs": 0, "excused": 0}
        found |= {"forgotten": 0, "kinds": {}, "breaches": []}
    with slurm_in_pods(images.ready()) as in_pods:
        wait_until(lambda: in_pods.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n", STARTS_S)
        while found["done"] < histories and not 0 < minutes * 60 < time.monotonic() - began_s:
            _live(found, OperatorHistory(in_pods, 1000 * seed + found["done"]))
    raise typer.Exit(1 if found["breaches"] else 0)


def _live(found: dict[str, Any], history: OperatorHistory) -> None:
    """Let one history happen, and keep what comes of it."""
    number = found["done"]
    history.live()
    broken = history.breaches()
    found["done"] += 1
    found["jobs"] += len(history.jobs)
    found["excused"] += sum(job.is_excused for job in history.jobs)
    found["forgotten"] += sum(bool(job.ended) for job in history.jobs)
    done = (step.replace("_", " ") for step in history.told if " failed" not in step)
    found["kinds"] = dict(Counter(found["kinds"]) + Counter(done))
    found["breaches"] += [f"history {number}: {each}" for each in broken]
    typer.echo(
        f"history {number}: {len(history.jobs)} jobs, {len(broken)} contracts broken:"
        f" {', '.join(history.told)}"
    )
    for line in broken:
        typer.echo(f"  {line}")
    report.keep("operator", found)


if __name__ == "__main__":
    typer.run(main)
