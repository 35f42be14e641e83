"""Reads what an object of the control plane refers to, and plans its bodies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from slurmoperator.configuration import refusals, slurmdbd_conf
from slurmoperator.configuration.inputs import ConfigurationInputs, config_maps
from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.daemons import deciding, trials
from slurmoperator.daemons.deciding import Bodies, BodyMakers, ConfigurationPlan, FilesInForce
from slurmoperator.daemons.key_rings import KeyRing, KeyRings
from slurmoperator.daemons.part import ControlPeers, PartCaches, PartObject
from slurmoperator.daemons.partition_readings import PartitionReadings
from slurmoperator.daemons.rest_tls import RestCertificates, TlsPlan
from slurmoperator.daemons.trials import TrialOutcome, Trials, TrialVerdict
from slurmoperator.keys import naming, secrets, token_policy, tokens
from slurmoperator.keys.naming import LEAST_BYTES, KeyReference, KeyUse
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.keys.tokens import SlurmToken, TokenRequest
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.parts import KeyOfObject
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.objects.token import TokenObject
from slurmoperator.objects.workers import namesakes
from slurmoperator.rendering.accounting import accounting_bodies
from slurmoperator.rendering.body import Body, digest
from slurmoperator.rendering.controller import controller_bodies
from slurmoperator.rendering.loginset import login_set_bodies
from slurmoperator.rendering.restapi import restapi_bodies
from slurmoperator.rendering.site import (
    configuration_name,
    slurmdbd_conf_name,
    wanted_configuration_name,
)
from slurmoperator.rendering.token import token_body, token_faults, token_secret
from slurmruntime.process.clock import Clock
from slurmruntime.values.faults import Fault, Refused, bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPlan:
    """The desired bodies of an object, and what is known of its configuration and keys."""

    bodies: Bodies | Refused
    keys: tuple[KeyReference, ...] = ()
    configured: str | None = None
    """What is wrong with its configuration; "" if nothing is, None if it has none."""
    not_tried: str = ""
    """Why it is unknown whether its daemon accepts the configuration; "" if it is known."""
    digest: str = ""
    """The digest of the configuration in force; "" if no daemon has been seen serving with one."""
    kept_partitions: str = ""
    """Which partitions stay configured although the spec no longer has them, and why."""
    pending_tag: str = ""
    """The tag of a configuration that a running slurmctld has not judged yet."""
    is_verdict_pending: bool = False
    """Whether a daemon is about to judge something else: a slurmdbd.conf, or the nodes that workers will register."""
    host_keys: LoginSetObject | None = None
    """The object itself, if its pods need host keys."""
    token: SlurmToken | None = None
    """The token for the Secret of a Token; None for other kinds."""
    tls: TlsPlan | None = None
    """The certificate of a slurmrestd; None if there is none."""
    ring: KeyRing | None = None
    """Of a Controller that has a key: with the step that its daemons get."""

    @property
    def due(self) -> timedelta | None:
        """When to reconcile again if no event comes first; None if it does not matter."""
        if self.pending_tag or self.is_verdict_pending:
            return trials.POLL_INTERVAL
        expiring = self.token or self.tls
        return expiring.due if expiring else None


class PartGathering:
    """Reads the caches and, for what they do not have, the API server."""

    def __init__(
        self,
        peers: ControlPeers,
        caches: PartCaches,
        make: BodyMakers,
        *,
        key_rings: KeyRings,
        tokens: TokenPolicy,
        partitions: PartitionReadings,
        clock: Clock,
    ) -> None:
        self._kube = kube = peers.kube
        self._key_rings = key_rings
        self._tokens = tokens
        self._clock = clock
        self._partitions = partitions
        self._site = make.site
        self.trials = Trials(kube, clock, peers.tried)
        self.certificates = RestCertificates(kube, make.site, clock)
        self._by_name = {
            kind: cache.index(lambda watched: [watched.metadata.full_name])
            for kind, cache in caches.parts.items()
        }
        self._sets_in = caches.node_sets.index(lambda node_set: [node_set.metadata.namespace])

    async def of(self, part: PartObject) -> PartPlan:
        """Return the plan for an object.

        Raises:
            KubeError: what it refers to was not read: try again.
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

    async def _of_controller(self, part: ControllerObject) -> PartPlan:
        namespace = part.metadata.namespace
        ring = await self._ring(namespace, part.spec.slurm_key_ref)
        keys = naming.still_needed(naming.key_references(part.spec), _step(ring))
        reference = part.spec.accounting_ref
        accounting = self._find_part("Accounting", namespace, reference.name) if reference else None
        maps = {name: await self._data("configmaps", namespace, name) for name in config_maps(part)}
        in_force = await self._in_force(part)
        last = await self._data(
            "configmaps", namespace, wanted_configuration_name(part.metadata.name)
        )
        inputs: ConfigurationInputs | None = None
        files: ConfigurationSet
        plan: ConfigurationPlan | Refused
        if blocking := (*self._unreadable(namespace), *_mismatches(part, accounting)):
            plan = Refused(blocking)
        else:
            inputs = ConfigurationInputs(
                controller=part,
                accounting=accounting if isinstance(accounting, AccountingObject) else None,
                node_sets=tuple(self._node_sets(part)),
                config_maps={name: data for name, data in maps.items() if data is not None},
            )
            plan = deciding.plan_configuration(
                inputs,
                in_force.files.files if in_force else None,
                lambda names: self._partitions.latest(part.metadata, names),
                None if last is None else trials.without_write(last),
            )
        configured, kept_partitions = "", ""
        if isinstance(plan, Refused):
            configured = plan.text
            if in_force is None:
                return PartPlan(bodies=(), keys=keys, configured=configured)
            files = in_force.files
        else:
            files, kept_partitions = plan.files, plan.kept_partitions
        if not part.spec.external:
            files = trials.name_write(files, last or {}, self._clock.now())
        trial = await self._try(part, files, in_force)
        user_lines = refusals.user_lines(inputs) if inputs is not None else ()
        verdict = deciding.judge(files, trial, in_force, deciding.SLURMCTLD, user_lines)
        if isinstance(ring, Fault):
            bodies: Bodies | Refused = Refused((ring,))
        else:
            served = verdict.served
            bodies = _raw(
                controller_bodies(
                    part,
                    served.files,
                    self._site,
                    wanted=files,
                    is_proven=served.is_proven,
                    key_step=_step(ring),
                )
            )
        return PartPlan(
            bodies=bodies,
            keys=keys,
            configured=configured or verdict.refused,
            not_tried=verdict.not_tried,
            digest=verdict.digest,
            kept_partitions=kept_partitions,
            pending_tag=verdict.pending_tag,
            is_verdict_pending=await self.trials.try_nodes(part, files, self._node_sets(part)),
            ring=None if isinstance(ring, Fault) else ring,
        )

    async def _try(
        self, part: ControllerObject, files: ConfigurationSet, in_force: FilesInForce | None
    ) -> TrialVerdict:
        """Return slurmctld's verdict on files; an external one is not asked."""
        if part.spec.external or (in_force is not None and in_force.is_proven_to_be(files)):
            return TrialVerdict(outcome=TrialOutcome.TAKEN)
        return await self.trials.slurmctld_verdict(part, files.tag)

    async def _of_accounting(self, part: AccountingObject) -> PartPlan:
        ring = await self._ring(part.metadata.namespace, part.spec.slurm_key_ref)
        if isinstance(ring, Fault):
            return _refused(ring)
        step = _step(ring)
        keys = naming.still_needed(naming.key_references(part.spec), step)
        storage = part.spec.storage_config
        if part.spec.external or storage is None:
            bodies = _raw(accounting_bodies(part, "", self._site, key_step=step))
            return PartPlan(bodies=bodies, keys=keys)
        at = "spec.storageConfig.passwordKeyRef"
        namespace, reference = part.metadata.namespace, storage.password_key_ref
        password = await self._text(namespace, reference, at, "database password")
        if isinstance(password, Fault):
            return _refused(password)
        bodies = _raw(accounting_bodies(part, password, self._site, key_step=step))
        if isinstance(bodies, Refused):
            return PartPlan(bodies=bodies)
        desired, user_lines = slurmdbd_conf.file(part, password), slurmdbd_conf.user_lines(part)
        in_force = await self._slurmdbd_conf(part)
        trial = await self.trials.slurmdbd_verdict(part, desired.tag)
        verdict = deciding.judge(desired, trial, in_force, deciding.SLURMDBD, user_lines)
        served = verdict.served
        in_force_bodies = accounting_bodies(
            part,
            password,
            self._site,
            in_force=served.files,
            is_proven=served.is_proven,
            key_step=step,
        )
        return PartPlan(
            bodies=_raw(in_force_bodies),
            keys=keys,
            configured=verdict.refused,
            not_tried=verdict.not_tried,
            digest=verdict.digest,
            is_verdict_pending=bool(verdict.pending_tag),
        )

    async def _of_rest_api(self, part: RestApiObject) -> PartPlan:
        """Return the plan of a RestApi: it gets the configuration in force, not one that is still tried."""
        namespace, name = part.metadata.namespace, part.spec.controller_ref.name
        controller = self._controller(namespace, name)
        if isinstance(controller, Fault):
            return _refused(controller)
        in_force = await self._in_force(controller)
        if in_force is None:
            text = f"Controller {name} has no configuration yet: see its conditions"
            return _refused(Fault("spec.controllerRef.name", text))
        tls = await self.certificates.of(part)
        if isinstance(tls, Refused):
            return PartPlan(bodies=tls)
        ring = await self._ring(namespace, controller.spec.slurm_key_ref)
        if isinstance(ring, Fault):
            return _refused(ring)
        presented, step = tls.presented if tls else None, _step(ring)
        bodies = restapi_bodies(
            part, controller, in_force.files, self._site, presented=presented, key_step=step
        )
        return PartPlan(bodies=_raw(bodies), tls=tls)

    async def _of_login_set(self, part: LoginSetObject) -> PartPlan:
        namespace, name = part.metadata.namespace, part.spec.controller_ref.name
        controller = self._controller(namespace, name)
        conf = await self._text(
            namespace, part.spec.sssd_conf_ref, "spec.sssdConfRef", "configuration of sssd"
        )
        if isinstance(controller, Fault) or isinstance(conf, Fault):
            return _refused(*(wrong for wrong in (controller, conf) if isinstance(wrong, Fault)))
        ring = await self._ring(namespace, controller.spec.slurm_key_ref)
        if isinstance(ring, Fault):
            return _refused(ring)
        bodies = login_set_bodies(
            part, controller, self._site, secrets=digest([conf]), key_step=_step(ring)
        )
        return PartPlan(bodies=_raw(bodies), host_keys=part)

    async def _of_token(self, part: TokenObject) -> PartPlan:
        """Return the plan of a Token: one that is still good stays, so that nothing is written until a new one is due."""
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
            return PartPlan(bodies=Refused(wrong))
        place = token_secret(part)
        encoded = (await self._data("secrets", namespace, place.name) or {}).get(place.key)
        request = TokenRequest(user=spec.username, lifetime_s=lifetime_s, is_renewed=spec.refresh)
        current = (secrets.decode(encoded or "") or b"").decode(errors="replace")
        signed = tokens.keep_or_sign(request, current, key, now=self._clock.now())
        return PartPlan(bodies=(token_body(part, signed.token).body,), token=signed)

    async def _signing_key(self, part: TokenObject) -> bytes | Fault | None:
        spec = part.spec
        at, reference = "spec.jwtKeyRef", spec.jwt_key_ref
        if reference is None:
            at, reference = "spec.jwtHs256KeyRef", spec.jwt_hs256_key_ref
        if reference is None:
            return None
        secret = await self._data("secrets", part.metadata.namespace, reference.name)
        if secret is None:
            text = f"there is no Secret {reference.name}: the Controller that names it creates it"
            return Fault(f"{at}.name", text)
        if reference.key not in secret:
            return Fault(f"{at}.key", f"Secret {reference.name} has no {reference.key}")
        key = secrets.decode(secret[reference.key]) or b""
        least = LEAST_BYTES[KeyUse.TOKENS]
        if len(key) < least:
            text = f"expected at least {least} bytes in {reference.key} of Secret {reference.name}, found {len(key)}"
            return Fault(f"{at}.key", text)
        return key

    # -- reading ----------------------------------------------------------------------------------

    async def _ring(self, namespace: str, key: KeyOfObject | None) -> KeyRing | Fault | None:
        return None if key is None else await self._key_rings.of(namespace, key)

    def _find_part(self, kind: str, namespace: str, name: str) -> PartObject | None:
        parts = self._by_name[kind].get(f"{namespace}/{name}")
        return parts[0].parsed if parts else None

    def _controller(self, namespace: str, name: str) -> ControllerObject | Fault:
        controller = self._find_part("Controller", namespace, name)
        if isinstance(controller, ControllerObject):
            return controller
        text = f"there is no Controller {name} in this namespace"
        return Fault("spec.controllerRef.name", text)

    def _node_sets(self, part: ControllerObject) -> Iterator[NodeSetObject]:
        """Yield its NodeSets, except those whose node names an older one has: their status says so, and the others go on."""
        readable = (watched.parsed for watched in self._sets_in.get(part.metadata.namespace))
        node_sets = [
            node_set
            for node_set in readable
            if node_set and node_set.spec.controller_ref.name == part.metadata.name
        ]
        left_out = namesakes(node_sets)
        yield from (node_set for node_set in node_sets if node_set.metadata.uid not in left_out)

    def _unreadable(self, namespace: str) -> Iterator[Fault]:
        """Yield faults of NodeSets that cannot be read: without them their nodes would go while jobs may run there."""
        for node_set in self._sets_in.get(namespace):
            if node_set.parsed is None:
                yield Fault(f"NodeSet {node_set.metadata.name}", node_set.fault)

    async def _in_force(self, part: ControllerObject) -> FilesInForce | None:
        name = configuration_name(part.metadata.name)
        config_map = await secrets.get(self._kube, "configmaps", part.metadata.namespace, name)
        if config_map is None or config_map.data is None or "slurm.conf" not in config_map.data:
            return None
        return FilesInForce.from_object(config_map.data, config_map.metadata.annotations)

    async def _slurmdbd_conf(self, part: AccountingObject) -> FilesInForce | None:
        name, file = slurmdbd_conf_name(part.metadata.name), slurmdbd_conf.FILE
        secret = await secrets.get(self._kube, "secrets", part.metadata.namespace, name)
        conf = secrets.decode((secret.data or {}).get(file, "")) if secret else None
        if secret is None or not conf:
            return None
        files = {file: conf.decode(errors="replace")}
        return FilesInForce.from_object(files, secret.metadata.annotations)

    async def _data(self, plural: str, namespace: str, name: str) -> Mapping[str, str] | None:
        stored = await secrets.get(self._kube, plural, namespace, name)
        return None if stored is None else stored.data or {}

    async def _text(
        self, namespace: str, reference: KeyOfObject, at: str, content: str
    ) -> str | Fault:
        """Return the text in a Secret, or what is wrong with it: it does not exist, or has other content."""
        secret = await self._data("secrets", namespace, reference.name)
        if secret is None:
            text = f"there is no Secret {reference.name}: create it with the {content}"
            return Fault(f"{at}.name", text)
        return secrets.text(secret, reference, at)


def _raw(rendered: tuple[Body, ...] | Refused) -> Bodies | Refused:
    return rendered if isinstance(rendered, Refused) else tuple(body.body for body in rendered)


def _refused(*faults: Fault) -> PartPlan:
    return PartPlan(bodies=Refused(faults))


def _step(ring: KeyRing | Fault | None) -> int:
    """Return the step that daemons get; 0, the key itself, if there is no ring."""
    return ring.step if isinstance(ring, KeyRing) else 0


def _mismatches(part: ControllerObject, accounting: PartObject | None) -> Iterator[Fault]:
    if isinstance(accounting, AccountingObject):
        yield from naming.mismatches(part.spec, accounting.spec)
