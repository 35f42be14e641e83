"""Find out whether a job may be launched: read Slurm and our caches, and let the domain decide."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from bridge.domain.model.pods import Pod
from bridge.domain.observation import lingering
from bridge.escrow import shares
from bridge.reconcile.nodes import taken_by
from bridge.slurm.allocated import launches
from slurmruntime.kube.cache import Cache
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.clock import Clock, pause
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import SlurmError
from slurmruntime.values.ids import JobId, SlurmNode

_AT_A_TIME = 4
"""Looks at Slurm, however many jobs wait: pods and nodes are read over the same connections."""

_AGAIN_S = 1.0
"""A longest pause between two looks; the end of a pod shortens it."""

_SETTLES_S = 0.1
"""The shortest: a node's pods end one after another."""

_OVERTIME_S = 2.0
"""How long the last look may take once the time is over: who asks is answered before it stops listening."""


class Lookout:
    """What every replica knows of pods and nodes, and Slurm, asked anew for every look."""

    def __init__(
        self,
        slurm: SlurmClient,
        *,
        pods: Cache[Pod],
        kube_nodes: Cache[KubeNodeFacts],
        blind: Callable[[], str | None],
        clock: Clock,
    ) -> None:
        """Start looking.

        Args:
            slurm: slurmrestd.
            pods: ours.
            kube_nodes: all nodes of Kubernetes.
            blind: returns why the caches may be behind; None if they are not.
            clock: the time.
        """
        self._slurm = slurm
        self._ours_on = pods.index(taken_by)
        self._kube_nodes = kube_nodes
        self._blind = blind
        self._clock = clock
        self._looks = asyncio.Semaphore(_AT_A_TIME)
        self._waiting: set[asyncio.Event] = set()
        self._is_closed = False
        pods.subscribe(self._changed)

    async def until_free(self, job_id: JobId, *, within_s: float) -> str:
        """Wait until a job may be launched; return why it may not when the time is over, or "".

        Begin one look at least. What cannot be known counts as a reason.
        """
        ends_at = self._clock.monotonic() + within_s
        reason = f"Slurm cannot be read: no answer within {within_s + _OVERTIME_S:.0f} s"
        with self._woken() as bell:
            while True:
                bell.clear()
                latest_s = ends_at + _OVERTIME_S - self._clock.monotonic()
                try:
                    async with asyncio.timeout(latest_s), self._looks:
                        reason = await self.look(job_id)
                except TimeoutError:
                    return reason
                left_s = ends_at - self._clock.monotonic()
                if not reason or left_s <= 0 or self._is_closed:
                    return reason
                await self._clock.sleep(min(_SETTLES_S, left_s))
                await pause(min(_AGAIN_S, left_s) - _SETTLES_S, bell)

    def close(self) -> None:
        """Let nobody wait any longer: this process stops, and they have to ask another one."""
        self._is_closed = True
        for bell in self._waiting:
            bell.set()

    async def look(self, job_id: JobId) -> str:
        """Return why a job may not be launched now; "" if it may."""
        if blind := self._blind():
            return f"pods are not known: {blind}"
        tenants = self._tenants()
        if not any(lingering.may_run(pod) for tenant in tenants.values() for pod in tenant):
            return ""
        try:
            job = await launches.launch(self._slurm, job_id)
            in_question = lingering.nodes_in_question(job, tenants)
            if not in_question:
                return ""
            there = [pod for node in in_question for pod in tenants[node]]
            backed = await shares.backed(self._slurm, there)
        except SlurmError as error:
            return f"Slurm cannot be read: {error}"
        # What came meanwhile counts too: a pod may have been given its node.
        return lingering.held_by(job, self._tenants(), backed)

    def _tenants(self) -> Mapping[SlurmNode, Sequence[Pod]]:
        """Return our pods by node, except on external nodes, where no native job starts."""
        return {
            nodes.slurm_name(node): self._ours_on.get(node.name)
            for node in self._kube_nodes.values()
            if shares.takes_native_jobs(node)
        }

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        """Look again where a pod is gone for good."""
        if old is not None and lingering.may_run(old) and not (new and lingering.may_run(new)):
            for bell in self._waiting:
                bell.set()

    @contextmanager
    def _woken(self) -> Iterator[asyncio.Event]:
        bell = asyncio.Event()
        self._waiting.add(bell)
        try:
            yield bell
        finally:
            self._waiting.discard(bell)
