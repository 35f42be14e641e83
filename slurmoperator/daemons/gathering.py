"""Reads the facts about an object of the control plane: the caches and, for what they do not have, the API server. It decides nothing."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import msgspec

from slurmoperator.configuration import slurmdbd_conf
from slurmoperator.configuration.inputs import config_maps
from slurmoperator.configuration.rendering import UNNAMED_WRITE, ConfigurationSet, FilesInForce
from slurmoperator.daemons.key_rings import KeyRings
from slurmoperator.daemons.part import DaemonPod, PartCaches, PartObject, WatchedPart
from slurmoperator.daemons.partition_readings import PartitionReadings
from slurmoperator.daemons.rest_tls import RestCertificates
from slurmoperator.daemons.situation import (
    AccountingFacts,
    ControllerFacts,
    DaemonFacts,
    Data,
    LoginSetFacts,
    PendingVerdict,
    RestApiFacts,
    TokenFacts,
    TrialPod,
)
from slurmoperator.keys import naming, rings, rotation, secrets
from slurmoperator.keys.rotation import KEY_CONDITION, KeyRing, RotationFacts
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import selecting
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.parts import KeyOfObject, condition_of
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.objects.token import TokenObject
from slurmoperator.rendering import accounting, trying
from slurmoperator.rendering.body import PROVEN_ANNOTATION
from slurmoperator.rendering.controller import RECONFIGURE
from slurmoperator.rendering.site import (
    configuration_name,
    slurmdbd_conf_name,
    wanted_configuration_name,
)
from slurmoperator.rendering.token import token_secret
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import paths, resource
from slurmruntime.kube.cache import Index
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import Clock
from slurmruntime.values.errors import PEER_ERRORS
from slurmruntime.values.faults import Fault

_MOST_PODS: Final = 5
_MOST_LINES: Final = 3 * trying.MOST_UNFIT
_MOST_BYTES: Final = 64 * 1024
_LONGEST: Final = timedelta(seconds=5)
"""For one log: a kubelet that does not answer must not delay others."""


class _Pods(ObjectStruct, frozen=True):
    items: tuple[DaemonPod, ...] = ()


_pods = msgspec.json.Decoder(_Pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSources:
    """Where facts come from beside the API server and the caches."""

    key_rings: KeyRings
    certificates: RestCertificates
    partitions: PartitionReadings
    policy: TokenPolicy
    awaited: dict[str, PendingVerdict] = field(default_factory=dict)
    """Since when a verdict on an object's files has been awaited, by its uid; remembered from look to look."""
    awaited_nodes: dict[str, PendingVerdict] = field(default_factory=dict)
    """Likewise one on the nodes of a Controller's workers."""


