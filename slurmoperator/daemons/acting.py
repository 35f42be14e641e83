"""Carries out the plan of an object of the control plane, in named steps: it decides nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import structlog

from slurmoperator.daemons.gathering import PartSources, read_pods
from slurmoperator.daemons.part import (
    PART_KINDS,
    WORKLOADS,
    ControlPeers,
    DaemonWorkload,
    PartCaches,
    PartObject,
    WatchedPart,
)
from slurmoperator.daemons.situation import PartOutcome, PartPlan, PendingVerdict, WorkloadState
from slurmoperator.keys import host_keys, secrets
from slurmoperator.keys.host_keys import HostKeys
from slurmoperator.keys.secrets import RandomBytes
from slurmoperator.nodesets.volumes import deleted_claims
from slurmoperator.objects.labels import MANAGER, TAKE_OVER_ANNOTATION, takes_over
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.objects.pod_status import why_not_ready
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.rendering.body import CONFIGURATION_ANNOTATION
from slurmoperator.rendering.loginset import host_keys_body, host_keys_secret
from slurmoperator.rendering.ssh import HOST_KEY_FILES
from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.apply import owned_objects, writes
from slurmruntime.kube.apply.owned_objects import BodyVerdict, ObjectOwner
from slurmruntime.kube.apply.ownership import Ownership
from slurmruntime.kube.client import MERGE_PATCH, KubeClient
from slurmruntime.model.objects import JsonObject
from slurmruntime.values import faults
from slurmruntime.values.errors import PEER_ERRORS
from slurmruntime.values.faults import Refusal

_workload = msgspec.json.Decoder(DaemonWorkload)
_log = structlog.get_logger(__name__)

_NEVER_TAKES_OVER: Final = frozenset({"Token"})
"""A Token's user chooses the name of a Secret, and could choose one that only others may write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySource:
    """Where keys come from."""

    random_bytes: RandomBytes
    host_keys: HostKeys


@dataclass(slots=True)
class _Case:
    """An object and its plan, with what the steps so far have come to."""

    watched: WatchedPart
    part: PartObject
    plan: PartPlan
    judged: tuple[BodyVerdict, ...] = ()

    @property
    def owner(self) -> ObjectOwner:
        """How its objects are written."""
        meta, may_take_over = self.watched.metadata, self.watched.kind not in _NEVER_TAKES_OVER
        return ObjectOwner(
            uid=meta.uid, manager=MANAGER, takes_over=may_take_over and takes_over(meta)
        )

    def reasons(self, ownership: Ownership) -> tuple[str, ...]:
        """Return why its objects stand like this."""
        return tuple(verdict.reason for verdict in self.judged if verdict.ownership is ownership)


_MOST_PODS: Final = 20
_MOST_WAITS: Final = 3
_LONGEST_WAIT: Final = 300


class _NotOurs(Exception):
    """Another program has the name of an object."""


