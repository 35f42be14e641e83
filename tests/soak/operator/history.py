"""One random history of a Slurm of pods: what happens to it, and how it must be in the end."""

import contextlib
import math
import random
import subprocess
import time
from collections.abc import Callable, Sequence

from sandbox.api import ApiError
from sandbox.errors import SandboxError
from sandbox.operator.serving import SLURM_CONF
from slurmruntime.process.clock import SystemClock
from tests.realnodes.in_pods import STARTS_S, InPods
from tests.servers import wait_until
from tests.soak.operator import lives
from tests.soak.operator.lives import SHAPE, Attempts, Death, NativeJob
from tests.soak.operator.shared import SharedWorld

_MOST_WORKERS = 2
"""As many as there are nodes."""
_STEPS = (6, 12)
_PAUSE_S = (0.5, 4.0)
_JOB_S = (1.0, 20.0)
_AWAY_S = (1.0, 15.0)
_PARTITIONS = ("first", "second", "third")
"""Those that come and go, beside the workers' own."""
_SETTLES_S = 300.0
_LOOKS_S = 1.0
"""How often it is looked whether all is well: each look runs commands, which take the processor from those it waits for."""
_AWAY = (SandboxError, ApiError, AssertionError, KeyError, ValueError, subprocess.TimeoutExpired)
"""What a step fails with while something is away; the history goes on."""


