"""The reconcile loop over the control plane's objects: gather, decide, act, report."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from structlog.contextvars import bind_contextvars

from slurmoperator.daemons import conditions, leaving, workload
from slurmoperator.daemons.conditions import PartFacts
from slurmoperator.daemons.deciding import Bodies, BodyMakers
from slurmoperator.daemons.gathering import PartGathering, PartPlan
from slurmoperator.daemons.key_rings import KeyRing, KeyRings
from slurmoperator.daemons.part import PART_KINDS, ControlPeers, PartCaches, PartObject, WatchedPart
from slurmoperator.daemons.partition_readings import PartitionReadings
from slurmoperator.daemons.rotating import KeyRotation, RotationOutcome
from slurmoperator.daemons.workload import WORKLOADS, WorkloadObject, WorkloadState
from slurmoperator.keys import host_keys, naming, secrets
from slurmoperator.keys.host_keys import HostKeys
from slurmoperator.keys.secrets import RandomBytes
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import MANAGER, TAKE_OVER_ANNOTATION, selecting
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.rendering.leftovers import leftovers
from slurmoperator.rendering.loginset import LOGIN_APP, host_keys_body, host_keys_secret
from slurmoperator.rendering.site import ELSEWHERE, NamespaceScope
from slurmoperator.rendering.ssh import HOST_KEY_FILES
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube.apply import owned_objects
from slurmruntime.kube.apply.owned_objects import BodyVerdict, ObjectOwner
from slurmruntime.kube.apply.ownership import Ownership
from slurmruntime.leading.controller import Controller, Process, Watch
from slurmruntime.values import faults
from slurmruntime.values.errors import PEER_ERRORS, PeerError
from slurmruntime.values.faults import Fault, Refused

_log = structlog.get_logger(__name__)

_NEVER_TAKES_OVER: Final = frozenset({"Token"})
"""A Token's user chooses the name of a Secret, and could choose one that only others may write."""
_SETTLED: Final = timedelta(seconds=60)
"""How often the objects that it refers to are read again while it is ready."""
_WAITING: Final = timedelta(seconds=5)
_SHORTEST: Final = timedelta(seconds=1)
"""Between two reconciles of an object without an event."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    watched: WatchedPart
    facts: PartFacts
    failure: PeerError | None = None
    due: timedelta | None = None
    """When to reconcile again if no event comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySource:
    """Where keys come from."""

    random_bytes: RandomBytes
    host_keys: HostKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRules:
    """What each namespace may have."""

    served: NamespaceScope
    """Those whose objects are reconciled. Others only get a condition that says that they are not."""
    tokens: TokenPolicy


