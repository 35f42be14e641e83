"""Tests the webhook as clients use it, through the API server: at startup and periodically.

The test uses a namespace of its own, selected like any other, in which an admission policy allows
only dry runs.
"""

import asyncio
from collections.abc import Mapping

import structlog

from bridge.domain.admission import selftest
from bridge.domain.admission.selftest import Answer
from bridge.kube import writes
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import KubeError
from slurmruntime.process.clock import pause
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names

_AGAIN_S = 2.0
"""Retry delay while the webhook does not work."""

_log = structlog.get_logger(__name__)


class SelfTest:
    """The self-test of one process."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        namespace: str,
        interval_s: float,
        metrics: Metrics,
        scheduler_name: str = names.SCHEDULER_NAME,
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._interval_s = interval_s
        self._metrics = metrics
        self._scheduler_name = scheduler_name
        self._fault = "not tested yet"

    def fault(self) -> str | None:
        """Return what was wrong at the last test, for a health check."""
        return self._fault or None

    async def run(self, stop: asyncio.Event) -> None:
        """Test until `stop` is set."""
        while not stop.is_set():
            before, self._fault = self._fault, await self._test()
            self._metrics.webhook.works(not self._fault)
            if self._fault and self._fault != before:
                _log.warning("webhook.broken", error=self._fault)
            if before and not self._fault:
                _log.info("webhook.works")
            await pause(min(_AGAIN_S, self._interval_s) if self._fault else self._interval_s, stop)

    async def _test(self) -> str:
        faulty = await self._ask(selftest.FAULTY_POD)
        sound = await self._ask(selftest.SOUND_POD)
        return selftest.judge(faulty, sound, self._scheduler_name)

    async def _ask(self, pod: Mapping[str, object]) -> Answer:
        try:
            created = await writes.dry_run_pod(self._kube, self._namespace, pod)
        except KubeError as error:
            return Answer(faults=error.fields, message=str(error))
        return Answer(pod=created)
