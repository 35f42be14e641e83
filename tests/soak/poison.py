"""One object of each kind that once stopped everything, in both worlds for as long as a soak lasts.

They are put there while all is calm, and looked at again when it is calm again: those that ask for what cannot be have been
told, those that are only odd have run on as if they were not, and none of them has made us raise.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sandbox import nss
from sandbox.api import Api
from sandbox.client import Sandbox
from slurmruntime.values import names
from slurmruntime.values.names import REQUEST_PREFIX
from tests.integration.slurm_users import run_as
from tests.integration.worlds import (
    LIVE,
    Job,
    Manifest,
    Worlds,
    condition,
    container,
    is_gated,
    job_manifest,
    played,
)
from tests.servers import wait_until
from tests.soak.lives import HELD

_CENTURIES_S = 10**12
_MORE_S = 2**62 + 10**9
"""The API server multiplies by 10^9, in 64 bits: that wraps to 31 years from now. Of most such numbers it makes the past."""
_GANG = 24
"""More than the circuit breaker lets go at once."""
_BOMBED = 20
_DIGITS = "9" * 5000
_ODD_NAME = b"a\xff"
_MANY_FIELDS = {f"{REQUEST_PREFIX}min-node{number:05}": "x" for number in range(5000)}
"""230 kB of annotations, none of them a field."""
_BREAK_GLASS = ("system:masters", "slurm-bridge:break-glass")
"""Groups of somebody whom no policy keeps from writing our own annotations."""
_STUBBORN = played(stop_seconds=1e19)
"""Containers that ignore SIGTERM for longer than any grace, which is what KWOK goes by."""
_PLACED_WITHIN_S = 120.0
_TOLD_WITHIN_S = 180.0
"""Once all is calm: a refused pod is tried again after minutes, and a new leader tells anew."""
_LOOKS_EVERY_S = 2.0

Kind = tuple[str, Callable[[], Iterator[str]]]
"""What it is, and what is wrong with how it was taken."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A workload that has a job, which has to stay the same."""

    uid: str
    job: int


