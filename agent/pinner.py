"""Look at the pods of a node and give each the processors that it is to have. Level-triggered.

A look reads a few files for each pod, and writes only what differs. The kubelet makes a pod's group
some time after the pod was bound, and containers start later still; so after every change of a pod
the looks follow one another quickly, and then at longer and longer intervals.

What goes wrong with one pod is that pod's alone. What would go wrong with every pod of the node makes
the agent unready (`Pinner.check`): `kubectl slurm nodes` and the doctor go by that.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import structlog

from agent.cgroups import Cgroups, NoCpusets
from bridge.domain.model.cores import cpu_list, pinning
from bridge.domain.model.cores.pinning import Unpinned
from slurmruntime.kube.cache import Cache
from slurmruntime.model.objects import KubeObject
from slurmruntime.process.metrics.agents import AgentMetrics
from slurmruntime.values import backoff, names
from slurmruntime.values.ids import PodUid

_FIRST_PAUSE = timedelta(seconds=0.05)
_PINNED = "pinned"
_FAILED = "failed"
"""Its processors could not be read or written."""
_MISSING = "missing"
"""It runs, and has no group where groups are looked for."""

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
        self._trouble: str | None = "it has not looked yet"
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

    def check(self) -> str | None:
        """Return why no pod of this node can be pinned, as of the last look; None if they can."""
        return self._trouble

    def look(self) -> None:
        """Look once."""
        self._trouble = None
        try:
            order = self._order()
        except OSError as error:
            self._metrics.failed()
            self._trouble = f"the machine's processors cannot be read: {error}"
            _log.warning("agent.processors_unreadable", error=str(error))
            return
        ours = {
            PodUid(pod.uid): pod
            for pod in self._pods.values()
            if pod.spec.get("schedulerName") in self._schedulers
        }
        groups = {uid: group for uid in ours if (group := self._cgroups.of(uid)) is not None}
        states = dict.fromkeys(self._missing(ours, groups), _MISSING)
        allowed = self._allowed(groups, states)
        told = {uid: ours[uid].annotations.get(names.CPUS_ANNOTATION, "") for uid in allowed}
        usable = frozenset().union(*allowed.values())
        plan = pinning.plan(told, order, usable)
        # Who gives up processors of its own comes first, so that none is in two such sets meanwhile.
        for uid in sorted(plan, key=lambda uid: not isinstance(plan[uid], Unpinned)):
            self._carry_out(uid, groups[uid], plan[uid], allowed[uid], states)
        self._said = {uid: said for uid, said in self._said.items() if uid in states}
        self._metrics.looked(Counter(states.values()))

    def _missing(
        self, ours: Mapping[PodUid, KubeObject], groups: Collection[PodUid]
    ) -> Sequence[PodUid]:
        """Return the pods that run without a group; the kubelet may have just removed it."""
        found = [
            uid
            for uid, pod in ours.items()
            if uid not in groups and pod.status.get("phase") == "Running" and not pod.is_deleting
        ]
        if found and not groups:
            self._trouble = (
                f"no cgroup of the {len(found)} pods that run is below {self._cgroups.root}: "
                "expected the kubelet's kubepods or kubepods.slice there"
            )
        for uid in found:
            self._say(uid, "agent.no_cgroup")
        return found

    def _allowed(
        self, groups: Mapping[PodUid, Path], states: dict[PodUid, str]
    ) -> dict[PodUid, frozenset[int]]:
        found = {}
        for uid, group in groups.items():
            try:
                found[uid] = self._cgroups.allowed(group)
            except FileNotFoundError:  # the pod has just gone
                continue
            except OSError as error:
                self._fails(uid, "agent.not_read", error, states)
        return found

    def _carry_out(
        self,
        uid: PodUid,
        group: Path,
        own: frozenset[int] | Unpinned,
        allowed: frozenset[int],
        states: dict[PodUid, str],
    ) -> None:
        cpus = allowed if isinstance(own, Unpinned) else own
        try:
            has_written = self._cgroups.confine(group, cpus)
        except FileNotFoundError:  # the pod has just gone
            return
        except OSError as error:
            self._fails(uid, "agent.not_confined", error, states)
            return
        if isinstance(own, Unpinned):
            states[uid] = own.value
            self._say(uid, "agent.unpinned", reason=own.value)
        else:
            states[uid] = _PINNED
            if has_written:
                self._say(uid, "agent.pinned", cpus=cpu_list.written(cpus))

    def _fails(self, uid: PodUid, event: str, error: OSError, states: dict[PodUid, str]) -> None:
        states[uid] = _FAILED
        self._metrics.failed()
        self._say(uid, event, error=str(error))
        if isinstance(error, NoCpusets):
            self._trouble = str(error)

    def _say(self, uid: PodUid, event: str, **particulars: str) -> None:
        """Log a pod's state once."""
        said = f"{event} {particulars}"
        if self._said.get(uid) != said:
            self._said[uid] = said
            _log.info(event, pod_uid=uid, **particulars)
