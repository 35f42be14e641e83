"""The circuit breaker: checks whether too many pods would be evicted at once, and reads the operator's permission.

The permission is an annotation on slurm-bridge's own namespace. It is read only while evictions are held back,
or allowed by it: it can be withdrawn.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

import structlog

from bridge.domain.lifecycle import breaker
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.breaker import Limits, Tally
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import View
from bridge.reconcile.placeholders import Placeholders
from slurmruntime.kube import objects
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import KubeError
from slurmruntime.leading.controller import Process
from slurmruntime.process import liveness
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode

_log = structlog.get_logger(__name__)

LISTEN_S = 5.0
"""Interval between reads of the namespace while the permission matters."""


class Breaker:
    """The circuit breaker of one term of leadership."""

    def __init__(
        self,
        limits: Limits,
        *,
        pods: Cache[Pod],
        placeholders: Placeholders,
        kube: KubeClient,
        namespace: str,
        process: Process,
    ) -> None:
        """namespace: slurm-bridge's own, which carries the operator's permission."""
        self._limits = limits
        self._pods = pods
        self._placeholders = placeholders
        self._kube = kube
        self._namespace = namespace
        self._clock = process.clock
        self._metrics = process.metrics
        self._counted = -1
        """Sequence number of the last reading that was counted."""
        self._held: Tally | None = None
        """Set while evictions are held back."""
        self._bereft: Mapping[KubeNode, Sequence[Pod]] = MappingProxyType({})
        """The pods that have lost their placeholder, held back or not."""
        self._allowed_until: datetime | None = None
        self._read_error = ""

    def holds(self) -> bool:
        """Check whether no pod may be evicted now for the loss of its placeholder."""
        self._count()
        return self._held is not None

    def bereft_on(self, kube_node: KubeNode) -> Sequence[Pod]:
        """Return the running pods of a node that have lost their placeholder."""
        self._count()
        return self._bereft.get(kube_node, ())

    def _count(self) -> None:
        snapshot = self._placeholders.snapshot
        if snapshot is not None and snapshot.sequence != self._counted:
            self._counted = snapshot.sequence
            pods = (
                (pod, self._placeholder(pod))
                for pod in self._pods.values()
                if pod.is_bound and not self._placeholders.is_unsure(pod.workload)
            )
            self._set(breaker.tally(pods, self._clock.now()))

    def health(self) -> str | None:
        """Return what is held back; None if nothing is."""
        if self._held is None:
            return None
        return f"{self._what(self._held)}; {self._advice()}{self._read_error}"

    async def run(self, stop: asyncio.Event) -> None:
        """Read the operator's permission while it matters, until `stop` is set."""
        await liveness.run("breaker", self._listen_forever(), stop)

    async def _listen_forever(self) -> None:
        while True:
            liveness.turned(LISTEN_S)
            await self._clock.sleep(LISTEN_S)
            self._count()
            if self._held is not None or self._is_allowed:
                await self.listen()

    @property
    def _is_allowed(self) -> bool:
        return self._allowed_until is not None and self._clock.now() < self._allowed_until

    async def listen(self) -> None:
        """Read the operator's permission once."""
        try:
            namespace = await objects.get_namespace(self._kube, self._namespace)
            permission = namespace.annotations.get(names.EVICT_UNTIL_ANNOTATION)
            was_allowed = self._is_allowed
            self._allowed_until = breaker.evict_until(permission) if permission else None
            if was_allowed and not self._is_allowed:
                _log.warning("evictions.permission_ended")
            self._read_error = ""
        except (KubeError, ValueError) as error:
            self._read_error = f" (the annotation could not be read: {error})"
            _log.warning("evictions.word_unreadable", error=str(error))
        self._counted = -1

    def _placeholder(self, pod: Pod) -> SlurmJob | None:
        return lifecycle.placeholder(pod, View(jobs=self._placeholders.of(pod.workload)))

    def _set(self, tally: Tally) -> None:
        by_node = defaultdict(list)
        for pod in tally.bereft:
            if pod.kube_node is not None:
                by_node[pod.kube_node].append(pod)
        self._bereft = by_node
        is_too_much = tally.is_too_much(self._limits)
        before, self._held = self._held, tally if is_too_much and not self._is_allowed else None
        metrics, count = self._metrics.pods, len(tally.bereft)
        metrics.without_job(count)
        metrics.evictions_held_back(count if self._held else 0)
        if self._held and before is None:
            _log.error("evictions.held_back", what=self._what(self._held), advice=self._advice())
        elif before and not self._held:
            why = "an operator allows the evictions" if is_too_much else "the placeholders are back"
            _log.warning("evictions.go_on", why=why)

    def _what(self, held: Tally) -> str:
        return (
            f"{len(held.bereft)} of {held.running} running pods have lost their placeholder, "
            f"more than may be evicted at once ({self._limits.share:.0%}, or {self._limits.always}): none "
            "is evicted"
        )

    def _advice(self) -> str:
        until = self._clock.now() + timedelta(minutes=10)
        return (
            "find out what happened to Slurm; to evict them: kubectl annotate --overwrite namespace "
            f"{self._namespace} {names.EVICT_UNTIL_ANNOTATION}={until:%Y-%m-%dT%H:%M:%SZ}"
        )
