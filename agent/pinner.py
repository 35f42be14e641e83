"""Look at the pods of a node and give each the processors that it is to have. Level-triggered.

A look reads a few files for each pod, and writes only what differs. The kubelet makes a pod's group
some time after the pod was bound, and containers start later still; so after every change of a pod
the looks follow one another quickly, and then at longer and longer intervals.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from pathlib import Path

import structlog

from agent.cgroups import Cgroups
from bridge.domain import backoff, names
from bridge.domain.ids import PodUid
from bridge.domain.model.cores import cpu_list, pinning
from bridge.domain.model.cores.pinning import Unpinned
from bridge.domain.model.objects import KubeObject
from bridge.kube.cache import Cache
from bridge.process.metrics.agents import AgentMetrics

_FIRST_PAUSE = timedelta(seconds=0.05)
_PINNED = "pinned"

_log = structlog.get_logger(__name__)


class Pinner:
    """Keeps the cpusets of a node's pods as Slurm wants them."""

    def __init__(
        self,
        pods: Cache[KubeObject],
        cgroups: Cgroups,
        order: Callable[[], tuple[int, ...]],
        *,
        schedulers: Collection[str],
        interval_s: float,
        metrics: AgentMetrics,
    ) -> None:
        """Create one that has looked at nothing.

        Args:
            pods: of the node; those of others may be among them.
            cgroups: of the node.
            order: returns the machine's processors in Slurm's order; read at each look, as they can go
                offline.
            schedulers: names by which pods ask for us. In other namespaces nobody may create a pod with
                one, while anybody may write our label and our annotations there.
            interval_s: the longest interval between looks.
            metrics: of the agent.
        """
        self._pods = pods
        self._cgroups = cgroups
        self._order = order
        self._schedulers = schedulers
        self._longest = timedelta(seconds=interval_s)
        self._metrics = metrics
        self._said: dict[PodUid, str] = {}
        self._changed = asyncio.Event()
        pods.subscribe(lambda _old, _new: self._changed.set())

    async def run(self, stop: asyncio.Event) -> None:
        """Look until told to stop."""
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(self._keep_looking())
            await stop.wait()
            looking.cancel()

    async def _keep_looking(self) -> None:
        await self._pods.synced.wait()
        quiet = 0
        while True:
            if self._changed.is_set():
                self._changed.clear()
                quiet = 0
            self.look()
            quiet += 1
            pause = backoff.delay(quiet, first=_FIRST_PAUSE, cap=self._longest)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause.total_seconds()):
                    await self._changed.wait()

    def look(self) -> None:
        """Look once."""
        try:
            order = self._order()
        except OSError as error:
            self._metrics.failed()
            _log.warning("agent.processors_unreadable", error=str(error))
            return
        ours = [
            pod for pod in self._pods.values() if pod.spec.get("schedulerName") in self._schedulers
        ]
        groups = {
            PodUid(pod.uid): group
            for pod in ours
            if (group := self._cgroups.of(PodUid(pod.uid))) is not None
        }
        allowed = self._allowed(groups)
        told = {
            PodUid(pod.uid): pod.annotations.get(names.CPUS_ANNOTATION, "")
            for pod in ours
            if PodUid(pod.uid) in allowed
        }
        usable = frozenset().union(*allowed.values())
        plan = pinning.plan(told, order, usable)
        # Who gives up processors of its own comes first, so that none is in two such sets meanwhile.
        for uid in sorted(plan, key=lambda uid: not isinstance(plan[uid], Unpinned)):
            self._carry_out(uid, groups[uid], plan[uid], allowed[uid])
        self._said = {uid: said for uid, said in self._said.items() if uid in plan}
        self._metrics.looked(
            Counter(each.value if isinstance(each, Unpinned) else _PINNED for each in plan.values())
        )

    def _allowed(self, groups: Mapping[PodUid, Path]) -> dict[PodUid, frozenset[int]]:
        found = {}
        for uid, group in groups.items():
            with contextlib.suppress(OSError):  # the pod has just gone
                found[uid] = self._cgroups.allowed(group)
        return found

    def _carry_out(
        self,
        uid: PodUid,
        group: Path,
        own: frozenset[int] | Unpinned,
        allowed: frozenset[int],
    ) -> None:
        cpus = allowed if isinstance(own, Unpinned) else own
        try:
            has_written = self._cgroups.confine(group, cpus)
        except FileNotFoundError:  # the pod has just gone
            return
        except OSError as error:
            self._metrics.failed()
            self._say(uid, "agent.not_confined", error=str(error))
            return
        if isinstance(own, Unpinned):
            self._say(uid, "agent.unpinned", reason=own.value)
        elif has_written:
            self._say(uid, "agent.pinned", cpus=cpu_list.written(cpus))

    def _say(self, uid: PodUid, event: str, **particulars: str) -> None:
        """Log a pod's state once."""
        said = f"{event} {particulars}"
        if self._said.get(uid) != said:
            self._said[uid] = said
            _log.info(event, pod_uid=uid, **particulars)