class OperatorHistory:
    """One history; the same seed draws the same if as many live at a time."""

    def __init__(self, in_pods: InPods, seed: int, world: SharedWorld, *, at_a_time: int) -> None:
        """Prepare.

        Args:
            in_pods: the Slurm that lives through it.
            seed: of its dice.
            world: what it shares with others.
            at_a_time: how many live in that world. What happens to all is drawn so much more rarely by each.
        """
        self._in_pods = in_pods
        self._admin = in_pods.sandbox.admin
        self._world = world
        self._at_a_time = at_a_time
        self._dice = random.Random(seed)  # noqa: S311  # seeded: the same draws come again
        self._pods = f"/api/v1/namespaces/{in_pods.namespace}/pods"
        self._node_set = (
            f"/apis/slinky.slurm.net/v1beta1/namespaces/{in_pods.namespace}/nodesets/workers"
        )
        self._controller = (
            f"/apis/slinky.slurm.net/v1beta1/namespaces/{in_pods.namespace}/controllers/site"
        )
        self._deaths: list[Death] = []
        self._forgets = False
        """Whether slurmctld was killed since it was last asked what it has forgotten."""
        self.jobs: list[NativeJob] = []
        self.told: list[str] = []
        self.excused = 0
        """How many jobs were on a killed worker."""
        self.unmissed = 0
        """How many of these slurmctld took for running when the worker had long been back."""

    def live(self) -> None:
        """Let things happen."""
        kinds: dict[Callable[[], None], float] = {
            self.submit: 10,
            self.cancel: 1,
            self.scale: 4,
            self.update: 2,
            self.change_partitions: 8,
            self.evict: 3,
            self.delete_a_pod: 1,
            self.kill_a_daemon: 2,
            self.kill_a_worker: 1,
            self.slurm_is_away: 2,
            self.cordon: 3 / self._at_a_time,
            self.kill_the_operator: 2 / self._at_a_time,
            self.kill_a_kubelet: 1 / self._at_a_time,
            self.the_api_is_away: 1 / self._at_a_time,
        }
        self._tried(self.submit)
        for _ in range(self._dice.randint(*_STEPS)):
            (chosen,) = self._dice.choices(list(kinds), list(kinds.values()))
            self._tried(chosen)
            self._see_who_is_back()
            self._see_what_is_forgotten()
            time.sleep(self._dice.uniform(*_PAUSE_S))

    def _tried(self, step: Callable[[], None]) -> None:
        try:
            step()
            self.told.append(step.__name__)
        except _AWAY as error:
            self.told.append(f"{step.__name__} failed: {str(error)[:80]}")

    # -- what happens to this Slurm ---------------------------------------------------------------

    def submit(self) -> None:
        for _ in range(self._dice.randint(1, 3)):
            job = NativeJob("", self._dice.uniform(*_JOB_S), self._dice.choice((0, 0, 0, 7)))
            where = self._dice.choice((None, *_PARTITIONS))
            command = ["--parsable", "--output=/dev/null", f"--wrap={job.script}"]
            command += [] if where is None else ["-p", where]  # if there is such a one now
            job.id = self._in_pods.run("sbatch", *command).strip()
            if job.id:
                self.jobs.append(job)

    def cancel(self) -> None:
        if self.jobs:
            job = self._dice.choice(self.jobs)
            job.is_cancelled = True  # whether or not the answer comes
            self._in_pods.run("scancel", job.id)

    def scale(self) -> None:
        self._set_workers(self._dice.randint(0, _MOST_WORKERS))

    def _set_workers(self, number: int) -> None:
        self._admin.patch(self._node_set, {"spec": {"replicas": number}})

    def update(self) -> None:
        template = {"metadata": {"annotations": {"soak": str(self._dice.randrange(10**6))}}}
        self._admin.patch(self._node_set, {"spec": {"template": template}})

    def change_partitions(self) -> None:
        """Some come, some go, and one that goes while another comes is what a new name is."""
        self._set_partitions(self._dice.sample(_PARTITIONS, self._dice.randint(0, 3)))

    def _set_partitions(self, names: Sequence[str]) -> None:
        lines = "".join(f"PartitionName={name} Nodes=workers\n" for name in sorted(names))
        self._admin.patch(self._controller, {"spec": {"extraConf": SLURM_CONF + lines}})

    def evict(self) -> None:
        """As `kubectl drain` asks for it, again and again; a refusal is what it should be for a worker with work."""
        for name in self._in_pods.workers():
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            with contextlib.suppress(ApiError):
                self._admin.create(f"{self._pods}/{name}/eviction", body)

    def delete_a_pod(self) -> None:
        """Its preStop drains it and waits for its jobs."""
        if names := self._in_pods.workers():
            self._admin.delete(f"{self._pods}/{self._dice.choice(names)}")

    def kill_a_daemon(self) -> None:
        daemon = self._dice.choice(("slurmctld", "slurmdbd", "slurmrestd"))
        if daemon != "slurmctld":
            self._in_pods.kill(daemon)
            return
        with self._world.quiet():
            self._in_pods.let_save()  # else it loses what it was told within the last seconds
            self._forgets = True
            self._in_pods.kill(daemon)

    def kill_a_worker(self) -> None:
        if names := self._in_pods.workers():
            death = Death(self._dice.choice(names), from_s=_now_s())
            self._deaths.append(death)
            self._in_pods.kill_worker(death.worker)

    def _see_who_is_back(self) -> None:
        """Jobs may be lost on a killed worker until it is ready again, or another one has its name."""
        for death in self._deaths:
            with contextlib.suppress(*_AWAY):
                if death.until_s == math.inf and self._in_pods.is_ready(death.worker):
                    death.until_s = _now_s()

    def _see_what_is_forgotten(self) -> None:
        """Do so soon: once a worker registers again, slurmctld misses the jobs itself, and calls that NODE_FAIL."""
        if self._forgets:
            with contextlib.suppress(*_AWAY):
                self._forgets = not self._cancel_forgotten(self._attempts())

    def slurm_is_away(self) -> None:
        with self._in_pods.frozen("slurmrestd"):
            self._tried(self.scale)
            time.sleep(self._dice.uniform(*_AWAY_S))

    # -- what happens to all ----------------------------------------------------------------------

    def cordon(self) -> None:
        self._world.cordon(self._dice)

    def kill_the_operator(self) -> None:
        self._world.kill_the_operator()

    def kill_a_kubelet(self) -> None:
        self._world.kill_a_kubelet(self._dice)

    def the_api_is_away(self) -> None:
        self._world.the_api_is_away(self._dice)

    # -- in the end -------------------------------------------------------------------------------

    def calm_down(self) -> None:
        """Ask for all workers again, once nothing happens any more."""
        wait_until(self._is_calm, STARTS_S)

    def _is_calm(self) -> bool:
        try:
            self._world.uncordon_all()
            self._set_workers(_MOST_WORKERS)
            self._set_partitions(_PARTITIONS)  # or jobs would wait for ever
        except _AWAY:
            return False
        return True

    def breaches(self) -> list[str]:
        """Wait until all is as it should be; return what is not."""
        found: list[str] = []
        if not self._has_settled():
            conditions = self._admin.get(self._node_set)["status"].get("conditions", [])
            words = [condition.get("message", "") for condition in conditions]
            nodes = self._in_pods.run("sinfo", "-h", "-N", "-o", "%N %T %E")
            open_ones = [job.id for job in lives.open_ones(self.jobs, self._attempts())]
            found.append(f"not settled: {words} {nodes!r} {open_ones}")
        attempts = self._attempts()
        self.excused = len(lives.excused(self.jobs, attempts, self._deaths))
        return found + list(lives.breaches(self.jobs, attempts, self._deaths))

    def _has_settled(self) -> bool:
        """Look until all is as it should be; False if that takes too long."""
        began_s = time.monotonic()
        while not self._is_settled():
            if time.monotonic() - began_s > _SETTLES_S:
                return False
            time.sleep(_LOOKS_S)
        return True

    def _is_settled(self) -> bool:
        try:
            kinds = ("Ready", "Updated", "SlurmKnown")
            self._see_who_is_back()
            attempts = self._attempts()
            self._cancel_forgotten(attempts)
            said = [self._in_pods.condition("nodesets", "workers", kind)[0] for kind in kinds]
            return said == ["True"] * 3 and not lives.open_ones(self.jobs, attempts)
        except _AWAY:
            return False

    def _cancel_forgotten(self, attempts: Attempts) -> bool:
        """Do what somebody does who does not want to wait for the worker's next registration; False if nobody answers.

        attempts: read before: who ends in between is not forgotten.
        """
        head, *running = self._in_pods.run("squeue", "-t", "RUNNING", "-o", "%i").split() or [""]
        for job in lives.forgotten(self.jobs, attempts, running):
            job.ended = attempts[job.id]
            self._in_pods.run("scancel", job.id)
        for job in lives.unmissed(self.jobs, attempts, self._deaths, _now_s()):
            self.unmissed += not job.is_cancelled
            job.is_cancelled = True
            self._in_pods.run("scancel", job.id)
        return bool(head)

    def _attempts(self) -> Attempts:
        shape = ("-X", "-D", "-n", "-P", "-a", "-o", SHAPE, "-S", "now-2hours")
        return lives.accounted(self._in_pods.run("env", "SLURM_TIME_FORMAT=%s", "sacct", *shape))


def _now_s() -> float:
    return SystemClock().now().timestamp()
