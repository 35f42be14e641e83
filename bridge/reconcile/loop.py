"""The reconcile loop over workloads that the extender and the controllers share.

Gather, decide, act.

Most workloads are single pods; a gang's members are decided on together. The lifecycle defines which
side owns a pod; each program gathers what else is needed through its `Side`
(`bridge.reconcile.side`).
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from structlog.contextvars import bind_contextvars, bound_contextvars
from typing_extensions import override

from bridge.domain.gang import decide
from bridge.domain.gang.decide import Decisions, Observation, OpenCase
from bridge.domain.gang.members import Claims
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.decision import Actor, Decision, Facts
from bridge.domain.lifecycle.pins import Pins
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import Past
from bridge.domain.workloads import membership
from bridge.reconcile.actuator import Actuator, NotGiven
from bridge.reconcile.lifecycle_cells import LifecycleCells
from bridge.reconcile.members import Members
from bridge.reconcile.placeholders import Placeholders
from bridge.reconcile.side import Side
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.errors import Forbidden, Rejected
from slurmruntime.leading.controller import Controller, Keys, Process
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.values.errors import PEER_ERRORS, PeerError
from slurmruntime.values.ids import JobId, PodUid, WorkloadKey
from slurmruntime.values.oddities import About

WORKERS = 16
"""Workloads that are handled at once: each mostly waits for a server, and slurmrestd has fewer connections for us."""

_REST_S = 2.0
"""Delay before a workload without urgent work is reconciled again: everything that happens until then
is handled together.
"""

_WORST_FIRST = (Past.IN_FLIGHT, Past.HANDED_OVER, Past.NOTHING)


class PodLoop(Keys[WorkloadKey]):
    """Reconciles pods during one term of leadership; created when it begins, dropped when it ends."""

    def __init__(
        self,
        side: Side,
        *,
        pods: Cache[Pod],
        queue: WorkQueue[WorkloadKey],
        placeholders: Placeholders,
        actuator: Actuator,
        process: Process,
    ) -> None:
        self._side = side
        self._pods = pods
        self._queue = queue
        self._placeholders = placeholders
        self._actuator = actuator
        self._workloads = side.workloads
        self._policy = side.deadlines
        self._clock = process.clock
        self._members = Members(side)
        self._controller = Controller(
            "pods",
            self.reconcile,
            process=process,
            keys=self,
            queue=queue,
        )
        self._situations = LifecycleCells(process.metrics, self._clock)
        self._pins = Pins()
        self._admitted: set[PodUid] = set()
        """Pods that may join a placeholder that was submitted without them."""
        self._joined: set[PodUid] = set()
        """Members whose placeholder is being read again because it did not name them."""
        self._departed: dict[WorkloadKey, set[PodUid]] = {}
        """Pods that are gone or belong to the other side, by workload: forgotten as soon as no worker
        is busy with the workload.
        """

    @property
    def actor(self) -> Actor:
        """The owner of these pods."""
        return self._side.actor

    async def run(self, stop: asyncio.Event, *, workers: int = WORKERS) -> None:
        """Reconcile workloads until `stop` is set."""
        self._pods.subscribe(self._changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(
                self._placeholders.run(stop, wake=self._on_news, remind=self._on_unchanged)
            )
            await self._controller.run(stop, workers=workers)

    async def reconcile(self, key: WorkloadKey) -> timedelta | None:
        """Reconcile one workload.

        Return the delay until the next time if no event comes first.

        Raises:
            KubeError, SlurmError: try again after a back-off.
        """
        try:
            return await self._reconcile(key)
        finally:
            self._forget_departed(key)

    async def _reconcile(self, key: WorkloadKey) -> timedelta | None:
        if not await self._is_resolved(key):
            return None
        if (joined := self._members.key(PodUid(key))) not in (None, key):
            self._queue.add_afresh(joined)  # one member has news
            return None
        if not (mine := self._members.mine(key)):
            return None
        self._meet(key, mine)
        bind_contextvars(workload=key)
        return await self._decide(key)

    async def _decide(self, key: WorkloadKey) -> timedelta | None:
        member = self._members.of(key)[0][0]
        declared = None
        if self._workloads is not None and member.is_gang:
            declared = await self._workloads.declared(member)
        claims = Claims(self._members.of(key), self._placeholders.of(key))
        if await self._have_asked(key, claims.joining()):
            self._queue.add(key)  # the answers change who is a member
            return None
        mine = [pod for pod in claims.pods if self._members.is_mine(pod)]
        if not mine:
            return None
        if not claims.is_gang:
            bind_contextvars(pod=mine[0].full_name)
        now = self._placeholders.now()
        sights = {pod.uid: self._sight(pod, key, claims, now) for pod in mine}
        if self._placeholders.is_awaited(key):
            self._queue.undecided(key)
        plan = decide.plan(
            key,
            claims,
            sights,
            declared,
            self._policy,
            now=now,
            topology=self._side.nodes.topology,
            read_again=self._joined,
        )
        for newcomer, job_id in plan.unread:
            self._joined.add(newcomer)
            self._read(key, job_id)
        facts = {case.pod.uid: self._gather(case, key, now) for case in plan.open_cases}
        kube_nodes = {
            slurm_node: kube_node
            for slurm_node in plan.nodes
            if (kube_node := self._side.nodes.behind(slurm_node)) is not None
        }
        decisions = decide.decide(plan, facts, kube_nodes, self._policy, now=now)
        for pod in decisions.apart:
            self._set_apart(pod)
        failure = await self._take_back(plan.forfeits)
        await self._carry_out(key, decisions)
        if plan.expectant:
            await self._actuator.prepare(plan.expectant)
        if failure is not None:
            raise failure
        return decisions.retry_after

    # -- gather -----------------------------------------------------------------------------------

    async def _have_asked(self, key: WorkloadKey, joining: Iterable[tuple[Pod, SlurmJob]]) -> bool:
        """Ask which newcomers may join a placeholder, and set the others apart.

        Return False if there was nothing to ask.
        """
        newcomers = [
            (pod, job)
            for pod, job in joining
            if self._members.is_mine(pod) and pod.uid not in self._admitted
        ]
        for pod, job in newcomers:
            if self._workloads is None or await self._workloads.admits(pod, job):
                self._admitted.add(pod.uid)
                self._read(key, job.id)  # it may have been made smaller while it ran
            else:
                self._set_apart(pod)
        return bool(newcomers)

    def _sight(self, pod: Pod, key: WorkloadKey, claims: Claims, now: datetime) -> Observation:
        view = self._placeholders.view(pod, key, claims.of(pod))
        return Observation(view, self._situations.since(pod, view, now))

    def _gather(self, case: OpenCase, key: WorkloadKey, now: datetime) -> Facts:
        facts = self._side.facts.gather(case, key=key, now=now)
        return replace(facts, pin_refusal=self._pins.get(case.pod.uid))

    def _read(self, key: WorkloadKey, job_id: JobId) -> None:
        """Have a placeholder read again; its workload waits for that."""
        self._placeholders.changed(job_id)
        self._placeholders.wrote(key)

    # -- act --------------------------------------------------------------------------------------

    async def _take_back(self, pods: Iterable[Pod]) -> PeerError | None:
        """Take devices back from pods without a placeholder; return the last failure.

        This is repeated at every reconcile, so what failed or was never begun is made up for.
        """
        failure: PeerError | None = None
        for pod in pods:
            try:
                await self._actuator.take_back(pod)
            except PEER_ERRORS as error:  # the others, and what was decided, still get their turn
                failure = error
        return failure

    async def _carry_out(self, key: WorkloadKey, decisions: Decisions) -> None:
        """Act on the placeholder first, in order; then on all members concurrently."""
        for pod, decision in decisions.first:
            await self._carry_out_one(key, pod, decision)
        failures: list[PeerError] = []

        async def one(pod: Pod, decision: Decision) -> None:
            try:
                await self._carry_out_one(key, pod, decision)
            except PEER_ERRORS as error:  # the other members still get their turn
                failures.append(error)

        async with asyncio.TaskGroup() as group:
            for pod, decision in decisions.rest:
                group.create_task(one(pod, decision))
        if failures:
            raise failures[0]

    async def _carry_out_one(self, key: WorkloadKey, pod: Pod, decision: Decision) -> None:
        with bound_contextvars(pod=pod.full_name):
            try:
                await self._actuator.carry_out(pod, decision, workload=key)
            except (Rejected, Forbidden, NotGiven) as error:
                self._pins.refused(
                    pod.uid,
                    decision,
                    error.message,
                    self._clock.now(),
                    is_of_devices=isinstance(error, NotGiven),
                )
                raise

    # -- which pods, and since when ---------------------------------------------------------------

    async def _is_resolved(self, key: WorkloadKey) -> bool:
        """Resolve which workload a new pod belongs to; return False if it is not its own."""
        pod = self._pods.get(key)
        if pod is None or self._workloads is None or self._members.is_resolved(pod):
            return True
        member = await self._workloads.resolve(pod)
        pod = self._pods.get(key)
        if pod is None or self._members.is_resolved(pod):
            return True  # it is gone, or has its node
        self._members.settle(pod, member)
        if member.key == key:
            return True
        self._queue.add(member.key)
        return False

    def _set_apart(self, pod: Pod) -> None:
        """Make the pod its own workload: its gang has no slot for it."""
        alone = membership.alone(pod)
        self._members.settle(pod, alone)
        self._queue.add(alone.key)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        """Queue the pod's workload if any pod of it is, or was, on this side."""
        was_mine = old is not None and self._members.is_mine(old)
        key: WorkloadKey | None = None
        if new is not None:
            new, key, left = self._members.see(new)
            if left is not None:
                self._queue.add(left)
        elif old is not None:
            key = self._members.remove(old)
        if key is None:
            return
        is_mine = new is not None and self._members.is_mine(new)
        if old is not None and was_mine and not is_mine:
            self._departed.setdefault(key, set()).add(old.uid)
        if new is not None and is_mine and lifecycle.is_at_rest(new):
            if not was_mine:
                self._meet(key, self._members.mine(key))
            self._queue.add_after(key, _REST_S)
        elif self._members.is_ours(key):
            self._queue.add(key)
        elif was_mine and not self._queue.is_worked_on(key):
            self._forget_departed(key)

    def _on_news(self, key: WorkloadKey) -> None:
        self._enqueue(key, self._queue.add)

    def _on_unchanged(self, key: WorkloadKey) -> None:
        """Queue a workload that waited for a reading, in which nothing of it has changed."""
        self._enqueue(key, self._queue.remind)

    def _enqueue(self, key: WorkloadKey, queue: Callable[[WorkloadKey], None]) -> None:
        if not (mine := self._members.mine(key)):
            return
        jobs = self._placeholders.of(key)
        if all(lifecycle.may_rest(pod, jobs) for pod in mine):
            self._queue.add_after(key, _REST_S)
        else:
            queue(key)

    def _meet(self, key: WorkloadKey, mine: Sequence[Pod]) -> None:
        pasts = {pod.uid: self._side.facts.past(pod) for pod in mine}
        for uid, past in pasts.items():
            self._placeholders.receive(uid, past)
        of_any = frozenset(pasts.values())
        self._placeholders.meet(key, next(past for past in _WORST_FIRST if past in of_any))

    def _forget_departed(self, key: WorkloadKey) -> None:
        """Forget the pods of a workload that are gone or on the other side.

        Call it only while no worker is busy with the workload.
        """
        for departed in self._departed.pop(key, ()):
            self._forget(departed)
        if not self._members.is_ours(key):
            self._placeholders.forget(key)
            if self._workloads is not None:
                self._workloads.forget(key)

    @override
    def about(self, key: WorkloadKey, /) -> About | None:
        return next((pod.about for pod in self._members.mine(key)), None)

    @override
    def lane(self, key: WorkloadKey, /) -> str:
        return self._members.namespace(key)

    def _forget(self, uid: PodUid) -> None:
        self._members.forget(uid)
        self._admitted.discard(uid)
        self._joined.discard(uid)
        self._placeholders.forget_pod(uid)
        self._side.facts.forget_pod(uid)
        self._situations.forget(uid)
        self._pins.forget(uid)
