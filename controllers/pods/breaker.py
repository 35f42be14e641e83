"""Run the circuit breaker.

Check whether too many pods would go at once, and read the operator's permission.

The permission is an annotation on slurm-bridge's own namespace, read only while something is held
back.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta

import structlog

from bridge.domain import names
from bridge.domain.ids import PodUid
from bridge.domain.lifecycle import breaker
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.breaker import Held, Limits, Tally
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import View
from bridge.kube import objects
from bridge.kube.cache import Cache
from bridge.kube.client import KubeClient
from bridge.kube.errors import KubeError
from bridge.process import liveness
from bridge.process.clock import Clock
from bridge.process.metrics import Metrics
from bridge.reconcile.placeholders import Placeholders

_log = structlog.get_logger(__name__)

_NAMED = 5
"""How many users a message names."""

LISTEN_S = 5.0
"""Interval between reads of the namespace while something is held back."""


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
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """namespace: slurm-bridge's own, which carries the operator's permission."""
        self._limits = limits
        self._pods = pods
        self._placeholders = placeholders
        self._kube = kube
        self._namespace = namespace
        self._clock = clock
        self._metrics = metrics
        self._counted = -1
        """Sequence number of the last reading that was counted."""
        self._held: Held | None = None
        """Set while evictions are held back."""
        self._users: dict[PodUid, str] = {}
        """The Slurm user of each pod, also after Slurm has forgotten its job."""
        self._allowed_until: datetime | None = None
        self._misheard = ""

    def holds(self, pod: Pod) -> bool:
        """Check whether Slurm's state alone must not evict this pod now."""
        self._count()
        return self._held is not None and self._held.concerns(self._users.get(pod.uid, ""))

    def _count(self) -> None:
        """Count once per reading of Slurm."""
        snapshot = self._placeholders.snapshot
        if snapshot is not None and snapshot.sequence != self._counted:
            self._counted = snapshot.sequence
            pods = [
                (pod, self._placeholder(pod))
                for pod in self._pods.values()
                if pod.is_bound and not self._placeholders.is_unsure(pod.workload)
            ]
            self._users = {pod.uid: self._user(pod, job) for pod, job in pods}
            whose = ((self._users[pod.uid], pod, job) for pod, job in pods)
            self._set(breaker.tallies(whose, self._clock.now()))

    def health(self) -> str | None:
        """Return what is held back; None if nothing is, or only what single users have lost.

        Nobody can make us not ready by cancelling their own jobs.
        """
        if self._held is None or self._held.users is not None:
            return None
        return f"{self._what(self._held)}; {self._advice()}{self._misheard}"

    async def run(self, stop: asyncio.Event) -> None:
        """Read the operator's permission while something is held back, until told to stop."""
        await liveness.run("breaker", self._listen_forever(), stop)

    async def _listen_forever(self) -> None:
        while True:
            liveness.turned(LISTEN_S)
            await self._clock.sleep(LISTEN_S)
            self._count()
            if self._held is not None:
                await self.listen()

    async def listen(self) -> None:
        """Read the operator's permission once."""
        try:
            namespace = await objects.get_namespace(self._kube, self._namespace)
            word = namespace.annotations.get(names.EVICT_UNTIL_ANNOTATION)
            self._allowed_until = breaker.evict_until(word) if word else None
            self._misheard = ""
        except (KubeError, ValueError) as error:
            self._misheard = f" (the annotation could not be read: {error})"
            _log.warning("evictions.word_unreadable", error=str(error))
        self._counted = -1

    def _placeholder(self, pod: Pod) -> SlurmJob | None:
        return lifecycle.placeholder(pod, View(jobs=self._placeholders.of(pod.workload)))

    def _user(self, pod: Pod, job: SlurmJob | None) -> str:
        """Return the Slurm user, as only we record it; "" if nobody knows."""
        if job is not None and job.identity.frozen is not None:
            return job.identity.frozen.user
        if pod.uid in self._users:
            return self._users[pod.uid]
        recorded = pod.grant
        return recorded[1].user if recorded is not None else ""

    def _set(self, tallies: Mapping[str, Tally]) -> None:
        too_much = breaker.held(tallies, self._limits)
        is_allowed = self._allowed_until is not None and self._clock.now() < self._allowed_until
        before, self._held = self._held, too_much if not is_allowed else None
        self._metrics.pods.evictions_held_back(self._held.tally.bereft if self._held else 0)
        if self._held and (before is None or before.users != self._held.users):
            _log.error("evictions.held_back", what=self._what(self._held), advice=self._advice())
        elif before and not self._held:
            why = "an operator allows the evictions" if too_much else "the placeholders are back"
            _log.warning("evictions.go_on", why=why)

    def _what(self, held: Held) -> str:
        tally, users = held.tally, sorted(held.users or ())
        named = f"{', '.join(users[:_NAMED])}{' …' if len(users) > _NAMED else ''}"
        whose = f" of {named}" if users else ""
        return (
            f"{tally.bereft} of {tally.running} running pods{whose} have lost their placeholder, "
            f"more than may go at once ({self._limits.share:.0%}, or {self._limits.always}): none "
            "is evicted"
        )

    def _advice(self) -> str:
        until = self._clock.now() + timedelta(minutes=10)
        return (
            "find out what happened to Slurm; to evict them: kubectl annotate --overwrite namespace "
            f"{self._namespace} {names.EVICT_UNTIL_ANNOTATION}={until:%Y-%m-%dT%H:%M:%SZ}"
        )
