"""Read what an object of the control plane names, and have its bodies made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from bridge.crd.fields import ObjectStruct
from bridge.crd.metadata import ObjectMetadata
from bridge.domain.faults import Fault, Refused, bounded
from bridge.kube import decode, errors, paths
from bridge.kube.cache import Cache
from bridge.kube.client import KubeClient
from bridge.process.clock import Clock
from cluster.configuration import refusals, slurmdbd_conf
from cluster.configuration.inputs import ConfigurationInputs, config_maps
from cluster.configuration.rendering import ConfigurationSet
from cluster.controlplane import deciding, trials
from cluster.controlplane.deciding import BodyMakers, DecidedConfiguration, FilesInForce, Made
from cluster.controlplane.key_rings import KeyRing, KeyRings
from cluster.controlplane.part import PartObject, WatchedPart
from cluster.controlplane.partition_readings import PartitionReadings
from cluster.controlplane.rest_tls import GatheredTls, RestCertificates
from cluster.controlplane.trials import TrialOutcome, Trials, TrialVerdict
from cluster.keys import naming, secrets, token_policy, tokens
from cluster.keys.naming import LEAST_BYTES, KeyUse, NamedKey
from cluster.keys.token_policy import TokenPolicy
from cluster.keys.tokens import KeptToken, WantedToken
from cluster.nodesets.nodeset import WatchedNodeSet
from cluster.nodesets.owned.tried import TriedConfs
from cluster.objects.accounting import AccountingObject
from cluster.objects.controller import ControllerObject
from cluster.objects.loginset import LoginSetObject
from cluster.objects.nodeset import NodeSetObject
from cluster.objects.parts import KeyOfObject
from cluster.objects.restapi import RestApiObject
from cluster.objects.token import TokenObject
from cluster.objects.workers import namesakes
from cluster.rendering.body import digest
from cluster.rendering.site import (
    configuration_name,
    slurmdbd_conf_name,
    wanted_configuration_name,
)
from cluster.rendering.token import token_body, token_faults, token_place


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredPart:
    """What there is to be for an object, as far as that can be said."""

    made: Made
    keys: tuple[NamedKey, ...] = ()
    configured: str | None = None
    """What is wrong with its configuration; "" if nothing is, None if it has none."""
    not_tried: str = ""
    """Why it is not known whether its daemon takes its configuration; "" if it is."""
    digest: str = ""
    """Of the configuration that is in force; "" if none was ever seen so."""
    kept: str = ""
    """Which partitions stay in it although nobody wants them any more, and why."""
    tries: str = ""
    """The tag of a configuration that a slurmctld which runs has not judged yet."""
    is_judged_soon: bool = False
    """Whether a daemon is about to judge something else: a slurmdbd.conf, or the nodes that workers are to register."""
    host_keys: LoginSetObject | None = None
    """Whose pods need host keys."""
    token: KeptToken | None = None
    """What its Secret is to hold."""
    tls: GatheredTls | None = None
    """With what a slurmrestd speaks TLS."""
    ring: KeyRing | None = None
    """Of the daemons of a Controller that has a key: which step of it they are to have."""

    @property
    def due(self) -> timedelta | None:
        """When there is something to do although nothing happens; None if it is not known."""
        if self.tries or self.is_judged_soon:
            return trials.LOOKS
        expiring = self.token or self.tls
        return expiring.due if expiring else None


class _Data(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    data: dict[str, str] | None = None


_data = msgspec.json.Decoder(_Data)


class PartGathering:
    """Reads the caches, and from the API server what none of them has."""

    def __init__(
        self,
        kube: KubeClient,
        parts: Mapping[str, Cache[WatchedPart]],
        node_sets: Cache[WatchedNodeSet],
        make: BodyMakers,
        *,
        key_rings: KeyRings,
        tokens: TokenPolicy,
        clock: Clock,
        partitions: PartitionReadings,
        tried: TriedConfs,
    ) -> None:
        self._kube = kube
        self._key_rings = key_rings
        self._tokens = tokens
        self._clock = clock
        self._partitions = partitions
        self._parts = parts
        self._bodies = make
        self.trials = Trials(kube, clock, tried)
        self.certificates = RestCertificates(kube, make.site, clock)
        self._by_name = {
            kind: cache.index(lambda each: [each.metadata.full_name])
            for kind, cache in parts.items()
        }
        self._sets_in = node_sets.index(lambda each: [each.metadata.namespace])

    async def of(self, part: PartObject) -> GatheredPart:
        """Return what there is to be for an object.

        Raises:
            KubeError: what it names was not read: look again.
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

    async def _of_controller(self, part: ControllerObject) -> GatheredPart:
        namespace = part.metadata.namespace
        ring = await self._ring(namespace, part.spec.slurm_key_ref)
        keys = naming.still_needed(naming.named(part.spec), _step(ring))
        wanted = part.spec.accounting_ref
        accounting = self._one("Accounting", namespace, wanted.name) if wanted else None
        maps = {name: await self._config_map(namespace, name) for name in config_maps(part)}
        in_force = await self._in_force(part)
        coming = await self._config_map(namespace, wanted_configuration_name(part.metadata.name))
        inputs: ConfigurationInputs | None = None
        files: ConfigurationSet
        decided: DecidedConfiguration | Refused
        if found := (*self._unreadable(namespace), *_different(part, accounting)):
            decided = Refused(found)
        else:
            inputs = ConfigurationInputs(
                controller=part,
                accounting=accounting if isinstance(accounting, AccountingObject) else None,
                node_sets=tuple(self._node_sets(part)),
                config_maps={name: data for name, data in maps.items() if data is not None},
            )
            decided = deciding.configuration(
                inputs,
                in_force.files.files if in_force else None,
                lambda names: self._partitions.latest(part.metadata, names),
                None if coming is None else trials.without_write(coming),
            )
        configured, kept = "", ""
        if isinstance(decided, Refused):
            configured = decided.text
            if in_force is None:
                return GatheredPart(made=(), keys=keys, configured=configured)
            files = in_force.files
        else:
            files, kept = decided.files, decided.kept
        if not part.spec.external:
            files = trials.as_written(files, coming or {}, self._clock.now())
        tried = await self._tried(part, files, in_force)
        written = refusals.of_controller(inputs) if inputs is not None else ()
        judged = deciding.judge(files, tried, in_force, deciding.SLURMCTLD, written)
        if isinstance(ring, Fault):
            made: Made = Refused((ring,))
        else:
            made = self._bodies.controller(part, judged.served, wanted=files, key_step=_step(ring))
        return GatheredPart(
            made=made,
            keys=keys,
            configured=configured or judged.refused,
            not_tried=judged.not_tried,
            digest=judged.digest,
            kept=kept,
            tries=judged.tries,
            is_judged_soon=await self.trials.try_nodes(part, files, self._node_sets(part)),
            ring=None if isinstance(ring, Fault) else ring,
        )

    async def _tried(
        self, part: ControllerObject, files: ConfigurationSet, in_force: FilesInForce | None
    ) -> TrialVerdict:
        """Return what slurmctld makes of files; that of another program is not asked."""
        if part.spec.external or (in_force is not None and in_force.is_proven_to_be(files)):
            return TrialVerdict(outcome=TrialOutcome.TAKEN)
        return await self.trials.of(part, files.tag)

    async def _of_accounting(self, part: AccountingObject) -> GatheredPart:
        ring = await self._ring(part.metadata.namespace, part.spec.slurm_key_ref)
        if isinstance(ring, Fault):
            return GatheredPart(made=Refused((ring,)))
        step = _step(ring)
        keys = naming.still_needed(naming.named(part.spec), step)
        storage = part.spec.storage_config
        if part.spec.external or storage is None:
            made = self._bodies.accounting(part, "", key_step=step)
            return GatheredPart(made=made, keys=keys)
        reference = storage.password_key_ref
        at = "spec.storageConfig.passwordKeyRef"
        secret = await self._secret(part.metadata.namespace, reference.name)
        if secret is None:
            text = (
                f"there is no Secret {reference.name}: create it with the password of the database"
            )
            return GatheredPart(made=Refused((Fault(f"{at}.name", text),)))
        password = secrets.text(secret, reference, at)
        if isinstance(password, Fault):
            return GatheredPart(made=Refused((password,)))
        made = self._bodies.accounting(part, password, key_step=step)
        if isinstance(made, Refused):
            return GatheredPart(made=made)
        wanted, written = slurmdbd_conf.file(part, password), slurmdbd_conf.written(part)
        in_force = await self._slurmdbd_conf(part)
        tried = await self.trials.at_start(part, wanted.tag)
        judged = deciding.judge(wanted, tried, in_force, deciding.SLURMDBD, written)
        return GatheredPart(
            made=self._bodies.accounting(part, password, served=judged.served, key_step=step),
            keys=keys,
            configured=judged.refused,
            not_tried=judged.not_tried,
            digest=judged.digest,
            is_judged_soon=bool(judged.tries),
        )

    async def _of_rest_api(self, part: RestApiObject) -> GatheredPart:
        """A RestApi has the configuration that is in force, not one that may come."""
        namespace, name = part.metadata.namespace, part.spec.controller_ref.name
        controller = self._one("Controller", namespace, name)
        if not isinstance(controller, ControllerObject):
            text = f"there is no Controller {name} in this namespace"
            return GatheredPart(made=Refused((Fault("spec.controllerRef.name", text),)))
        in_force = await self._in_force(controller)
        if in_force is None:
            text = f"Controller {name} has no configuration yet: see its conditions"
            return GatheredPart(made=Refused((Fault("spec.controllerRef.name", text),)))
        files = in_force.files
        tls = await self.certificates.of(part)
        if isinstance(tls, Refused):
            return GatheredPart(made=tls)
        ring = await self._ring(namespace, controller.spec.slurm_key_ref)
        if isinstance(ring, Fault):
            return GatheredPart(made=Refused((ring,)))
        presented = tls.presented if tls else None
        made = self._bodies.rest_api(part, controller, files, presented, key_step=_step(ring))
        return GatheredPart(made=made, tls=tls)

    async def _of_login_set(self, part: LoginSetObject) -> GatheredPart:
        namespace, name = part.metadata.namespace, part.spec.controller_ref.name
        controller = self._one("Controller", namespace, name)
        wrong: list[Fault] = []
        if not isinstance(controller, ControllerObject):
            text = f"there is no Controller {name} in this namespace"
            wrong.append(Fault("spec.controllerRef.name", text))
        reference = part.spec.sssd_conf_ref
        at = "spec.sssdConfRef"
        secret = await self._secret(namespace, reference.name)
        if secret is None:
            text = f"there is no Secret {reference.name}: create it with the configuration of sssd"
            conf: str | Fault = Fault(f"{at}.name", text)
        else:
            conf = secrets.text(secret, reference, at)
        if isinstance(conf, Fault):
            wrong.append(conf)
        if wrong or not isinstance(controller, ControllerObject):
            return GatheredPart(made=Refused(tuple(wrong)))
        ring = await self._ring(namespace, controller.spec.slurm_key_ref)
        if isinstance(ring, Fault):
            return GatheredPart(made=Refused((ring,)))
        made = self._bodies.login_set(
            part, controller, secrets=digest([conf]), key_step=_step(ring)
        )
        return GatheredPart(made=made, host_keys=part)

    async def _of_token(self, part: TokenObject) -> GatheredPart:
        """A token that will do stays, so that nothing is written until another one is due."""
        namespace, spec = part.metadata.namespace, part.spec
        lifetime_s = token_policy.lifetime_s(spec.lifetime)
        allowed = token_policy.faults(
            self._tokens, namespace=namespace, username=spec.username, lifetime_s=lifetime_s
        )
        wrong = bounded((*allowed, *token_faults(part)))
        key = None if wrong else await self._signing_key(part)
        if isinstance(key, Fault):
            wrong = (key,)
        if wrong or not isinstance(key, bytes):
            return GatheredPart(made=Refused(wrong))
        place = token_place(part)
        found = (await self._secret(namespace, place.name) or {}).get(place.key)
        wanted = WantedToken(user=spec.username, lifetime_s=lifetime_s, is_renewed=spec.refresh)
        there = (secrets.decoded(found or "") or b"").decode(errors="replace")
        kept = tokens.kept_or_signed(wanted, there, key, now=self._clock.now())
        return GatheredPart(made=(token_body(part, kept.token).body,), token=kept)

    async def _signing_key(self, part: TokenObject) -> bytes | Fault | None:
        spec = part.spec
        at, reference = "spec.jwtKeyRef", spec.jwt_key_ref
        if reference is None:
            at, reference = "spec.jwtHs256KeyRef", spec.jwt_hs256_key_ref
        if reference is None:
            return None
        secret = await self._secret(part.metadata.namespace, reference.name)
        if secret is None:
            text = f"there is no Secret {reference.name}: the Controller that names it makes it"
            return Fault(f"{at}.name", text)
        if reference.key not in secret:
            return Fault(f"{at}.key", f"Secret {reference.name} has no {reference.key}")
        key = secrets.decoded(secret[reference.key]) or b""
        least = LEAST_BYTES[KeyUse.TOKENS]
        if len(key) < least:
            text = f"expected at least {least} bytes in {reference.key} of Secret {reference.name}, found {len(key)}"
            return Fault(f"{at}.key", text)
        return key

    # -- what is read -----------------------------------------------------------------------------

    async def _ring(self, namespace: str, key: KeyOfObject | None) -> KeyRing | Fault | None:
        return None if key is None else await self._key_rings.of(namespace, key)

    def _one(self, kind: str, namespace: str, name: str) -> PartObject | None:
        found = self._by_name[kind].get(f"{namespace}/{name}")
        return found[0].whole if found else None

    def _node_sets(self, part: ControllerObject) -> Iterator[NodeSetObject]:
        """Return its NodeSets but for those that came after another one of the same names: they are told, and cost only themselves."""
        wholes = (each.whole for each in self._sets_in.get(part.metadata.namespace))
        found = [
            each for each in wholes if each and each.spec.controller_ref.name == part.metadata.name
        ]
        left_out = namesakes(found)
        yield from (each for each in found if each.metadata.uid not in left_out)

    def _unreadable(self, namespace: str) -> Iterator[Fault]:
        """Find NodeSets whose nodes we would leave out although their jobs may run."""
        for each in self._sets_in.get(namespace):
            if each.whole is None:
                yield Fault(f"NodeSet {each.metadata.name}", each.fault)

    async def _in_force(self, part: ControllerObject) -> FilesInForce | None:
        name = configuration_name(part.metadata.name)
        found = await self._found(part.metadata.namespace, "configmaps", name)
        if found is None or found.data is None or "slurm.conf" not in found.data:
            return None
        return FilesInForce.kept(found.data, found.metadata.annotations)

    async def _slurmdbd_conf(self, part: AccountingObject) -> FilesInForce | None:
        name, file = slurmdbd_conf_name(part.metadata.name), slurmdbd_conf.FILE
        found = await self._found(part.metadata.namespace, "secrets", name)
        kept = secrets.decoded((found.data or {}).get(file, "")) if found else None
        if found is None or not kept:
            return None
        return FilesInForce.kept({file: kept.decode(errors="replace")}, found.metadata.annotations)

    async def _config_map(self, namespace: str, name: str) -> Mapping[str, str] | None:
        return await self._read(namespace, "configmaps", name)

    async def _secret(self, namespace: str, name: str) -> Mapping[str, str] | None:
        return await self._read(namespace, "secrets", name)

    async def _read(self, namespace: str, plural: str, name: str) -> Mapping[str, str] | None:
        """Return an object's data; None if there is no such object."""
        found = await self._found(namespace, plural, name)
        return None if found is None else found.data or {}

    async def _found(self, namespace: str, plural: str, name: str) -> _Data | None:
        where = paths.collection("v1", plural, namespace)
        try:
            answer = await self._kube.request("GET", where + paths.of(name))
        except errors.NotFound:
            return None
        return decode.decoded(_data, f"{plural} {namespace}/{name}", answer)


def _step(ring: KeyRing | Fault | None) -> int:
    """Return the step that daemons are to have; that of the key itself while none is known."""
    return ring.step if isinstance(ring, KeyRing) else 0


def _different(part: ControllerObject, accounting: PartObject | None) -> Iterator[Fault]:
    if isinstance(accounting, AccountingObject):
        yield from naming.different(part.spec, accounting.spec)
