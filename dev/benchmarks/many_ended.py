"""One of very many placeholders ends.

How soon is its pod's eviction decided? Slurm and our reading of it are real, the pods are not.

A Slurm without Kubernetes runs that many jobs with the identity of pods that exist only in this
process. The same code as in the controllers' leader does what it does between two requests to the
API server: read Slurm at its interval, wake the workload, count for the circuit breaker, decide.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from benchmarks.meter import cpu_s
from bridge.domain.lifecycle import breaker
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.actions import Evict
from bridge.domain.lifecycle.decision import Deadlines, Facts
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import Container, ContainerState, Phase, Pod
from bridge.domain.observation.view import Past
from bridge.reconcile.leadership import RUNNING
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from bridge.slurm.discovery import Discovery
from sandbox import nss
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmclient.watching import listing
from slurmruntime.process.clock import SystemClock
from slurmruntime.process.metrics import Metrics
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, KubeNode, PodUid, WorkloadKey, alone_key

_CLUSTER = ClusterId("benchmark")
_NODE_CPUS = 256
_AT_ONCE = 8
_PATIENCE_S = 900.0
_LIMITS = breaker.Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The result."""

    pods: int
    delays_s: Sequence[float]
    """From a job's cancel to the decision that evicts its pod."""
    share_with: float
    """slurmctld's share of one core while it is read as the controllers do."""
    share_without: float
    """The same while nobody queries it."""


