"""Pins the pods of a node to the processors that Slurm gave them. Level-triggered.

Each pass reads a few files per pod, and writes only what differs. The kubelet creates a pod's cgroup
some time after the pod was bound, and containers start later still; so after every change of a pod,
passes follow quickly at first, and then at growing intervals.

A failure that concerns one pod only is logged. A failure that would concern every pod of the node makes
the agent unready (`Pinner.check`); `kubectl slurm nodes` and the doctor report that.
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
from bridge.domain.model.cores.pinning import NoPinReason
from slurmruntime.kube.cache import Cache
from slurmruntime.model.objects import KubeObject
from slurmruntime.process.metrics.nodes import AgentMetrics
from slurmruntime.values import backoff, names
from slurmruntime.values.ids import PodUid

_FIRST_PAUSE = timedelta(seconds=0.05)
_LONGEST_PAUSE = timedelta(seconds=10)
"""While nothing changes. What others write into cpusets is put right within it; a pass costs 1.7 ms of CPU."""
_PINNED = "pinned"
_FAILED = "failed"
"""Its processors could not be read or written."""
_MISSING = "missing"
"""It is running, but has no cgroup below the expected root."""

_log = structlog.get_logger(__name__)


class Pinner:
    """Keeps the cpusets of a node's pods as Slurm assigned them."""

    def __init__(
        self,
        pods: Cache[KubeObject],
        cgroups: Cgroups,
        order: Callable[[], tuple[int, ...]],
        *,
        schedulers: Collection[str],
        metrics: AgentMetrics,
    ) -> None:
        """Start without having checked any pod.

        Args:
            pods: pods of the node; they may include pods that are not ours.
            order: returns the machine's processors in Slurm's order; called in each pass, because
                processors can go offline.
            schedulers: scheduler names of our pods. Outside our namespaces, pods with such a name
                cannot be created, while any user may set our label and annotations there.
        """
        self._pods = pods
        self._cgroups = cgroups
        self._order = order
        self._schedulers = schedulers
        self._metrics = metrics
        self._logged: dict[PodUid, str] = {}
        self._problem: str | None = "no pod has been checked yet"
        self._changed = asyncio.Event()
        pods.subscribe(lambda _old, _new: self._changed.set())

    async def run(self, stop: asyncio.Event) -> None:
        """Keep pods pinned until `stop` is set."""
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(self._reconcile_repeatedly())
            await stop.wait()
            looking.cancel()

    async def _reconcile_repeatedly(self) -> None:
        await self._pods.synced.wait()
        quiet = 0
        while True:
            if self._changed.is_set():
                self._changed.clear()
                quiet = 0
            self.reconcile()
            quiet += 1
            pause = backoff.delay(quiet, first=_FIRST_PAUSE, cap=_LONGEST_PAUSE)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause.total_seconds()):
                    await self._changed.wait()

    def check(self) -> str | None:
        """Return why no pod of this node can be pinned, as of the last pass; None if they can."""
        return self._problem

    def reconcile(self) -> None:
        """Check all pods once."""
        self._problem = None
        try:
            order = self._order()
        except OSError as error:
            self._metrics.failed()
            self._problem = f"the machine's processors cannot be read: {error}"
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
        requested = {uid: ours[uid].annotations.get(names.CPUS_ANNOTATION, "") for uid in allowed}
        usable = frozenset().union(*allowed.values())
        plan = pinning.plan(requested, order, usable)
        # Pods that give up their own processors come first, so that no processor is ever in two sets.
        for uid in sorted(plan, key=lambda uid: not isinstance(plan[uid], NoPinReason)):
            self._carry_out(uid, groups[uid], plan[uid], allowed[uid], states)
        self._logged = {uid: state for uid, state in self._logged.items() if uid in states}
        self._metrics.looked(Counter(states.values()))

    def _missing(
        self, ours: Mapping[PodUid, KubeObject], groups: Collection[PodUid]
    ) -> Sequence[PodUid]:
        """Return the running pods without a cgroup; the kubelet may have just removed it."""
        missing = [
            uid
            for uid, pod in ours.items()
            if uid not in groups and pod.status.get("phase") == "Running" and not pod.is_deleting
        ]
        if missing and not groups:
            self._problem = (
                f"none of the {len(missing)} running pods has a cgroup below {self._cgroups.root}: "
                "expected the kubelet's kubepods or kubepods.slice there"
            )
        for uid in missing:
            self._log_once(uid, "agent.no_cgroup")
        return missing

    def _allowed(
        self, groups: Mapping[PodUid, Path], states: dict[PodUid, str]
    ) -> dict[PodUid, frozenset[int]]:
        allowed = {}
        for uid, group in groups.items():
            try:
                allowed[uid] = self._cgroups.allowed(group)
            except FileNotFoundError:  # the pod has just gone
                continue
            except OSError as error:
                self._record_failure(uid, "agent.not_read", error, states)
        return allowed

    def _carry_out(
        self,
        uid: PodUid,
        group: Path,
        own: frozenset[int] | NoPinReason,
        allowed: frozenset[int],
        states: dict[PodUid, str],
    ) -> None:
        cpus = allowed if isinstance(own, NoPinReason) else own
        try:
            has_written = self._cgroups.confine(group, cpus)
        except FileNotFoundError:  # the pod has just gone
            return
        except OSError as error:
            self._record_failure(uid, "agent.not_confined", error, states)
            return
        if isinstance(own, NoPinReason):
            states[uid] = own.value
            self._log_once(uid, "agent.unpinned", reason=own.value)
        else:
            states[uid] = _PINNED
            if has_written:
                self._log_once(uid, "agent.pinned", cpus=cpu_list.render(cpus))

    def _record_failure(
        self, uid: PodUid, event: str, error: OSError, states: dict[PodUid, str]
    ) -> None:
        states[uid] = _FAILED
        self._metrics.failed()
        self._log_once(uid, event, error=str(error))
        if isinstance(error, NoCpusets):
            self._problem = str(error)

    def _log_once(self, uid: PodUid, event: str, **particulars: str) -> None:
        state = f"{event} {particulars}"
        if self._logged.get(uid) != state:
            self._logged[uid] = state
            _log.info(event, pod_uid=uid, **particulars)
