"""Pods by the hundred in one namespace: creates them, does to them what they are fated to, and notes what became of each.

Level-triggered like what it tests: it lists all pods again and again, straight at the API server, and an outage only
makes it late.
"""

import asyncio
import contextlib
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Self

import msgspec

from bridge.domain.model import identities
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from slurmruntime.kube import errors
from slurmruntime.kube.client import JSON, KubeClient
from tests.integration.worlds import Job
from tests.soak import contracts
from tests.soak.contracts import Ended, Pod
from tests.soak.lives import Fate, Life

_NO_SLURM = (SandboxError, subprocess.TimeoutExpired)
"""What its commands fail with while it is away or hangs."""
_REQUEST_TIMEOUT_S = 20.0
_AT_ONCE = 16
_AGAIN_S = 0.5
_LOOKS_EVERY_S = 2.0
"""Each lists all pods, and many a one asks squeue: a burden that no cluster has."""
_IDS_AT_ONCE = 1000
"""Jobs in one call of sacct: 0.4 MB."""
_TOLD_WITHIN = 30
"""Looks at how much slurmctld still has to tell slurmdbd."""


class _ListMetadata(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion")

    @property
    def version(self) -> int:
        return int(self.resource_version)


class _List(msgspec.Struct):
    metadata: _ListMetadata
    items: tuple[Pod, ...]


_pods = msgspec.json.Decoder(_List)
_pod = msgspec.json.Decoder(Pod)


@dataclass(slots=True)
class Tracked:
    """What has become of a life so far."""

    life: Life
    uid: str = ""
    since: float | None = None
    """Monotonic; when it began what its fate waits for."""
    was_told_to_go: bool = False
    has_ended: bool = False
    """It was seen over, and we have deleted it, or are about to."""
    phase: str = ""
    """As it was last seen."""


@dataclass(slots=True)
class Tally:
    """What has been seen in a soak."""

    created: int = 0
    gone: int = 0
    breaches: list[str] = field(default_factory=list)
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How pods have ended, and what sacct says of that: `contracts.ends`."""


class Field:
    """One namespace of pods, and what Slurm has of them."""

    def __init__(self, sandbox: Sandbox, kube: KubeClient, namespace: str) -> None:
        self.sandbox = sandbox
        self.tally = Tally()
        self.tracked: dict[str, Tracked] = {}
        """Those that are not gone, by name."""
        self.ended: dict[str, Ended] = {}
        """Those that are gone, by uid."""
        self._kube = kube
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._namespace = namespace
        self._blamed: set[str] = set()
        self._newest = 0
        """The newest resource version we were told of. They compare as numbers: KEP-5504."""

    @classmethod
    @asynccontextmanager
    async def on(cls, sandbox: Sandbox, namespace: str) -> AsyncIterator[Self]:
        """On a namespace that exists."""
        async with KubeClient.open(
            str(sandbox.kubeconfig), request_timeout_s=_REQUEST_TIMEOUT_S, user_agent="soak"
        ) as kube:
            yield cls(sandbox, kube, namespace)

    # -- Kubernetes -------------------------------------------------------------------------------

    async def create(self, life: Life) -> None:
        """Create a pod, however often that takes: the webhook or the API server may be away."""
        tracked = self.tracked[life.name] = Tracked(life)
        body = msgspec.Raw(msgspec.json.encode(_manifest(life)))
        while not tracked.uid:
            try:
                made = await self._kube.request("POST", self._path, body=body)
            except errors.Conflict:  # a reply was lost
                with contextlib.suppress(errors.KubeError):
                    self._is_made(
                        tracked, await self._kube.request("GET", f"{self._path}/{life.name}")
                    )
            except errors.KubeError:
                await asyncio.sleep(_AGAIN_S)
            else:
                self._is_made(tracked, made)
        self.tally.created += 1

    def _is_made(self, tracked: Tracked, body: bytes) -> None:
        made = _pod.decode(body).metadata
        tracked.uid, self._newest = made.uid, max(self._newest, made.version)

    async def tend(self, stop: asyncio.Event) -> None:
        """Look and act until told to stop."""
        while not stop.is_set():
            await self.look()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _LOOKS_EVERY_S)

    async def look(self) -> None:
        """List all pods once, note what has become of them, and do what is due."""
        known = [tracked for tracked in self.tracked.values() if tracked.uid]
        # From the API server's memory, but with all that is known: who is missing, then, is gone.
        version = {"resourceVersion": str(self._newest), "resourceVersionMatch": "NotOlderThan"}
        try:
            listed = _pods.decode(await self._kube.request("GET", self._path, params=version))
        except errors.KubeError:
            return
        self._newest = max(self._newest, listed.metadata.version)
        seen = {pod.name: pod for pod in listed.items}
        now = time.monotonic()
        due: list[Pod] = []
        for tracked in known:
            pod = seen.get(tracked.life.name)
            if pod is None:
                self._note_gone(tracked)
            else:
                tracked.phase = pod.status.phase
                self._blame(contracts.fairness(tracked.life, pod))
                if self._is_due(tracked, pod, now):
                    due.append(pod)
        await self._act(due)

    def _note_gone(self, tracked: Tracked) -> None:
        life = tracked.life
        if not (tracked.has_ended or tracked.was_told_to_go):
            self._blame([f"{life.name}, which {life.fate.value}, was deleted by somebody else"])
        del self.tracked[life.name]
        self.ended[tracked.uid] = Ended(life, tracked.phase if tracked.has_ended else "")
        self.tally.gone += 1

    def _is_due(self, tracked: Tracked, pod: Pod, now: float) -> bool:
        """Whether something has to be done to it now."""
        if pod.is_over:
            tracked.has_ended = True
            return True  # and again, as a kubelet does: an API server may die after the finalizer went and before the pod
        waits_for_run = tracked.life.fate in (Fate.DELETED, Fate.CANCELLED)
        if tracked.since is None and (not waits_for_run or pod.status.phase == "Running"):
            tracked.since = now
        if tracked.since is None or now - tracked.since < tracked.life.after_s:
            return False
        match tracked.life.fate:
            case Fate.DELETED | Fate.DELETED_EARLY:
                tracked.was_told_to_go = True
                return pod.metadata.deleted_at is None
            case Fate.CANCELLED:
                tracked.was_told_to_go = True
                return not pod.disruption
            case Fate.RELEASED:
                return pod.is_gated
            case Fate.ENDS | Fate.STAYS:
                return False

    async def _act(self, due: list[Pod]) -> None:
        """Delete those that are over or fated to be; scancel and release at Slurm's side."""
        by_fate: dict[Fate, list[Pod]] = {}
        for pod in due:
            fate = Fate.DELETED if pod.is_over else self.tracked[pod.name].life.fate
            by_fate.setdefault(fate, []).append(pod)
        gone = (*by_fate.get(Fate.DELETED, ()), *by_fate.get(Fate.DELETED_EARLY, ()))
        await self._delete(gone)
        cancelled, released = by_fate.get(Fate.CANCELLED, []), by_fate.get(Fate.RELEASED, [])
        if cancelled or released:
            with contextlib.suppress(*_NO_SLURM):  # at the next look, then
                queue = await asyncio.to_thread(self.queue)
                jobs: dict[str, int] = {
                    uid: job.id
                    for job in queue
                    for uid in (job.identity.pods if job.identity else ())
                }
                await self._slurm("scancel", "--quiet", cancelled, jobs)
                await self._slurm("scontrol", "release", released, jobs)

    async def _slurm(self, command: str, verb: str, pods: list[Pod], jobs: dict[str, int]) -> None:
        ids = [str(jobs[pod.metadata.uid]) for pod in pods if pod.metadata.uid in jobs]
        if ids:
            listed = (",".join(ids),) if command == "scontrol" else ids
            await asyncio.to_thread(self.sandbox.run, command, verb, *listed)

    async def _delete(self, pods: tuple[Pod, ...]) -> None:
        queue = iter(pods)

        async def take() -> None:
            for pod in queue:
                body = {
                    "preconditions": {"uid": pod.metadata.uid},
                    "gracePeriodSeconds": 1,
                }
                with contextlib.suppress(errors.KubeError):
                    await self._kube.request(
                        "DELETE", f"{self._path}/{pod.name}", body=body, content_type=JSON
                    )

        async with asyncio.TaskGroup() as group:
            for _ in range(min(_AT_ONCE, len(pods))):
                group.create_task(take())

    # -- contracts --------------------------------------------------------------------------------

    @property
    def passing(self) -> int:
        """How many are there that are not to stay."""
        return sum(t.life.fate is not Fate.STAYS for t in self.tracked.values())

    async def drain(self, deadline_s: float) -> None:
        """Wait until only those that stay are left; somebody else tends them."""
        end = time.monotonic() + deadline_s
        while True:
            await asyncio.sleep(_LOOKS_EVERY_S)
            if not self.passing or time.monotonic() > end:
                return

    async def settle(self, deadline_s: float) -> None:
        """Wait until all but those that stay are gone, then compare both worlds; what does not settle is a breach."""
        end = time.monotonic() + deadline_s
        while True:
            await self.look()
            breaches = await self._at_rest()
            if not breaches or time.monotonic() > end:
                break
            await asyncio.sleep(_LOOKS_EVERY_S)
        self._blame(breaches)

    async def _at_rest(self) -> list[str]:
        restless = [t.life.name for t in self.tracked.values() if t.life.fate is not Fate.STAYS]
        if restless:
            return [f"{name} does not come to an end" for name in restless]
        try:
            body = await self._kube.request("GET", self._path)
            queue = await asyncio.to_thread(self.queue)
        except (errors.KubeError, *_NO_SLURM) as error:
            return [f"no look at both worlds: {error}"]
        pods = _pods.decode(body).items
        waiting = [pod for pod in pods if pod.status.phase != "Running"]
        return [
            *(f"{pod.name} is {pod.status.phase}" for pod in waiting),
            *contracts.placements(pods, [job for job in queue if self._is_here(job)]),
        ]

    async def clear(self, deadline_s: float) -> None:
        """Delete those that stayed, and see that nothing of them is left."""
        for tracked in self.tracked.values():
            tracked.life = replace(tracked.life, fate=Fate.DELETED, after_s=0)
        await self.settle(deadline_s)

    async def audit(self) -> None:
        """Compare how every pod has ended with what sacct says of it."""
        breaches: list[str] = []
        for _ in range(3):
            await asyncio.to_thread(self._await_told)
            accounted = await asyncio.to_thread(self.accounted)
            breaches = list(contracts.accounts(self.ended, accounted))
            self.tally.ends = contracts.ends(self.ended, accounted)
            if not breaches:
                return
            await asyncio.sleep(2)
        self._blame(breaches)

    def _await_told(self) -> None:
        """Slurmctld tells slurmdbd a moment later, or much later after an outage."""
        for _ in range(_TOLD_WITHIN):
            said = self.sandbox.run("sdiag")
            if "DBD Agent queue size: 0" in said:
                return
            time.sleep(1)

    def _blame(self, breaches: Iterable[str]) -> None:
        for breach in breaches:
            if breach not in self._blamed:
                self._blamed.add(breach)
                self.tally.breaches.append(breach)

    def _is_here(self, job: Job) -> bool:
        return job.identity is not None and job.identity.namespace == self._namespace

    def queue(self) -> list[Job]:
        """What squeue shows of live jobs.

        Raises:
            SandboxError: Slurm does not answer.
        """
        fields = "JobID:|,State:|,NodeList:|,Reason:|,admin_comment:2000"
        lines = self.sandbox.run("squeue", "--noheader", "-O", fields).splitlines()
        rows = [line.strip().split("|", 4) for line in lines]
        return [
            Job(int(id_), state, "", nodes, reason, None, identities.decode(comment.strip()))
            for id_, state, nodes, reason, comment in rows
        ]

    def accounted(self) -> list[Job]:
        """What sacct has of this namespace's pods: asked for some ids at a time, which costs little however many there are.

        By their ids sacct also shows jobs that were held to their end.
        """
        fields = "JobID,State,ExitCode,NodeList,AdminComment"
        arguments = ("-X", "-P", "-n", "-D", "-o", fields)
        jobs = []
        for first in range(1, self._next_job_id(), _IDS_AT_ONCE):
            ids = ",".join(map(str, range(first, first + _IDS_AT_ONCE)))
            for line in self.sandbox.run("sacct", *arguments, "-j", ids).splitlines():
                id_, state, code, nodes, comment = line.split("|", 4)
                identity = identities.decode(comment.strip())
                if identity is not None and identity.namespace == self._namespace:
                    jobs.append(Job(int(id_), state.split()[0], code, nodes, "", None, identity))
        return jobs

    def _next_job_id(self) -> int:
        said = self.sandbox.run("scontrol", "show", "config")
        (line,) = (line for line in said.splitlines() if line.startswith("NEXT_JOB_ID"))
        return int(line.partition("=")[2])


def _manifest(life: Life) -> dict[str, object]:
    requests = {"cpu": "1", "memory": "16Mi"}
    container = {"name": "main", "image": "example.test/image", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": life.name, "annotations": dict(life.annotations)},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,
            "containers": [container],
        },
    }