class ControlLoop:
    """Reconciles the control plane's objects during one term of leadership."""

    def __init__(
        self,
        peers: ControlPeers,
        caches: PartCaches,
        make: BodyMakers,
        *,
        keys: KeySource,
        rules: NamespaceRules,
        process: Process,
    ) -> None:
        """Prepare the loop; it asks a Controller's Slurm which partitions have jobs."""
        self._kube = kube = peers.kube
        self._parts = caches.parts
        self._workload_caches = caches.workloads
        self._node_sets = caches.node_sets
        self._controller = Controller(
            "control plane",
            self.reconcile,
            [
                *(Watch(cache, self._changed) for cache in caches.parts.values()),
                *(Watch(cache, _owners) for cache in caches.workloads),
                Watch(caches.node_sets, self._changed),
            ],
            process=process,
        )
        self._queue = self._controller.queue
        self._clock = process.clock
        key_rings = KeyRings(kube, caches.parts["Controller"], keys.random_bytes)
        self._partitions = PartitionReadings(peers.slurms, clock=self._clock, wake=self._queue.add)
        self._gathering = PartGathering(
            peers,
            caches,
            make,
            key_rings=key_rings,
            tokens=rules.tokens,
            partitions=self._partitions,
            clock=self._clock,
        )
        self._rotation = KeyRotation(kube, key_rings, caches.parts, caches.node_sets)
        self._keys = keys
        self._served = rules.served

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Reconcile objects until `stop` is set."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._partitions.run(stop))
            await self._controller.run(stop, workers=workers)

    async def reconcile(self, key: str) -> timedelta | None:
        """Reconcile one object.

        Return the delay until the next reconcile if no event comes first.

        Raises:
            PeerError: try again after a back-off.
        """
        watched = self._find(key)
        if watched is None:
            return None
        bind_contextvars(object=f"{watched.kind} {watched.metadata.full_name}")
        try:
            return await self._reconcile(watched)
        except kube_errors.NotFound:
            _log.debug("part.gone_already")
            return None

    async def _reconcile(self, watched: WatchedPart) -> timedelta | None:
        waits = ""
        if watched.metadata.deletion_timestamp is not None:
            waits = await leaving.release(self._kube, watched)
            if not waits:
                return None  # Kubernetes deletes what it owns
        facts = PartFacts(waits=waits)
        if elsewhere := self._served.fault(watched.metadata.namespace):
            facts = replace(facts, accepted=elsewhere, accepted_reason=ELSEWHERE)
        elif watched.parsed is None:
            facts = replace(facts, accepted=watched.fault)
        part = watched.parsed
        if facts.accepted or part is None:
            await self._report(watched, facts)
            return _SETTLED if waits else None
        outcome = await self._act(watched, part)
        await self._report(outcome.watched, replace(outcome.facts, waits=waits))
        if outcome.failure is not None:
            raise outcome.failure
        workloads = outcome.facts.workloads
        is_settled = workloads is not None and all(workload.is_ready for workload in workloads)
        delays = [_SETTLED if is_settled and not outcome.facts.accepted else _WAITING]
        if outcome.due is not None:
            delays.append(max(outcome.due, _SHORTEST))
        return min(delays)

    async def _act(self, watched: WatchedPart, part: PartObject) -> _Outcome:
        plan = await self._gathering.of(part)
        facts = _planned_facts(plan, self._clock.now())
        if isinstance(plan.bodies, Refused):
            return _Outcome(watched, replace(facts, accepted=plan.bodies.text))
        if plan.configured and not plan.bodies:
            return _Outcome(watched, facts)
        owner = _object_owner(watched)
        judged = await owned_objects.judge(self._kube, plan.bodies, owner)
        if foreign := _reasons(judged, Ownership.NOT_OURS):
            hint = f"annotate the {watched.kind} with {TAKE_OVER_ANNOTATION}=true to take over what no other controller owns"
            if watched.kind in _NEVER_TAKES_OVER:
                hint = "choose another name"
            text = faults.shortened("; ".join((*foreign, hint)))
            return _Outcome(watched, replace(facts, accepted=text, accepted_reason="NotOurs"))
        facts = replace(facts, notes=_reasons(judged, Ownership.NOT_SERVED))
        if judged and watched.metadata.deletion_timestamp is None:
            own, cache = PART_KINDS[watched.kind], self._parts[watched.kind]
            watched = await own.add_finalizer(self._kube, cache, watched)
        if key_faults := await self._ensure_keys(watched, plan, judged):
            facts = replace(facts, accepted=Refused(key_faults).text)
            return _Outcome(watched, replace(facts, workloads=await self._workloads(plan.bodies)))
        if plan.tls and plan.tls.authorities and isinstance(part, RestApiObject):
            await self._gathering.certificates.write(part, plan.tls.authorities)
        failure = await owned_objects.apply(self._kube, judged, owner)
        failure = failure or await self._gathering.trials.hurry(part.metadata, plan.pending_tag)
        # While a configuration is refused, it is not known which objects its change would remove.
        if failure is None and not plan.configured:
            unwanted = leftovers(watched.kind, watched.metadata, plan.bodies)
            failure = await owned_objects.withdraw(self._kube, unwanted, owner)
        key = RotationOutcome()
        if failure is None and plan.ring is not None:
            key, failure = await self._rotate_key(watched, plan.ring)
        failures = () if failure is None or failure.transient else (str(failure),)
        workloads = await self._workloads(plan.bodies)
        facts = replace(facts, failures=failures, workloads=workloads, key=key.decision)
        return _Outcome(watched, facts, failure, plan.due or key.due)

    async def _rotate_key(
        self, watched: WatchedPart, ring: KeyRing
    ) -> tuple[RotationOutcome, PeerError | None]:
        """Write the next step of a Controller's key if it is due; return the outcome and what failed."""
        try:
            rotation = await self._rotation.advance(watched, ring)
        except PEER_ERRORS as error:
            return RotationOutcome(), error
        if rotation.decision is not None and rotation.decision.writes is not None:
            for uid in self._in_namespaces({watched.metadata.namespace}):
                self._queue.add(uid)
        return rotation, None

    async def _ensure_keys(
        self, watched: WatchedPart, plan: PartPlan, judged: Sequence[BodyVerdict]
    ) -> tuple[Fault, ...]:
        """Create missing keys; return faults instead if daemons may already use them."""
        has_run = any(
            verdict.body["kind"] in WORKLOADS and verdict.ownership is not Ownership.ABSENT
            for verdict in judged
        )
        if (login_set := plan.host_keys) is not None:
            meta = login_set.metadata
            return await host_keys.ensure(
                self._kube,
                (meta.namespace, host_keys_secret(meta.name)),
                HOST_KEY_FILES,
                has_run=has_run,
                make=self._keys.host_keys,
                body=lambda keys: host_keys_body(login_set, keys).body,
            )
        names = {key.secret for key in plan.keys}
        return await secrets.ensure(
            self._kube,
            watched.metadata.namespace,
            plan.keys,
            has_run=has_run or self._are_used(watched, names),
            random_bytes=self._keys.random_bytes,
        )

    def _are_used(self, watched: WatchedPart, names: AbstractSet[str]) -> bool:
        """Check whether the daemons of another object, or workers, may use one of these keys."""
        sharing = {
            part.metadata.uid: part
            for cache in self._parts.values()
            for part in cache.values()
            if part.metadata.namespace == watched.metadata.namespace
            and isinstance(part.parsed, ControllerObject | AccountingObject)
            and any(key.secret in names for key in naming.key_references(part.parsed.spec))
        }
        clusters = {part.metadata.name for part in sharing.values() if part.kind == "Controller"}
        has_workers = any(
            node_set.parsed.spec.controller_ref.name in clusters and node_set.status.ready_replicas
            for node_set in self._node_sets.values()
            if node_set.parsed and node_set.metadata.namespace == watched.metadata.namespace
        )
        others = sharing.keys() - {watched.metadata.uid}
        return (
            has_workers
            or any(_is_accepted(sharing[uid]) for uid in others)
            or any(
                owned.metadata.controller_uid in others
                for cache in self._workload_caches
                for owned in cache.values()
            )
        )

    async def _workloads(self, bodies: Bodies) -> tuple[WorkloadState, ...]:
        states = [
            await workload.read(self._kube, body) for body in bodies if body["kind"] in WORKLOADS
        ]
        return tuple(state for state in states if state is not None)

    async def _report(self, watched: WatchedPart, facts: PartFacts) -> None:
        after = conditions.status(
            watched.status, facts, generation=watched.metadata.generation, now=self._clock.now()
        )
        cache = self._parts[watched.kind]
        await PART_KINDS[watched.kind].write_status(self._kube, cache, watched, after)

    # -- events -----------------------------------------------------------------------------------

    def _find(self, key: str) -> WatchedPart | None:
        return next(
            (part for cache in self._parts.values() if (part := cache.get(key)) is not None), None
        )

    def _changed(
        self, old: WatchedPart | WatchedNodeSet | None, new: WatchedPart | WatchedNodeSet | None
    ) -> Iterable[str]:
        """Return all objects in the namespace of a change: they depend on each other. Tokens are excluded, as there may be many."""
        if old is not None and new is not None and old.asked == new.asked:
            return ()
        versions = [version for version in (old, new) if version is not None]
        if any(version.kind == "Token" for version in versions):
            return [token.metadata.uid for token in versions]
        return self._in_namespaces({version.metadata.namespace for version in versions})

    def _in_namespaces(self, namespaces: AbstractSet[str]) -> Iterator[str]:
        for kind, cache in self._parts.items():
            for part in cache.values() if kind != "Token" else ():
                if part.metadata.namespace in namespaces:
                    yield part.metadata.uid


