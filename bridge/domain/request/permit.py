"""Apply a rule to a request: decide the Slurm user and everything that could give an advantage.

The decision is made on the effective request, including the owners' annotations, before every
submit; the webhook makes it early, for the pod alone. Nothing that a user writes becomes a Slurm
user, group or account except through a rule.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bridge.domain.model import placeholder
from bridge.domain.request import overrides
from bridge.domain.request.overrides import Overrides
from bridge.domain.request.rules import Choice, Patterns, Range, Requester, Rule
from slurmruntime.values.faults import Fault, Refusal

PATH = "policy"
"""The path of faults that no field of the object causes."""

_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
"""What a template may expand to. Not a number: Slurm reads one as a uid, and anyone may create a
namespace named 0."""
_ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_LICENSE_END = re.compile(r"[:@=]")
_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request, as far as rules examine it."""

    overrides: Overrides
    deadline_s: int | None = None
    """The pod's `activeDeadlineSeconds`: the time limit unless an annotation sets another."""
    node_choices: tuple[str, ...] = ()
    """Paths that choose nodes, besides `constraints`."""
    paths: Mapping[str, str] = field(default_factory=dict)
    """Where the object has the fields of `overrides`, by their names; a pod has them in annotations."""

    def path(self, name: str) -> str:
        """Return where the object has a field, for faults."""
        return self.paths.get(name) or overrides.path(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """What is sent to Slurm; "" and None leave a field to Slurm."""

    requester: str
    rule: str
    user: str
    group: str
    account: str = ""
    partition: str = ""
    qos: str = ""
    reservation: str = ""
    priority: int | None = None
    nice: int | None = None
    time_limit_max_min: int | None = None
    working_directory: str = ""
    """Of a batch job that names none."""


def decide(
    rule: Rule,
    ask: Ask,
    *,
    requester: Requester,
    namespace: str,
    operators: frozenset[str] = frozenset(),
) -> Permit:
    """Permit the request, if the rule allows all of it.

    No rule can result in root or one of `operators`: SlurmUser's name and uid, as far as they are
    known. Slurm would refuse such a job nothing.

    Raises:
        Refusal: with a fault for everything the rule does not allow, which names what it would allow.
    """
    asked = ask.overrides
    faults: list[Fault] = []
    known = {"namespace": namespace, "user": requester.user}
    reserved = placeholder.ROOT | {operator.lower() for operator in operators}
    user = _named(rule, "user", known, faults, reserved)
    if user and placeholder.same_user(user) in reserved:
        faults.append(Fault(PATH, f"refused: {rule.source} makes {user!r} the Slurm user"))
        user = ""
    known["slurm_user"] = user
    group = _named(rule, "group", known, faults, reserved) if user else ""
    account = _account(rule, known, faults) if user else ""
    faults += _others_name(rule, ask.path("user-id"), asked.user_id, user)
    faults += _others_name(rule, ask.path("group-id"), asked.group_id, group)
    choices = {
        "account": Choice(default=account, allowed=rule.account.allowed),
        "partition": rule.partition,
        "qos": rule.qos,
        "reservation": rule.reservation,
    }
    for name, choice in choices.items():
        faults += _not_allowed(rule, ask.path(name), getattr(asked, name), choice)
    faults += _out_of_range(rule, ask.path("priority"), asked.priority, rule.priority)
    faults += _out_of_range(rule, ask.path("nice"), asked.nice, rule.nice)
    faults += _too_long(rule, ask)
    faults += _not_shared(rule, ask)
    if faults:
        raise Refusal(*faults)
    return Permit(
        requester=requester.user,
        rule=rule.name,
        user=user,
        group=group,
        account=asked.account or account,
        partition=asked.partition or rule.partition.default,
        qos=asked.qos or rule.qos.default,
        reservation=asked.reservation or rule.reservation.default,
        priority=asked.priority,
        nice=asked.nice,
        time_limit_max_min=rule.time_limit_max_min,
        working_directory=_filled(rule.working_directory, known),
    )


def node_choices(*, has_selector: bool, has_terms: bool) -> tuple[str, ...]:
    """Return the paths in a pod's spec that choose nodes."""
    paths = {
        "spec.nodeSelector": has_selector,
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution": has_terms,
    }
    return tuple(path for path, is_set in paths.items() if is_set)


def unknown_placeholders(template: str, known: frozenset[str]) -> tuple[str, ...]:
    """Return the names in braces that mean nothing."""
    return tuple(name for name in _PLACEHOLDER.findall(template) if name not in known)


def _named(
    rule: Rule,
    what: Literal["user", "group"],
    known: Mapping[str, str],
    faults: list[Fault],
    reserved: frozenset[str],
) -> str:
    """Return the Slurm user or group; add a fault and return "" if there is none."""
    template, table = rule.user, rule.user_table
    if what == "group":
        template, table = rule.group, rule.group_table
    text = _filled(template, known)
    if table:
        if text not in table:
            faults.append(Fault(PATH, f"refused: {rule.source} has no Slurm {what} for {text!r}"))
        return table.get(text, "")
    is_ours = text in (template, known.get("slurm_user"))
    spellings = {text, text.lower()}
    is_reserved = bool(spellings & reserved) or any(map(rule.reserved.match, spellings))
    if not is_ours and (_NAME.fullmatch(text) is None or is_reserved):
        faults.append(
            Fault(PATH, f"refused: {rule.source} makes {text[:_SHOWN]!r} the Slurm {what}")
        )
        return ""
    return text


def _account(rule: Rule, known: Mapping[str, str], faults: list[Fault]) -> str:
    template = rule.account.default
    text = _filled(template, known)
    is_ours = text in (template, known["slurm_user"])
    if not is_ours and _ACCOUNT.fullmatch(text) is None:
        faults.append(Fault(PATH, f"refused: {rule.source} makes {text[:_SHOWN]!r} the account"))
    return text


def _filled(template: str, known: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: known.get(match[1], ""), template)


def _others_name(rule: Rule, path: str, asked: str | None, granted: str) -> Iterator[Fault]:
    if asked is not None and asked != granted:
        yield Fault(path, f"expected {granted or 'none'} ({rule.source}), found {asked!r}")


def _not_allowed(rule: Rule, path: str, asked: str | None, choice: Choice) -> Iterator[Fault]:
    """Check each of several names separated by commas; the default may always be asked for."""
    if asked is None or choice.is_open or asked == choice.default:
        return
    refused = [
        part
        for part in asked.split(",")
        if part not in choice.default.split(",") and not choice.allowed.match(part)
    ]
    if refused:
        accepted = ", ".join(filter(None, dict.fromkeys((choice.default, *choice.allowed.texts))))
        expected = f"expected {accepted}" if accepted else "refused: users may not set it"
        yield Fault(path, f"{expected} ({rule.source}), found {','.join(refused)!r}")


def _out_of_range(
    rule: Rule, path: str, asked: int | None, allowed: Range | None
) -> Iterator[Fault]:
    if asked is None:
        return
    if allowed is None:
        yield Fault(path, f"refused: users may not set it ({rule.source}), found {asked}")
    elif not allowed.least <= asked <= allowed.most:
        expected = f"expected {allowed.least} to {allowed.most}"
        yield Fault(path, f"{expected} ({rule.source}), found {asked}")


def _too_long(rule: Rule, ask: Ask) -> Iterator[Fault]:
    most = rule.time_limit_max_min
    if most is None:
        return
    if ask.overrides.time_limit_min is not None:
        path, asked_min = ask.path("timelimit"), ask.overrides.time_limit_min
    elif ask.deadline_s is not None:
        path, asked_min = "spec.activeDeadlineSeconds", -(-ask.deadline_s // 60)
    else:
        return
    if asked_min > most:
        yield Fault(path, f"expected at most {most} minutes ({rule.source}), found {asked_min}")


def _not_shared(rule: Rule, ask: Ask) -> Iterator[Fault]:
    asked = ask.overrides
    if asked.exclusive and not rule.exclusive:
        yield Fault(ask.path("exclusive"), f"refused: nodes are shared ({rule.source})")
    if not rule.node_choice:
        expression = (ask.path("constraints"),) if asked.constraints else ()
        for path in (*expression, *ask.node_choices):
            yield Fault(path, f"refused: users may not choose nodes ({rule.source})")
    if asked.licenses:
        yield from _licenses(rule, ask.path("licenses"), asked.licenses)


def _licenses(rule: Rule, path: str, asked: str) -> Iterator[Fault]:
    parts = re.split(r"[,;|&+()]", asked)
    refused = [part for part in parts if part and not _may_license(rule.licenses, part)]
    if refused:
        accepted = ", ".join(rule.licenses.texts)
        expected = f"expected {accepted}" if accepted else "refused: users may not set it"
        yield Fault(path, f"{expected} ({rule.source}), found {','.join(refused)!r}")


def _may_license(allowed: Patterns, part: str) -> bool:
    """Check one licence: `matlab@server:2` is allowed as `matlab` or as `matlab@server`."""
    return any(
        allowed.match(name) for name in (_LICENSE_END.split(part)[0], part.partition(":")[0])
    )
