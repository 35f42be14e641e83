"""Find out whether a job may be launched: read Slurm and our caches, and let the domain decide."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from bridge.domain.model.pods import Pod
from bridge.domain.observation import lingering
from bridge.escrow import shares
from bridge.reconcile.nodes import taken_by
from bridge.slurm.allocated import launches
from slurmclient.errors import SlurmError
from slurmruntime.kube.cache import Cache
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.clock import Clock, pause
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, SlurmNode

_AT_A_TIME = 4
"""Concurrent requests to Slurm, however many jobs wait: pods and nodes are read over the same connections."""

_AGAIN_S = 1.0
"""Longest pause between two checks; the end of a pod shortens it."""

_SETTLES_S = 0.1
"""Shortest pause: the pods of a node end one after another."""

_OVERTIME_S = 2.0
"""Grace for the last check. It must end before the script's own timeout."""


class LaunchGate:
    """Decides whether a job may be launched: by this replica's caches, and by asking Slurm at every check."""

    def __init__(
        self,
        slurm: SlurmClient,
        *,
        pods: Cache[Pod],
        kube_nodes: Cache[KubeNodeFacts],
        blind: Callable[[], str | None],
        clock: Clock,
    ) -> None:
        """blind: returns why the caches may be out of date; None if they are not."""
        self._slurm = slurm
        self._ours_on = pods.index(taken_by)
        self._kube_nodes = kube_nodes
        self._blind = blind
        self._clock = clock
        self._slots = asyncio.Semaphore(_AT_A_TIME)
        self._waiting: set[asyncio.Event] = set()
        self._is_closed = False
        pods.subscribe(self._changed)

    async def until_free(self, job_id: JobId, *, within_s: float) -> str:
        """Wait until a job may be launched; return "", or why it may not when the time is over.

        At least one check is begun. Not knowing is a reason, too.
        """
        ends_at = self._clock.monotonic() + within_s
        reason = f"Slurm cannot be read: no answer within {within_s + _OVERTIME_S:.0f} s"
        with self._waiter() as event:
            while True:
                event.clear()
                latest_s = ends_at + _OVERTIME_S - self._clock.monotonic()
                try:
                    async with asyncio.timeout(latest_s), self._slots:
                        reason = await self.check(job_id)
                except TimeoutError:
                    return reason
                left_s = ends_at - self._clock.monotonic()
                if not reason or left_s <= 0 or self._is_closed:
                    return reason
                await self._clock.sleep(min(_SETTLES_S, left_s))
                await pause(min(_AGAIN_S, left_s) - _SETTLES_S, event)

    def close(self) -> None:
        """Answer all waiting calls now: this process stops, and their scripts have to ask another one."""
        self._is_closed = True
        for event in self._waiting:
            event.set()

    async def check(self, job_id: JobId) -> str:
        """Return why a job may not be launched now; "" if it may."""
        if blind := self._blind():
            return f"our list of pods may be out of date: {blind}"
        pods_on = self._pods_on_nodes()
        if not any(lingering.may_run(pod) for pods in pods_on.values() for pod in pods):
            return ""
        try:
            job = await launches.launch(self._slurm, job_id)
            in_question = lingering.nodes_in_question(job, pods_on)
            if not in_question:
                return ""
            pods = [pod for node in in_question for pod in pods_on[node]]
            backed = await shares.backed(self._slurm, pods)
        except SlurmError as error:
            return f"Slurm cannot be read: {error}"
        # The pods are read again: one may have been given its node since.
        return lingering.held_by(job, self._pods_on_nodes(), backed)

    def _pods_on_nodes(self) -> Mapping[SlurmNode, Sequence[Pod]]:
        """Return our pods by node, except on external nodes, where no native job starts."""
        return {
            nodes.slurm_name(node): self._ours_on.get(node.name)
            for node in self._kube_nodes.values()
            if shares.takes_native_jobs(node)
        }

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and lingering.may_run(old) and not (new and lingering.may_run(new)):
            for event in self._waiting:
                event.set()

    @contextmanager
    def _waiter(self) -> Iterator[asyncio.Event]:
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            yield event
        finally:
            self._waiting.discard(event)
