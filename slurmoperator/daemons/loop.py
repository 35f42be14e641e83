"""The reconcile loop over the control plane's objects: gather, decide, act, tell."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from structlog.contextvars import bind_contextvars

from slurmoperator.daemons import conditions, leaving, workload
from slurmoperator.daemons.conditions import PartFacts
from slurmoperator.daemons.deciding import Bodies, BodyMakers
from slurmoperator.daemons.gathering import GatheredPart, PartGathering
from slurmoperator.daemons.key_rings import KeyRing, KeyRings
from slurmoperator.daemons.part import PART_KINDS, PartObject, WatchedPart
from slurmoperator.daemons.partition_readings import PartitionReadings
from slurmoperator.daemons.rotating import KeyRotation, LookedAtKey
from slurmoperator.daemons.workload import WORKLOADS, WatchedWorkload, WorkloadState
from slurmoperator.keys import host_keys, naming, secrets
from slurmoperator.keys.host_keys import HostKeys
from slurmoperator.keys.secrets import RandomBytes
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.owned.tried import TriedConfs
from slurmoperator.nodesets.views import OpensSlurm
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import MANAGER, TAKE_OVER_ANNOTATION, selecting
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.rendering.leftovers import leftovers
from slurmoperator.rendering.loginset import LOGIN_APP, host_keys_body, host_keys_secret
from slurmoperator.rendering.site import ELSEWHERE, ServedNamespaces
from slurmoperator.rendering.ssh import HOST_KEY_FILES
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube.apply import belongings
from slurmruntime.kube.apply.belongings import JudgedBody, Possessor
from slurmruntime.kube.apply.standing import Standing
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.leading import worker
from slurmruntime.leading.worker import Aside
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.clock import Clock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import faults
from slurmruntime.values.errors import PeerError
from slurmruntime.values.faults import Fault, Refused
from slurmruntime.values.oddities import Oddities

_log = structlog.get_logger(__name__)

_NEVER_TAKES_OVER: Final = frozenset({"Token"})
"""Its user names a Secret, and might name one that only others may write."""
_SETTLED: Final = timedelta(seconds=60)
"""How often what an object names is read again while all is well."""
_WAITING: Final = timedelta(seconds=5)
_SOONEST: Final = timedelta(seconds=1)
"""Between two looks that nothing but the time asks for."""


@dataclass(frozen=True, slots=True)
class _Acted:
    found: WatchedPart
    """The object as it is now."""
    facts: PartFacts
    failure: PeerError | None = None
    due: timedelta | None = None
    """When there is something to do although nothing happens."""


class ControlLoop:
    """Reconciles the control plane's objects during one term of leadership."""

    def __init__(
        self,
        *,
        kube: KubeClient,
        parts: Mapping[str, Cache[WatchedPart]],
        workloads: Collection[Cache[WatchedWorkload]],
        node_sets: Cache[WatchedNodeSet],
        make: BodyMakers,
        queue: WorkQueue[str],
        clock: Clock,
        metrics: Metrics,
        set_aside: Oddities,
        random_bytes: RandomBytes,
        make_host_keys: HostKeys,
        tokens: TokenPolicy,
        served: ServedNamespaces,
        slurms: OpensSlurm,
        tried: TriedConfs,
    ) -> None:
        """Prepare the loop.

        Args:
            kube: the API server.
            parts: all objects, by kind and uid.
            workloads: StatefulSets and Deployments of ours.
            node_sets: all of them, by uid.
            make: makes bodies.
            queue: of objects' uids.
            clock: of the process.
            metrics: counts.
            set_aside: told of crashes.
            random_bytes: the source of keys.
            make_host_keys: makes those of login pods.
            tokens: who may have one for which Slurm user.
            served: whose objects are seen to; of others it is only told that they are not.
            slurms: opens the Slurm of a Controller, to be asked which partitions have jobs.
            tried: is told what slurmctld makes of the nodes that workers are to register.
        """
        self._kube = kube
        self._parts = parts
        self._workload_caches = workloads
        self._node_sets = node_sets
        key_rings = KeyRings(kube, parts["Controller"], random_bytes)
        self._partitions = PartitionReadings(slurms, clock=clock, wake=queue.add)
        self._gathering = PartGathering(
            kube,
            parts,
            node_sets,
            make,
            key_rings=key_rings,
            tokens=tokens,
            clock=clock,
            partitions=self._partitions,
            tried=tried,
        )
        self._rotation = KeyRotation(kube, key_rings, parts, node_sets)
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._set_aside = set_aside
        self._random_bytes = random_bytes
        self._make_host_keys = make_host_keys
        self._served = served

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Reconcile objects until told to stop."""
        for cache in self._parts.values():
            cache.subscribe(self._changed)
        for watched in self._workload_caches:
            watched.subscribe(self._workload_changed)
        self._node_sets.subscribe(self._changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._partitions.run(stop))
            await worker.run(
                self._queue,
                self.reconcile,
                name="control plane",
                count=workers,
                stop=stop,
                metrics=self._metrics,
                aside=Aside(self._set_aside, "workload"),
            )

    async def reconcile(self, key: str) -> timedelta | None:
        """Look at one object and do what is needed.

        Return the delay until the next look if no event comes first.

        Raises:
            PeerError: try again after a back-off.
        """
        found = self._found(key)
        if found is None:
            return None
        bind_contextvars(object=f"{found.kind} {found.metadata.full_name}")
        try:
            return await self._look_at(found)
        except kube_errors.NotFound:
            _log.debug("part.gone_already")
            return None

    async def _look_at(self, found: WatchedPart) -> timedelta | None:
        waits = ""
        if found.metadata.deletion_timestamp is not None:
            waits = await leaving.let_go(self._kube, found)
            if not waits:
                return None  # Kubernetes deletes what it owns
        facts = PartFacts(waits=waits)
        if elsewhere := self._served.fault(found.metadata.namespace):
            facts = replace(facts, accepted=elsewhere, accepted_reason=ELSEWHERE)
        elif found.whole is None:
            facts = replace(facts, accepted=found.fault)
        whole = found.whole
        if facts.accepted or whole is None:
            await self._tell(found, facts)
            return _SETTLED if waits else None
        acted = await self._see_to(found, whole)
        await self._tell(acted.found, replace(acted.facts, waits=waits))
        if acted.failure is not None:
            raise acted.failure
        workloads = acted.facts.workloads
        is_settled = workloads is not None and all(each.is_ready for each in workloads)
        looks = [_SETTLED if is_settled and not acted.facts.accepted else _WAITING]
        if acted.due is not None:
            looks.append(max(acted.due, _SOONEST))
        return min(looks)

    async def _see_to(self, found: WatchedPart, of: PartObject) -> _Acted:
        gathered = await self._gathering.of(of)
        facts = _known(gathered, self._clock.now())
        if isinstance(gathered.made, Refused):
            return _Acted(found, replace(facts, accepted=gathered.made.text))
        if gathered.configured and not gathered.made:
            return _Acted(found, facts)
        possessor = _possessor(found)
        judged = await belongings.judge(self._kube, gathered.made, possessor)
        if foreign := _of_standing(judged, Standing.NOT_OURS):
            hint = f"annotate the {found.kind} with {TAKE_OVER_ANNOTATION}=true to take over what nobody else controls"
            if found.kind in _NEVER_TAKES_OVER:
                hint = "choose another name"
            text = faults.shortened("; ".join((*foreign, hint)))
            return _Acted(found, replace(facts, accepted=text, accepted_reason="NotOurs"))
        facts = replace(facts, notes=_of_standing(judged, Standing.NOT_SERVED))
        if judged and found.metadata.deletion_timestamp is None:
            own, cache = PART_KINDS[found.kind], self._parts[found.kind]
            found = await own.hold(self._kube, cache, found)
        if wrong := await self._ensure_keys(found, gathered, judged):
            facts = replace(facts, accepted=Refused(wrong).text)
            return _Acted(found, replace(facts, workloads=await self._workloads(gathered.made)))
        if gathered.tls and gathered.tls.authorities and isinstance(of, RestApiObject):
            await self._gathering.certificates.keep(of, gathered.tls.authorities)
        failure = await belongings.apply(self._kube, judged, possessor)
        failure = failure or await self._gathering.trials.hurry(of.metadata, gathered.tries)
        # While a configuration is refused, it is not known what its change would take away.
        if failure is None and not gathered.configured:
            unwanted = leftovers(found.kind, found.metadata, gathered.made)
            failure = await belongings.withdraw(self._kube, unwanted, possessor)
        key = LookedAtKey()
        if failure is None and gathered.ring is not None:
            key, failure = await self._see_to_key(found, gathered.ring)
        failures = () if failure is None or failure.transient else (str(failure),)
        workloads = await self._workloads(gathered.made)
        facts = replace(facts, failures=failures, workloads=workloads, key=key.decision)
        return _Acted(found, facts, failure, gathered.due or key.due)

    async def _see_to_key(
        self, found: WatchedPart, ring: KeyRing
    ) -> tuple[LookedAtKey, PeerError | None]:
        """Have the next step of a Controller's key written if it is due; return what failed, too."""
        try:
            looked = await self._rotation.look(found, ring)
        except PeerError as error:
            return LookedAtKey(), error
        if looked.decision is not None and looked.decision.writes is not None:
            self._look_in({found.metadata.namespace})
        return looked, None

    async def _ensure_keys(
        self, found: WatchedPart, gathered: GatheredPart, judged: Sequence[JudgedBody]
    ) -> tuple[Fault, ...]:
        """Make the keys that are missing, unless daemons may have them."""
        has_run = any(
            each.body["kind"] in WORKLOADS and each.standing is not Standing.ABSENT
            for each in judged
        )
        if (login_set := gathered.host_keys) is not None:
            return await self._ensure_host_keys(login_set, has_run=has_run)
        names = {key.secret for key in gathered.keys}
        return await secrets.ensure(
            self._kube,
            found.metadata.namespace,
            gathered.keys,
            has_run=has_run or self._are_used(found, names),
            random_bytes=self._random_bytes,
        )

    async def _ensure_host_keys(
        self, login_set: LoginSetObject, *, has_run: bool
    ) -> tuple[Fault, ...]:
        meta = login_set.metadata
        return await host_keys.ensure(
            self._kube,
            (meta.namespace, host_keys_secret(meta.name)),
            HOST_KEY_FILES,
            has_run=has_run,
            make=self._make_host_keys,
            body=lambda keys: host_keys_body(login_set, keys).body,
        )

    def _are_used(self, found: WatchedPart, names: AbstractSet[str]) -> bool:
        """Check whether the daemons of another object, or workers, may have one of these keys."""
        sharing = {
            each.metadata.uid: each
            for cache in self._parts.values()
            for each in cache.values()
            if each.metadata.namespace == found.metadata.namespace
            and isinstance(each.whole, ControllerObject | AccountingObject)
            and any(key.secret in names for key in naming.named(each.whole.spec))
        }
        clusters = {each.metadata.name for each in sharing.values() if each.kind == "Controller"}
        has_workers = any(
            each.whole.spec.controller_ref.name in clusters and each.status.ready_replicas
            for each in self._node_sets.values()
            if each.whole and each.metadata.namespace == found.metadata.namespace
        )
        others = sharing.keys() - {found.metadata.uid}
        return (
            has_workers
            or any(_is_accepted(sharing[uid]) for uid in others)
            or any(
                each.metadata.controller_uid in others
                for cache in self._workload_caches
                for each in cache.values()
            )
        )

    async def _workloads(self, bodies: Bodies) -> tuple[WorkloadState, ...]:
        found = [
            await workload.read(self._kube, body) for body in bodies if body["kind"] in WORKLOADS
        ]
        return tuple(each for each in found if each is not None)

    async def _tell(self, found: WatchedPart, facts: PartFacts) -> None:
        after = conditions.status(
            found.status,
            facts,
            generation=found.metadata.generation,
            now=self._clock.now(),
        )
        cache = self._parts[found.kind]
        await PART_KINDS[found.kind].tell(self._kube, cache, found, after)

    # -- events -----------------------------------------------------------------------------------

    def _found(self, key: str) -> WatchedPart | None:
        return next(
            (found for cache in self._parts.values() if (found := cache.get(key)) is not None), None
        )

    def _changed(
        self, old: WatchedPart | WatchedNodeSet | None, new: WatchedPart | WatchedNodeSet | None
    ) -> None:
        """Look at all objects of a namespace in which one has changed, as they depend on each other; but not Tokens, of which there may be many."""
        if old is not None and new is not None and old.asked == new.asked:
            return
        some = [each for each in (old, new) if each is not None]
        if any(each.kind == "Token" for each in some):
            for token in some:
                self._queue.add(token.metadata.uid)
            return
        self._look_in({each.metadata.namespace for each in some})

    def _look_in(self, namespaces: AbstractSet[str]) -> None:
        for kind, cache in self._parts.items():
            for found in cache.values() if kind != "Token" else ():
                if found.metadata.namespace in namespaces:
                    self._queue.add(found.metadata.uid)

    def _workload_changed(self, old: WatchedWorkload | None, new: WatchedWorkload | None) -> None:
        for each in (old, new):
            if each is not None and each.metadata.controller_uid:
                self._queue.add(each.metadata.controller_uid)


