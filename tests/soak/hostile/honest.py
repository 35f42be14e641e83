"""Those who only want their pods to run: of Slurm's at a steady rate, and a few that are not Slurm's, to know the machine's share.

All moments are of the monotonic clock, which is the same as `time.perf_counter` on Linux, and for all processes.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping

from benchmarks.load import Moment, Pods
from sandbox.errors import SandboxError
from slurmruntime.kube import errors
from slurmruntime.kube.client import JSON, KubeClient
from tests.integration.worlds import played
from tests.soak.field import Field
from tests.soak.lives import Fate, Life

_RESIDENTS = 20
_AT_MOST_ALIVE = 700
"""Each has a CPU, of which there are a thousand."""
_BOUND_WITHIN_S = 300.0
"""After the last one came."""
_AT_ONCE_S = 0.01


class Honest:
    """Pods that are created at a steady rate, whatever became of the ones before."""

    def __init__(self, field: Field, pods: Pods) -> None:
        self.sent: dict[str, float] = {}
        """By name, monotonic."""
        self.answered: dict[str, float] = {}
        """When the CREATE was answered."""
        self.held_back = 0
        """How many did not come, as too many were alive."""
        self._field = field
        self._pods = pods

    async def settle_in(self) -> None:
        """Let those come that stay to the end."""
        lives = [Life(name=f"stays-{number}", fate=Fate.STAYS) for number in range(_RESIDENTS)]
        for life in lives:
            await self._field.create(life)
        await self._pods.reached(Moment.BOUND, [life.name for life in lives], _BOUND_WITHIN_S)

    async def come(self, per_s: float, end_s: float, group: asyncio.TaskGroup) -> None:
        """Create pods until that moment."""
        began_s, first = time.monotonic(), len(self.sent) + self.held_back
        number = first
        while (due_s := began_s + (number - first) / per_s) < end_s:
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            if len(self._field.tracked) < _AT_MOST_ALIVE:
                notes = played(seconds=1 + number % 3)
                life = Life(name=f"h-{number}", fate=Fate.ENDS, annotations=notes)
                self.sent[life.name] = time.monotonic()
                group.create_task(self._create(life))
            else:
                self.held_back += 1
            number += 1

    async def _create(self, life: Life) -> None:
        await self._field.create(life)
        self.answered[life.name] = time.monotonic()

    async def bound(self) -> Mapping[str, float]:
        """When they got their nodes, of those that did."""
        return await reached(self._pods, self.sent)


class Plain:
    """One pod after the other in a namespace that is not bridged, which the stock scheduler places."""

    def __init__(self, kube: KubeClient, pods: Pods, namespace: str) -> None:
        self.sent: dict[str, float] = {}
        self._kube = kube
        self._pods = pods
        self._path = f"/api/v1/namespaces/{namespace}/pods"

    async def come(self, end_s: float) -> None:
        """Create a pod a second until that moment, or fewer if they take longer."""
        while time.monotonic() < end_s:
            name, began_s = f"p-{len(self.sent)}", time.monotonic()
            with contextlib.suppress(
                ExceptionGroup, errors.KubeError, SandboxError
            ):  # it counts as never bound
                await self._one(name)
            await asyncio.sleep(max(0.0, began_s + 1 - time.monotonic()))

    async def _one(self, name: str) -> None:
        named = f"{name}-0"
        self.sent[named] = time.monotonic()
        await self._pods.create(name, 1, played={"run-seconds": "600"})
        await self._pods.reached(Moment.BOUND, [named], _BOUND_WITHIN_S)
        body = {"gracePeriodSeconds": 0}
        await self._kube.request("DELETE", f"{self._path}/{named}", body=body, content_type=JSON)

    async def bound(self) -> Mapping[str, float]:
        """When they got their nodes."""
        return await reached(self._pods, self.sent)


async def reached(pods: Pods, sent: Mapping[str, float]) -> Mapping[str, float]:
    """Return when pods were bound, of those that are by now."""
    bound: dict[str, float] = {}
    for name in sent:
        try:
            bound.update(await pods.reached(Moment.BOUND, [name], _AT_ONCE_S))
        except SandboxError:
            continue
    return bound