class Poison:
    """Everything odd, in a namespace of its own."""

    def __init__(self, sandbox: Sandbox, namespace: str) -> None:
        self._worlds = Worlds(sandbox, namespace)
        self._sandbox = sandbox
        self._logged = {
            name: sandbox.instance.log(name).stat().st_size
            for name in sandbox.instance.options.services
        }
        self._placed: dict[str, _Placed] = {}
        self._stranger = 0

    @property
    def kinds(self) -> Mapping[str, Callable[[], Iterator[str]]]:
        """What there is, and how to look for what is wrong with it."""
        return {
            f"pod deleted with a grace of {_CENTURIES_S} s": lambda: self._said("deleted"),
            "pod deleted with a grace of 2^62 + 10^9 s": lambda: self._said("deleted-longest"),
            f"pod past its time limit, deleted with a grace of {_CENTURIES_S} s": (
                lambda: self._said("lasts") if self._worlds.pod("lasts") else iter(())
            ),
            "pod of another workload, its rank of 5000 digits": lambda: self._said("ranked"),
            "pod group whose size has 5000 digits": lambda: self._told("sized", "expected a whole"),
            f"Job of {_BOMBED} pods with 5000 unknown fields, 230 kB": self._bomb,
            "job of a stranger's with byte 0xFF in its name": self._strangers_job,
            "placeholder that waits, renamed with that byte by its user": lambda: self._renamed(
                "waits"
            ),
            "placeholder that runs, renamed with that byte by its user": lambda: self._renamed(
                "runs"
            ),
            f"gang of {_GANG} that runs": self._gang,
        }

    # -- before -----------------------------------------------------------------------------------

    def put(self) -> None:
        """Put one of each kind into both worlds."""
        worlds = self._worlds
        for name in ("deleted", "deleted-longest", "ranked", "runs"):
            worlds.submit(name, annotations=_STUBBORN)
        # Past its limit its grace is shortened to the cap: after an hour it is gone, as it should be.
        limited = {**_STUBBORN, f"{REQUEST_PREFIX}timelimit": "1"}
        worlds.submit("lasts", annotations=limited)
        worlds.submit("waits", annotations=HELD)
        self._put_gang()
        self._delete("deleted", _CENTURIES_S)
        self._delete("deleted-longest", _MORE_S)
        self._rank("ranked")
        self._put_group()
        self._put_bomb()
        self._put_strangers_job()
        self._rename("waits")
        self._await("runs")
        self._rename("runs")
        self._delete("lasts", _CENTURIES_S)

    def _await(self, name: str) -> None:
        self._worlds.await_phase(name, "Running", deadline_s=_PLACED_WITHIN_S)

    def _delete(self, name: str, grace_s: int) -> None:
        self._await(name)
        self._sandbox.admin.delete(f"{self._worlds.path}/pods/{name}", gracePeriodSeconds=grace_s)

    def _rank(self, name: str) -> None:
        self._await(name)
        notes = {names.WORKLOAD_ANNOTATION: "somebody-else", names.RANK_ANNOTATION: _DIGITS}
        with Api(self._sandbox.user_kubeconfig("mallory", *_BREAK_GLASS)) as mallory:
            path = f"{self._worlds.path}/pods/{name}"
            mallory.patch(path, {"metadata": {"annotations": notes}})

    def _put_group(self) -> None:
        self._sandbox.admin.create(
            f"{self._worlds.path}/pods",
            {
                "metadata": {
                    "name": "sized",
                    "labels": {names.POD_GROUP_LABEL: "mine"},
                    "annotations": {names.POD_GROUP_SIZE_ANNOTATION: _DIGITS},
                },
                "spec": {"containers": [container()], "restartPolicy": "Never"},
            },
        )

    def _put_bomb(self) -> None:
        bomb = job_manifest("bomb", annotations={}, schedulerName=names.SCHEDULER_NAME)
        bomb["metadata"]["annotations"] = _MANY_FIELDS
        bomb["spec"] |= {"parallelism": _BOMBED, "completions": _BOMBED}
        self._worlds.create_job(bomb)
        wait_until(
            lambda: len(self._pods_of("bomb")) == _BOMBED, _PLACED_WITHIN_S, sandbox=self._sandbox
        )

    def _put_strangers_job(self) -> None:
        command = ("sbatch", "--hold", "--parsable", "-A", nss.JOB_USER.name, "-J", _ODD_NAME)
        printed = run_as(self._sandbox, "alice", *command, "--wrap", "true")
        self._stranger = int(printed.split(";")[0])

    def _put_gang(self) -> None:
        ring = job_manifest("ring", annotations={names.GANG_ANNOTATION: "true"})
        shape = {"parallelism": _GANG, "completions": _GANG, "completionMode": "Indexed"}
        ring["spec"] |= shape
        self._worlds.create_job(ring)
        wait_until(
            lambda: len(self._running("ring")) == _GANG, _PLACED_WITHIN_S, sandbox=self._sandbox
        )
        uid = str(self._running("ring")[0]["metadata"]["annotations"][names.WORKLOAD_ANNOTATION])
        self._placed["ring"] = _Placed(uid, self._worlds.await_live(uid).id)

    def _rename(self, name: str) -> None:
        """As the user whose job it is."""
        pod = self._worlds.await_pod(name, bool)
        uid = str(pod["metadata"]["uid"])
        job = self._worlds.await_live(uid, deadline_s=_PLACED_WITHIN_S).id
        self._placed[name] = _Placed(uid, job)
        odd = b"name=" + _ODD_NAME
        run_as(self._sandbox, nss.JOB_USER.name, "scontrol", "update", f"jobid={job}", odd)

    # -- afterwards -------------------------------------------------------------------------------

    def breaches(self) -> Sequence[str]:
        """What is wrong with how they were taken, once all is calm: some of them are told a while later."""
        end = time.monotonic() + _TOLD_WITHIN_S
        while True:
            found = [breach for look in self.kinds.values() for breach in look()]
            if not found or time.monotonic() > end:
                return [*found, *self._crashes()]
            time.sleep(_LOOKS_EVERY_S)

    def _said(self, name: str) -> Iterator[str]:
        """Its owner is told in an Event, and it is still there."""
        if self._worlds.pod(name) is None:
            yield f"odd pod {name} is gone"
        elif "OddObject" not in self._worlds.events(name):
            yield f"odd pod {name}: nobody was told of it in an Event"

    def _told(self, name: str, words: str) -> Iterator[str]:
        """Its owner is told in its condition."""
        pod = self._worlds.pod(name)
        if pod is None:
            yield f"odd pod {name} is gone"
        elif words not in (said := condition(pod).get("message", "")):
            yield f"odd pod {name}: its condition says {said[:200]!r}"

    def _bomb(self) -> Iterator[str]:
        refused = [
            pod
            for pod in self._pods_of("bomb")
            if condition(pod).get("reason") == "SubmitRefused" and is_gated(pod)
        ]
        if len(refused) != _BOMBED:
            yield f"{len(refused)} of the {_BOMBED} pods of the odd Job were refused with a word"

    def _strangers_job(self) -> Iterator[str]:
        states = [job.state for job in self._worlds.queue() if job.id == self._stranger]
        if states != ["PENDING"]:
            yield f"the stranger's job {self._stranger} with an odd name: {states}, it was PENDING"

    def _renamed(self, name: str) -> Iterator[str]:
        pod = self._worlds.pod(name)
        phase = pod["status"]["phase"] if pod else "gone"
        meant, state = ("Pending", "PENDING") if name == "waits" else ("Running", "RUNNING")
        if phase != meant:
            yield f"{name}, whose placeholder has an odd name, is {phase} and was {meant}"
        yield from self._has_kept(name, state)

    def _gang(self) -> Iterator[str]:
        running = len(self._running("ring"))
        if running != _GANG:
            yield f"{running} of the {_GANG} pods of the gang run"
        yield from self._has_kept("ring", "RUNNING")

    def _has_kept(self, name: str, state: str) -> Iterator[str]:
        """The workload has had one placeholder only."""
        placed = self._placed[name]
        ever = self._worlds.accounted(placed.uid)
        live: list[Job] = [job for job in self._worlds.jobs(placed.uid) if job.state in LIVE]
        if [(placed.job, state)] != [(job.id, job.state) for job in live]:
            found = ", ".join(f"{job.id} {job.state}" for job in live) or "none"
            yield f"placeholders of {name}: {found}; it was {placed.job} {state}"
        if others := {job.id for job in ever} - {placed.job}:
            yield f"{name} was submitted again: jobs {sorted(others)}"

    def _crashes(self) -> Iterator[str]:
        """Lines by which a service says that it raised over an object, or ended for an error of its own."""
        for name, length in self._logged.items():
            with self._sandbox.instance.log(name).open("rb") as log:
                log.seek(length)
                for line in log:
                    if _is_ours(line):
                        yield f"{name}: {line.decode(errors='replace').strip()[:300]}"

    def _pods_of(self, job: str) -> list[Manifest]:
        found: list[Manifest] = self._sandbox.admin.get(
            f"{self._worlds.path}/pods", labelSelector=f"batch.kubernetes.io/job-name={job}"
        )["items"]
        return found

    def _running(self, job: str) -> list[Manifest]:
        return [
            pod
            for pod in self._pods_of(job)
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]


def _is_ours(line: bytes) -> bool:
    """Whether it tells of an error of ours: raised over an object, a traceback at the end, a loop that has stalled."""
    crashed = b"set_aside.crashed" in line or b"process.stalled" in line
    return crashed or (b"process.failed" in line and b"Traceback" in line)