def _owners(old: WorkloadObject | None, new: WorkloadObject | None) -> Iterator[str]:
    for version in (old, new):
        if version is not None and version.metadata.controller_uid:
            yield version.metadata.controller_uid


def _is_accepted(watched: WatchedPart) -> bool:
    return any((c.type, c.status) == ("Accepted", "True") for c in watched.status.conditions)


def _object_owner(watched: WatchedPart) -> ObjectOwner:
    return ObjectOwner(
        uid=watched.metadata.uid,
        manager=MANAGER,
        takes_over=watched.kind not in _NEVER_TAKES_OVER
        and watched.metadata.annotations.get(TAKE_OVER_ANNOTATION) == "true",
    )


def _planned_facts(plan: PartPlan, now: datetime) -> PartFacts:
    facts = PartFacts(
        configured=plan.configured,
        not_tried=plan.not_tried,
        digest=plan.digest,
        kept_partitions=plan.kept_partitions,
        key_step=plan.ring.step if plan.ring else None,
    )
    if (login_set := plan.host_keys) is not None:
        labels = selecting(LOGIN_APP, login_set.metadata.name).items()
        facts = replace(facts, selector=",".join(f"{key}={value}" for key, value in labels))
    if (token := plan.token) is not None:
        until = f"{token.expires_at:%Y-%m-%dT%H:%M:%SZ}"
        expired = f"it expired at {until}: create another Token, or set spec.refresh"
        facts = replace(
            facts,
            issued_at=token.issued_at,
            ready_message=f"valid until {until}",
            expired=expired if token.expires_at <= now else "",
        )
    return facts


def _reasons(judged: Iterable[BodyVerdict], ownership: Ownership) -> tuple[str, ...]:
    return tuple(verdict.reason for verdict in judged if verdict.ownership is ownership)