class PartGathering:
    """Gathers the facts during one term of leadership."""

    def __init__(
        self, kube: KubeClient, caches: PartCaches, sources: PartSources, clock: Clock
    ) -> None:
        self._kube = kube
        self._caches = caches
        self._sources = sources
        self._site = sources.certificates.site
        self._clock = clock
        self._by_name: dict[str, Index[WatchedPart]] = {
            kind: cache.index(lambda watched: [watched.metadata.full_name])
            for kind, cache in caches.parts.items()
        }
        self._sets_in = caches.node_sets.index(lambda node_set: [node_set.metadata.namespace])

    async def gather(self, part: PartObject) -> DaemonFacts:
        """Read the facts about an object.

        Raises:
            KubeError: some were not read: try again.
        """
        match part:
            case ControllerObject():
                return await self._of_controller(part)
            case AccountingObject():
                return await self._of_accounting(part)
            case RestApiObject():
                return await self._of_rest_api(part)
            case LoginSetObject():
                return await self._of_login_set(part)
            case TokenObject():
                return await self._of_token(part)

    async def _of_controller(self, part: ControllerObject) -> ControllerFacts:
        meta, now, sources = part.metadata, self._clock.now(), self._sources
        reference = part.spec.accounting_ref
        watched = list(self._sets_in.get(meta.namespace))
        readable = [node_set.parsed for node_set in watched if node_set.parsed]
        node_sets = tuple(
            node_set for node_set in readable if node_set.spec.controller_ref.name == meta.name
        )
        in_force = await self._in_force(part)
        wanted = await self._data(
            "configmaps", meta.namespace, wanted_configuration_name(meta.name)
        )
        last = None
        if wanted is not None:  # one of its files names the write
            files = {name: content for name, content in wanted.items() if name != trying.WRITE_FILE}
            last = ConfigurationSet(files=files, write=wanted.get(trying.WRITE_FILE, UNNAMED_WRITE))
        maps = {
            name: await self._data("configmaps", meta.namespace, name) for name in config_maps(part)
        }
        pods: tuple[TrialPod, ...] = ()
        if not part.spec.external:
            reads_logs = _are_logs_needed(in_force, last, node_sets)
            pods = await self._pods(meta, "slurmctld", reads_logs=reads_logs)
        accounting_part = (
            self._find("Accounting", meta.namespace, reference.name) if reference else None
        )
        ring = await self._ring(meta.namespace, part.spec.slurm_key_ref)
        return ControllerFacts(
            part=part,
            site=self._site,
            now=now,
            accounting=accounting_part if isinstance(accounting_part, AccountingObject) else None,
            node_sets=node_sets,
            unreadable=tuple(
                Fault(f"NodeSet {node_set.metadata.name}", node_set.fault)
                for node_set in watched
                if node_set.parsed is None
            ),
            config_maps={name: data for name, data in maps.items() if data is not None},
            ring=ring,
            rotation=None if ring is None else await self._rotation(part, ring),
            used_secrets=self._used_secrets(part),
            in_force=in_force,
            last=last,
            partitions=sources.partitions.last(meta.uid),
            pods=pods,
            awaited=sources.awaited.get(meta.uid),
            awaited_nodes=sources.awaited_nodes.get(meta.uid),
        )

    async def _of_accounting(self, part: AccountingObject) -> AccountingFacts:
        meta, storage = part.metadata, part.spec.storage_config
        facts = AccountingFacts(
            part=part,
            site=self._site,
            now=self._clock.now(),
            ring=await self._ring(meta.namespace, part.spec.slurm_key_ref),
            used_secrets=self._used_secrets(part),
        )
        if part.spec.external or storage is None:
            return facts
        return replace(
            facts,
            password=await self._data("secrets", meta.namespace, storage.password_key_ref.name),
            in_force=await self._slurmdbd_conf(part),
            pods=await self._pods(meta, accounting.SLURMDBD, reads_logs=False),
            awaited=self._sources.awaited.get(meta.uid),
        )

    async def _of_rest_api(self, part: RestApiObject) -> RestApiFacts:
        namespace, now = part.metadata.namespace, self._clock.now()
        controller = self._controller(namespace, part.spec.controller_ref.name)
        facts = RestApiFacts(part=part, site=self._site, now=now, controller=controller)
        if controller is None:
            return facts
        return replace(
            facts,
            in_force=await self._in_force(controller),
            tls=await self._sources.certificates.read(part),
            ring=await self._ring(namespace, controller.spec.slurm_key_ref),
        )

    async def _of_login_set(self, part: LoginSetObject) -> LoginSetFacts:
        namespace = part.metadata.namespace
        controller = self._controller(namespace, part.spec.controller_ref.name)
        return LoginSetFacts(
            part=part,
            site=self._site,
            now=self._clock.now(),
            controller=controller,
            sssd_conf=await self._data("secrets", namespace, part.spec.sssd_conf_ref.name),
            ring=await self._ring(namespace, controller.spec.slurm_key_ref if controller else None),
        )

    async def _of_token(self, part: TokenObject) -> TokenFacts:
        namespace = part.metadata.namespace
        reference = part.spec.signing_key
        return TokenFacts(
            part=part,
            now=self._clock.now(),
            policy=self._sources.policy,
            signing=await self._data("secrets", namespace, reference.name) if reference else None,
            current=await self._data("secrets", namespace, token_secret(part).name),
        )

    # -- reading ----------------------------------------------------------------------------------

    async def _ring(self, namespace: str, key: KeyOfObject | None) -> KeyRing | None:
        if key is None:
            return None
        name = rings.ring_secret(key.name)
        secret = await secrets.get(self._kube, "secrets", namespace, name)
        reported = (
            controller.parsed.status.slurm_key_step
            for controller in self._caches.parts["Controller"].values()
            if controller.metadata.namespace == namespace
            and isinstance(controller.parsed, ControllerObject)
            and rotation.names_key(controller.parsed.spec.slurm_key_ref, key)
        )
        return KeyRing(
            key=key,
            steps=secret.values if secret else {},
            version=secret.metadata.resource_version if secret else "",
            reported=max(reported, default=0),
        )

    async def _rotation(self, part: ControllerObject, ring: KeyRing) -> RotationFacts:
        """Read what the next step of a Controller's key depends on; its users only while that matters."""
        requested = rotation.requested(ring.step, part.metadata.annotations)
        last = condition_of(part.status.conditions, KEY_CONDITION)
        in_force = last.message if last and last.status == "True" else ""
        if not rotation.is_open(requested.step, requested.wanted, in_force):
            return requested
        return await self._sources.key_rings.read_users(part.metadata.namespace, ring, requested)

    def _find(self, kind: str, namespace: str, name: str) -> PartObject | None:
        parts = self._by_name[kind].get(f"{namespace}/{name}")
        return parts[0].parsed if parts else None

    def _controller(self, namespace: str, name: str) -> ControllerObject | None:
        controller = self._find("Controller", namespace, name)
        return controller if isinstance(controller, ControllerObject) else None

    def _used_secrets(self, part: ControllerObject | AccountingObject) -> frozenset[str]:
        """Return the Secrets with keys that the daemons of other objects, or workers, may use."""
        namespace = part.metadata.namespace
        with_workers = {
            node_set.parsed.spec.controller_ref.name
            for node_set in self._sets_in.get(namespace)
            if node_set.parsed and node_set.status.ready_replicas
        }
        with_daemons = {
            owned.metadata.controller_key
            for cache in self._caches.workloads
            for owned in cache.values()
        }

        def has_users(other: WatchedPart) -> bool:
            if other.kind == "Controller" and other.metadata.name in with_workers:
                return True
            accepted = condition_of(other.status.conditions, "Accepted")
            is_accepted = accepted is not None and accepted.status == "True"
            is_used = is_accepted or other.metadata.key_as_owner in with_daemons
            return is_used and other.metadata.uid != part.metadata.uid

        return frozenset(
            key.secret
            for cache in self._caches.parts.values()
            for other in cache.values()
            if other.metadata.namespace == namespace
            and isinstance(other.parsed, ControllerObject | AccountingObject)
            and has_users(other)
            for key in naming.key_references(other.parsed.spec)
        )

    async def _in_force(self, part: ControllerObject) -> FilesInForce | None:
        name = configuration_name(part.metadata.name)
        config_map = await secrets.get(self._kube, "configmaps", part.metadata.namespace, name)
        if config_map is None or config_map.data is None or "slurm.conf" not in config_map.data:
            return None
        return FilesInForce.stored(config_map.data, _proven(config_map.metadata))

    async def _slurmdbd_conf(self, part: AccountingObject) -> FilesInForce | None:
        name, file = slurmdbd_conf_name(part.metadata.name), slurmdbd_conf.FILE
        secret = await secrets.get(self._kube, "secrets", part.metadata.namespace, name)
        conf = secrets.decode((secret.data or {}).get(file, "")) if secret else None
        if secret is None or not conf:
            return None
        files = {file: conf.decode(errors="replace")}
        return FilesInForce.stored(files, _proven(secret.metadata))

    async def _data(self, plural: str, namespace: str, name: str) -> Data | None:
        stored = await secrets.get(self._kube, plural, namespace, name)
        return None if stored is None else stored.data or {}

    async def _pods(
        self, owner: ObjectMetadata, app: str, *, reads_logs: bool
    ) -> tuple[TrialPod, ...]:
        labels = selecting(app, owner.name)
        pods = await read_pods(self._kube, owner.namespace, labels, most=_MOST_PODS)
        staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        return tuple([await self._trial_pod(pod, reads_log=reads_logs) for pod in staying])

    async def _trial_pod(self, pod: DaemonPod, *, reads_log: bool) -> TrialPod:
        name = pod.metadata.name
        if not reads_log or not pod.status.is_running(RECONFIGURE):
            return TrialPod(name=name, status=pod.status)
        where = paths.pod(pod.metadata.namespace, name) + "/log"
        params = {
            "container": RECONFIGURE,
            "tailLines": str(_MOST_LINES),
            "limitBytes": str(_MOST_BYTES),
        }
        try:
            async with asyncio.timeout(_LONGEST.total_seconds()):
                log = await self._kube.request("GET", where, params=params, accept="*/*")
        except (*PEER_ERRORS, TimeoutError) as error:
            trouble = f"the log of container {RECONFIGURE} of pod {name} was not read: {error}"
            return TrialPod(name=name, status=pod.status, trouble=trouble)
        return TrialPod(name=name, status=pod.status, log=log.decode(errors="replace"))


def _proven(metadata: ObjectMetadata) -> str:
    return metadata.annotations.get(PROVEN_ANNOTATION, "")


def _are_logs_needed(
    in_force: FilesInForce | None,
    last: ConfigurationSet | None,
    node_sets: Iterable[NodeSetObject],
) -> bool:
    """Check whether a log can have a verdict that matters: only on the files that were desired last, or on nodes."""
    if any(node_set.has_new_conf for node_set in node_sets):
        return True
    if last is None or last.write == UNNAMED_WRITE:
        return False
    return in_force is None or not in_force.is_proven_to_be(last)


async def read_pods(
    kube: KubeClient, namespace: str, labels: Mapping[str, str], *, most: int
) -> tuple[DaemonPod, ...]:
    """Return the pods with these labels, some of them if there are more."""
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    params = {"labelSelector": selector, "limit": str(most)}
    answer = await kube.request("GET", paths.collection("v1", "pods", namespace), params=params)
    return resource.decoded(_pods, "pods", answer).items