class PartActing:
    """Acts during one term of leadership."""

    def __init__(
        self,
        peers: ControlPeers,
        caches: PartCaches,
        sources: PartSources,
        *,
        keys: KeySource,
        wake: Callable[[str], None],
    ) -> None:
        """Prepare; `wake` is called with the namespace in which a key has got another step."""
        self._kube = peers.kube
        self._tried = peers.tried
        self._caches = caches
        self._sources = sources
        self._keys = keys
        self._wake = wake

    def note(self, part: PartObject, plan: PartPlan) -> None:
        """Note what the next looks need to know: which verdicts are awaited, and what Slurm is to be asked."""
        uid, verdict = part.metadata.uid, plan.verdict
        if plan.follow is not None:
            self._sources.partitions.request(part.metadata, plan.follow)
        _remember(self._sources.awaited, uid, verdict.awaited if verdict else None)
        _remember(self._sources.awaited_nodes, uid, verdict.awaited_nodes if verdict else None)
        for node_set, trial in (verdict.node_trials if verdict else {}).items():
            self._tried.put(node_set, trial)

    async def act(self, watched: WatchedPart, part: PartObject, plan: PartPlan) -> PartOutcome:
        """Carry out a plan, and return what came of it and what was seen then."""
        case = _Case(watched, part, plan)
        outcome = PartOutcome(watched=watched)
        # Whether the steps after it have to wait for it.
        steps = (
            ("CheckOwners", self._check_owners, True),
            ("AddFinalizer", self._add_finalizer, True),
            ("CreateKeys", self._create_keys, True),
            ("WriteAuthorities", self._write_authorities, True),
            ("ApplyObjects", self._apply_objects, True),
            ("HurryPods", self._hurry_pods, False),
            ("DeleteLeftovers", self._delete_leftovers, True),
            ("RotateKey", self._rotate_key, True),
        )
        for name, step, stops in steps:
            try:
                await step(case)
            except _NotOurs as error:
                outcome = replace(outcome, refused=str(error), refused_reason="NotOurs")
            except Refusal as refusal:
                outcome = replace(outcome, refused=refusal.text)
            except PEER_ERRORS as error:
                _log.info("part.step_failed", step=name, error=str(error))
                outcome = replace(outcome, failure=outcome.failure or error)
            if stops and outcome.is_cut_short:
                break
        outcome = replace(outcome, watched=case.watched, notes=case.reasons(Ownership.NOT_SERVED))
        if outcome.refused_reason == "NotOurs":
            return outcome
        rendered = [body for body in plan.bodies if body["kind"] in WORKLOADS]
        seen = [await read_workload(self._kube, body) for body in rendered]
        return replace(outcome, workloads=tuple(seen))

    # -- steps ------------------------------------------------------------------------------------

    async def _check_owners(self, case: _Case) -> None:
        case.judged = await owned_objects.judge(self._kube, case.plan.bodies, case.owner)
        if foreign := case.reasons(Ownership.NOT_OURS):
            hint = f"annotate the {case.watched.kind} with {TAKE_OVER_ANNOTATION}=true to take over what no other controller owns"
            if case.watched.kind in _NEVER_TAKES_OVER:
                hint = "choose another name"
            raise _NotOurs(faults.shortened("; ".join((*foreign, hint))))

    async def _add_finalizer(self, case: _Case) -> None:
        if case.judged and case.watched.metadata.deletion_timestamp is None:
            own, cache = PART_KINDS[case.watched.kind], self._caches.parts[case.watched.kind]
            case.watched = await own.add_finalizer(self._kube, cache, case.watched)

    async def _create_keys(self, case: _Case) -> None:
        plan = case.plan
        has_run = any(
            verdict.body["kind"] in WORKLOADS and verdict.ownership is not Ownership.ABSENT
            for verdict in case.judged
        )
        if plan.host_keys is not None:
            await self._create_host_keys(plan.host_keys, has_run=has_run)
        else:
            await secrets.ensure(
                self._kube,
                case.watched.metadata.namespace,
                plan.keys,
                has_run=has_run or plan.are_keys_used,
                random_bytes=self._keys.random_bytes,
            )

    async def _create_host_keys(self, login_set: LoginSetObject, *, has_run: bool) -> None:
        meta, name = login_set.metadata, host_keys_secret(login_set.metadata.name)
        seen = await secrets.read(self._kube, meta.namespace, name)
        host_keys.require(name, seen, HOST_KEY_FILES, has_run=has_run)
        if seen is None:
            body = host_keys_body(login_set, await self._keys.host_keys())
            created = await secrets.create(self._kube, body)
            host_keys.require(name, created, HOST_KEY_FILES, has_run=True)

    async def _write_authorities(self, case: _Case) -> None:
        tls = case.plan.tls
        if tls is not None and tls.authorities and isinstance(case.part, RestApiObject):
            await self._sources.certificates.write(case.part, tls.authorities)

    async def _apply_objects(self, case: _Case) -> None:
        await owned_objects.apply(self._kube, case.judged, case.owner)

    async def _hurry_pods(self, case: _Case) -> None:
        """Touch the pods, so that their kubelets sync new files at once and not within two minutes."""
        verdict, meta = case.plan.verdict, case.part.metadata
        if verdict is None or verdict.awaited is None or not verdict.hurried_pods:
            return
        nudged = replace(verdict.awaited, nudges=verdict.awaited.nudges + 1)
        self._sources.awaited[meta.uid] = nudged
        annotations = {CONFIGURATION_ANNOTATION: f"{nudged.tag} {nudged.nudges}"}
        for name in verdict.hurried_pods:
            try:
                await self._kube.request(
                    "PATCH",
                    paths.pod(meta.namespace, name),
                    body={"metadata": {"annotations": annotations}},
                    content_type=MERGE_PATCH,
                )
            except errors.NotFound:
                continue  # the pod has just gone

    async def _delete_leftovers(self, case: _Case) -> None:
        await owned_objects.withdraw(self._kube, case.plan.unwanted, case.owner)

    async def _rotate_key(self, case: _Case) -> None:
        ring, decision = case.plan.ring, case.plan.rotation
        if ring is None or decision is None or decision.writes is None:
            return
        namespace = case.watched.metadata.namespace
        await self._sources.key_rings.write(namespace, ring, decision.writes)
        self._wake(namespace)


def _remember(awaited: dict[str, PendingVerdict], uid: str, pending: PendingVerdict | None) -> None:
    if pending is None:
        awaited.pop(uid, None)
    else:
        awaited[uid] = pending


async def read_workload(kube: KubeClient, body: JsonObject) -> WorkloadState:
    """Return the state of the workload that a body describes; one that does not exist has no pods."""
    where = writes.path(body)
    try:
        workload = resource.decoded(_workload, str(body["kind"]), await kube.request("GET", where))
    except errors.NotFound:
        return WorkloadState(
            name=f"{body['kind']} {body['metadata']['name']}",
            desired=body["spec"].get("replicas", 1),
            ready=0,
            pods=0,
            is_updated=False,
            waits=("it does not exist",),
        )
    status, namespace = workload.status, workload.metadata.namespace
    state = WorkloadState(
        name=f"{body['kind']} {workload.metadata.name}",
        desired=workload.spec.replicas,
        ready=status.ready_replicas,
        pods=status.replicas,
        is_updated=workload.is_observed and status.updated_replicas >= workload.spec.replicas,
        deleted_claims=await deleted_claims.find_deleted(kube, namespace, [*_claims(body)]),
    )
    if state.is_ready:
        return state
    labels = body["spec"]["selector"]["matchLabels"]
    pods = await read_pods(kube, namespace, labels, most=_MOST_PODS)
    waits = [f"pod {pod.metadata.name}: {why}" for pod in pods for why in why_not_ready(pod.status)]
    shown = tuple(faults.shortened(wait, _LONGEST_WAIT) for wait in waits[:_MOST_WAITS])
    return replace(state, waits=shown)


def _claims(body: JsonObject) -> Iterator[str]:
    spec = body["spec"]
    for volume in spec["template"]["spec"].get("volumes") or ():
        if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            yield claim
    for volume_claim_template in spec.get("volumeClaimTemplates") or ():
        for number in range(spec.get("replicas", 1)):
            yield f"{volume_claim_template['metadata']['name']}-{body['metadata']['name']}-{number}"