def measure(pods: int, samples: int, idle_s: float) -> Measurement:
    """Fill a separate Slurm, rest, then end one job after another."""
    options = Options(
        kubernetes=False,
        bridge=False,
        nodes=-(-pods // _NODE_CPUS),
        node_cpus=_NODE_CPUS,
        node_memory_mib=_NODE_CPUS * 16,
        node_gpus=0,
    )
    with tempfile.TemporaryDirectory(prefix="slurm-bridge-bench-") as folder:
        Path(folder).chmod(0o755)
        with Sandbox.up(Path(folder), options) as sandbox:
            return asyncio.run(_measured(sandbox, pods, samples, idle_s))


async def _fill(slurm: SlurmClient, count: int) -> None:
    numbers = iter(range(count))

    async def submit() -> None:
        for number in numbers:
            await jobs.submit(slurm, _spec(number))

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(submit())
    end_s = time.monotonic() + _PATIENCE_S
    while not await _all_run(slurm, count):
        if time.monotonic() > end_s:
            raise TimeoutError(f"the jobs did not start within {_PATIENCE_S:g} s")
        await asyncio.sleep(1)


async def _all_run(slurm: SlurmClient, count: int) -> bool:
    listed = await listing.all_jobs(slurm)
    return count == sum("RUNNING" in states for states in listed.states.values())


async def _measured(sandbox: Sandbox, pods: int, samples: int, idle_s: float) -> Measurement:
    async with SlurmClient.open(sandbox.slurmrestd_url, token_file=sandbox.token_file) as slurm:
        await _fill(slurm, pods)
        without = await _share(sandbox, idle_s)
        async with _controllers(slurm, pods) as controllers:
            share = await _share(sandbox, idle_s)
            delays = [
                await controllers.delay_s(WorkloadKey(f"u{number}")) for number in range(samples)
            ]
    return Measurement(pods=pods, delays_s=delays, share_with=share, share_without=without)


async def _share(sandbox: Sandbox, idle_s: float) -> float:
    pid = sandbox.status()["slurmctld"].pid or 0
    before, began = cpu_s(pid), time.monotonic()
    await asyncio.sleep(idle_s)
    return (cpu_s(pid) - before) / (time.monotonic() - began)


class _Controllers:
    """The part of the leader that knows nothing of Kubernetes."""

    def __init__(
        self, slurm: SlurmClient, pods: dict[WorkloadKey, Pod], placeholders: Placeholders
    ) -> None:
        self._slurm = slurm
        self._pods = pods
        self._placeholders = placeholders
        self._clock = SystemClock()
        self._counted = -1
        self._held = False
        self._evicted: dict[WorkloadKey, asyncio.Event] = {uid: asyncio.Event() for uid in pods}

    async def know_all(self) -> None:
        """Wait until each pod's placeholder has been read."""
        while True:
            if all(map(self._placeholders.of, self._pods)):
                return
            await asyncio.sleep(1)

    async def delay_s(self, uid: WorkloadKey) -> float:
        """Cancel a pod's job, and return when the pod would be evicted."""
        job = next(iter(self._placeholders.of(uid)))
        began = time.monotonic()
        await jobs.cancel(self._slurm, job.id, sluid=job.sluid)
        async with asyncio.timeout(_PATIENCE_S):
            await self._evicted[uid].wait()
        return time.monotonic() - began

    def wake(self, uid: WorkloadKey) -> None:
        """Decide on a pod that has news."""
        pod = self._pods[uid]
        facts = Facts(
            pod=pod,
            view=self._placeholders.view(pod, uid),
            now=self._clock.now(),
            evictions_held=self._holds(),
        )
        decision = lifecycle.decide(facts, Deadlines())
        if any(isinstance(action, Evict) for action in decision.actions):
            self._evicted[uid].set()

    def _holds(self) -> bool:
        """Check whether the circuit breaker is open; counts once per reading."""
        snapshot = self._placeholders.snapshot
        sequence = snapshot.sequence if snapshot else 0
        if sequence != self._counted:
            self._counted = sequence
            pairs = [
                (pod, lifecycle.placeholder(pod, self._placeholders.view(pod, pod.workload)))
                for pod in self._pods.values()
            ]
            self._held = breaker.tally(pairs, self._clock.now()).is_too_much(_LIMITS)
        return self._held


@asynccontextmanager
async def _controllers(slurm: SlurmClient, count: int) -> AsyncIterator[_Controllers]:
    clock = SystemClock()
    discovery = Discovery(slurm, _CLUSTER, clock=clock.monotonic)
    first = await discovery.refresh()
    pods = {job.identity.key: _pod(job) for job in first.jobs.values()}
    if len(pods) != count:
        raise RuntimeError(f"{len(pods)} of {count} jobs are found again")
    placeholders = Placeholders(discovery, pace=RUNNING, clock=clock, metrics=Metrics("benchmark"))
    for uid in pods:
        placeholders.meet(uid, Past.HANDED_OVER)
    controllers = _Controllers(slurm, pods, placeholders)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(placeholders.run(stop, wake=controllers.wake))
        await controllers.know_all()
        try:
            yield controllers
        finally:
            stop.set()


def _spec(number: int) -> PlaceholderSpec:
    uid = PodUid(f"u{number}")
    identity = Identity(
        cluster=_CLUSTER,
        kind="Pod",
        namespace="ns",
        name=f"p{number}",
        key=alone_key(uid),
        pods=(uid,),
    )
    user = nss.JOB_USER.name
    return PlaceholderSpec(
        identity=identity,
        name=f"p{number}",
        user=user,
        group=user,
        cpus_per_task=1,
        memory_mib_per_node=16,
    )


def _pod(job: SlurmJob) -> Pod:
    """Return a pod that has run for an hour on its job's node."""
    now = SystemClock().now()
    node = KubeNode(job.nodes[0])
    return Pod(
        uid=PodUid(job.identity.key),
        namespace=job.identity.namespace,
        name=job.identity.name,
        created_at=now,
        labels={names.JOB_ID_LABEL: str(job.id)},
        annotations={names.NODE_ANNOTATION: node, names.SLUID_ANNOTATION: job.sluid or ""},
        kube_node=node,
        phase=Phase.RUNNING,
        start_time=now - timedelta(hours=1),
        containers=(Container(name="main", state=ContainerState.RUNNING, started_before=True),),
    )