def _is_accepted(found: WatchedPart) -> bool:
    return any((c.type, c.status) == ("Accepted", "True") for c in found.status.conditions)


def _possessor(found: WatchedPart) -> Possessor:
    return Possessor(
        uid=found.metadata.uid,
        manager=MANAGER,
        takes_over=found.kind not in _NEVER_TAKES_OVER
        and found.metadata.annotations.get(TAKE_OVER_ANNOTATION) == "true",
    )


def _known(gathered: GatheredPart, now: datetime) -> PartFacts:
    """Return what is to be told before anything is done."""
    facts = PartFacts(
        configured=gathered.configured,
        not_tried=gathered.not_tried,
        digest=gathered.digest,
        kept=gathered.kept,
        key_step=gathered.ring.step if gathered.ring else None,
    )
    if (login_set := gathered.host_keys) is not None:
        labels = selecting(LOGIN_APP, login_set.metadata.name).items()
        facts = replace(facts, selector=",".join(f"{key}={each}" for key, each in labels))
    if (token := gathered.token) is not None:
        until = f"{token.expires_at:%Y-%m-%dT%H:%M:%SZ}"
        ended = f"it has ended at {until}: create another Token, or set spec.refresh"
        facts = replace(
            facts,
            issued_at=token.issued_at,
            said=f"good until {until}",
            expired=ended if token.expires_at <= now else "",
        )
    return facts


def _of_standing(judged: Iterable[JudgedBody], standing: Standing) -> tuple[str, ...]:
    return tuple(each.reason for each in judged if each.standing is standing)
