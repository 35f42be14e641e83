"""Plans what an object of the control plane gets: pure, from the facts that one look has read.

Whatever is wrong with the facts is raised as a refusal where it is seen, and caught in `plan` only.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from slurmoperator.configuration import changes, refusals, slurmdbd_conf
from slurmoperator.configuration.changes import ConfigurationPlan
from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.daemons import rest_tls, trials
from slurmoperator.daemons.situation import (
    AccountingFacts,
    ControllerFacts,
    DaemonFacts,
    Data,
    FilesVerdict,
    LoginSetFacts,
    PartPlan,
    RestApiFacts,
    TokenFacts,
)
from slurmoperator.keys import naming, rotation, secrets, token_policy, tokens
from slurmoperator.keys.naming import LEAST_BYTES, KeyReference, KeyUse
from slurmoperator.keys.rotation import RotationDecision
from slurmoperator.keys.tokens import TokenRequest
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.objects.parts import KeyOfObject
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.objects.workers import namesakes
from slurmoperator.rendering.accounting import accounting_bodies
from slurmoperator.rendering.body import digest
from slurmoperator.rendering.controller import controller_bodies
from slurmoperator.rendering.leftovers import leftovers
from slurmoperator.rendering.loginset import login_set_bodies
from slurmoperator.rendering.restapi import restapi_bodies
from slurmoperator.rendering.token import token_body, token_faults, token_secret
from slurmruntime.values.faults import Fault, Refusal, require_none

_NEXT: Final = timedelta(seconds=1)
_WAITING: Final = timedelta(seconds=15)
"""When the key is looked at again: after a step, and while some daemon has another one."""


def plan(facts: DaemonFacts) -> PartPlan:
    """Return what an object gets; the same for the same facts.

    While a configuration is refused, it is not known which objects its change would remove, so none is unwanted.
    """
    try:
        kind, part_plan = _plan(facts)
    except Refusal as refusal:
        return PartPlan(refused=refusal.text, is_blocked=True)
    if part_plan.is_blocked or part_plan.configured:
        return part_plan
    unwanted = leftovers(kind, facts.part.metadata, part_plan.bodies)
    return replace(part_plan, unwanted=unwanted)


def _plan(facts: DaemonFacts) -> tuple[str, PartPlan]:
    match facts:
        case ControllerFacts():
            return "Controller", _of_controller(facts)
        case AccountingFacts():
            return "Accounting", _of_accounting(facts)
        case RestApiFacts():
            return "RestApi", _of_rest_api(facts)
        case LoginSetFacts():
            return "LoginSet", _of_login_set(facts)
        case TokenFacts():
            return "Token", _of_token(facts)


def _of_controller(facts: ControllerFacts) -> PartPlan:
    """Return the plan of a Controller. Its configuration is judged and reported even if its daemons may get no key."""
    part = facts.part
    left_out = namesakes(facts.node_sets)
    # Those whose node names an older one has are left out: their status says so, and the others go on.
    node_sets = tuple(
        node_set for node_set in facts.node_sets if node_set.metadata.uid not in left_out
    )
    inputs = ConfigurationInputs(
        controller=part,
        accounting=facts.accounting,
        node_sets=node_sets,
        config_maps=facts.config_maps,
    )
    blocking = _blocking(facts)
    configuration = (
        ConfigurationPlan(refused=Refusal(*blocking).text)
        if blocking
        else changes.plan_change(
            inputs,
            facts.in_force.files.files if facts.in_force else None,
            facts.partitions,
            None if facts.last is None else facts.last.files,
        )
    )
    part_plan = PartPlan(
        is_blocked=True,
        configured=configuration.refused,
        kept_partitions=configuration.kept_partitions,
        follow=configuration.follow,
    )
    files = configuration.files or (facts.in_force.files if facts.in_force else None)
    if files is None:
        return part_plan
    user_lines = () if blocking else refusals.user_lines(inputs)
    verdict = trials.of_slurmctld(facts, files, node_sets, user_lines)
    configured = configuration.refused or verdict.refused
    part_plan = replace(part_plan, configured=configured, verdict=verdict)
    try:
        step = rotation.usable_step(facts.ring)
    except Refusal as refusal:
        return replace(part_plan, refused=refusal.text)
    keys = naming.still_needed(naming.key_references(part.spec), step)
    key = None if facts.rotation is None else rotation.decide(facts.rotation)
    rendered = controller_bodies(
        part,
        verdict.served.files,
        facts.site,
        wanted=verdict.desired,
        is_proven=verdict.served.is_proven,
        key_step=step,
    )
    return replace(
        part_plan,
        is_blocked=False,
        bodies=rendered,
        keys=keys,
        are_keys_used=_are_used(keys, facts.used_secrets),
        ring=facts.ring,
        rotation=key,
        due=_due(facts, verdict, key),
    )


def _due(
    facts: ControllerFacts, verdict: FilesVerdict, key: RotationDecision | None
) -> timedelta | None:
    """Return when to look at a Controller again; the status with the step of its key is written only after this look."""
    if verdict.is_pending:
        return trials.POLL_INTERVAL
    if key is None or (key.writes is None and key.reason != "Waiting"):
        return None
    is_reported = facts.ring is not None and facts.part.status.slurm_key_step == facts.ring.step
    return _WAITING if is_reported and key.writes is None else _NEXT


def _blocking(facts: ControllerFacts) -> tuple[Fault, ...]:
    if facts.accounting is None:
        return facts.unreadable
    mismatches = naming.mismatches(facts.part.spec, facts.accounting.spec)
    return (*facts.unreadable, *mismatches)


def _of_accounting(facts: AccountingFacts) -> PartPlan:
    part, site = facts.part, facts.site
    step = rotation.usable_step(facts.ring)
    keys = naming.still_needed(naming.key_references(part.spec), step)
    part_plan = PartPlan(keys=keys, are_keys_used=_are_used(keys, facts.used_secrets))
    storage = part.spec.storage_config
    if part.spec.external or storage is None:
        return replace(part_plan, bodies=accounting_bodies(part, "", site, key_step=step))
    reference, at = storage.password_key_ref, "spec.storageConfig.passwordKeyRef"
    password = _text(facts.password, reference, at, "database password")
    desired = slurmdbd_conf.file(part, password)
    verdict = trials.of_slurmdbd(facts, desired, slurmdbd_conf.user_lines(part))
    rendered = accounting_bodies(
        part,
        password,
        site,
        in_force=verdict.served.files,
        is_proven=verdict.served.is_proven,
        key_step=step,
    )
    return replace(
        part_plan,
        bodies=rendered,
        configured=verdict.refused,
        verdict=verdict,
        due=trials.POLL_INTERVAL if verdict.is_pending else None,
    )


def _of_rest_api(facts: RestApiFacts) -> PartPlan:
    part, controller = facts.part, _controller(facts.part, facts.controller)
    if facts.in_force is None:
        text = f"Controller {controller.metadata.name} has no configuration yet: see its conditions"
        raise Refusal(Fault("spec.controllerRef.name", text))
    tls = None
    if facts.tls is not None:
        tls = rest_tls.plan_tls(part, facts.tls, facts.site, facts.now)
    rendered = restapi_bodies(
        part,
        controller,
        facts.in_force.files,
        facts.site,
        presented=tls.presented if tls else None,
        key_step=rotation.usable_step(facts.ring),
    )
    return PartPlan(bodies=rendered, tls=tls, due=tls.due if tls else None)


def _of_login_set(facts: LoginSetFacts) -> PartPlan:
    part = facts.part
    missing = [] if facts.controller else [_no_controller(part)]
    reference, at = part.spec.sssd_conf_ref, "spec.sssdConfRef"
    try:
        conf = _text(facts.sssd_conf, reference, at, "configuration of sssd")
    except Refusal as refusal:
        raise Refusal(*missing, *refusal.faults) from refusal
    controller = _controller(part, facts.controller)
    rendered = login_set_bodies(
        part,
        controller,
        facts.site,
        secrets=digest([conf]),
        key_step=rotation.usable_step(facts.ring),
    )
    return PartPlan(bodies=rendered, host_keys=part)


def _of_token(facts: TokenFacts) -> PartPlan:
    """Return the plan of a Token: one that is still good stays, so that nothing is written until a new one is due."""
    part, spec = facts.part, facts.part.spec
    lifetime_s = token_policy.lifetime_s(spec.lifetime)
    namespace, user = part.metadata.namespace, spec.username
    allowed = token_policy.faults(
        facts.policy, namespace=namespace, username=user, lifetime_s=lifetime_s
    )
    require_none((*allowed, *token_faults(part)))
    key = _signing_key(facts)
    encoded = (facts.current or {}).get(token_secret(part).key)
    current = (secrets.decode(encoded or "") or b"").decode(errors="replace")
    request = TokenRequest(user=user, lifetime_s=lifetime_s, is_renewed=spec.refresh)
    signed = tokens.keep_or_sign(request, current, key, now=facts.now)
    return PartPlan(bodies=(token_body(part, signed.token),), token=signed, due=signed.due)


def _signing_key(facts: TokenFacts) -> bytes:
    spec = facts.part.spec
    at = "spec.jwtKeyRef" if spec.jwt_key_ref is not None else "spec.jwtHs256KeyRef"
    reference = spec.signing_key
    if reference is None:
        raise Refusal(Fault(at, "expected the Secret with the key that signs the token"))
    if facts.signing is None:
        text = f"there is no Secret {reference.name}: the Controller that names it creates it"
        raise Refusal(Fault(f"{at}.name", text))
    if reference.key not in facts.signing:
        raise Refusal(Fault(f"{at}.key", f"Secret {reference.name} has no {reference.key}"))
    key = secrets.decode(facts.signing[reference.key]) or b""
    least = LEAST_BYTES[KeyUse.TOKENS]
    if len(key) < least:
        text = f"expected at least {least} bytes in {reference.key} of Secret {reference.name}, found {len(key)}"
        raise Refusal(Fault(f"{at}.key", text))
    return key


def _are_used(keys: tuple[KeyReference, ...], used_secrets: frozenset[str]) -> bool:
    return any(key.secret in used_secrets for key in keys)


def _controller(
    part: RestApiObject | LoginSetObject, controller: ControllerObject | None
) -> ControllerObject:
    if controller is None:
        raise Refusal(_no_controller(part))
    return controller


def _no_controller(part: RestApiObject | LoginSetObject) -> Fault:
    text = f"there is no Controller {part.spec.controller_ref.name} in this namespace"
    return Fault("spec.controllerRef.name", text)


def _text(secret: Data | None, reference: KeyOfObject, at: str, content: str) -> str:
    if secret is None:
        text = f"there is no Secret {reference.name}: create it with the {content}"
        raise Refusal(Fault(f"{at}.name", text))
    return secrets.text(secret, reference, at)
