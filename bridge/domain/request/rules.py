"""Who may ask Slurm for what: the administrator's rules, of which the first that matches a pod holds.

A rule matches by where the pod is and by who made it. The webhook knows who, but not the labels of the pod's namespace; the
extender knows those, but not the groups of who made the pod. So the webhook names the rules that match as far as it can see
(`candidates`), and the extender takes the first of them that holds (`holding`). What a rule then allows:
`bridge.domain.request.permit`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

SERVICE_ACCOUNT = "system:serviceaccount:"
"""What the API server puts before `namespace:name`,
<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#service-account-tokens>."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """Who made a pod, as the API server has authenticated them."""

    user: str = ""
    """"" where nobody has recorded it."""
    groups: Sequence[str] | None = None
    """None where nobody knows them any more."""

    @property
    def service_account(self) -> str:
        """`namespace/name`; "" for anybody else."""
        namespace, _, name = self.user.removeprefix(SERVICE_ACCOUNT).partition(":")
        return f"{namespace}/{name}" if self.user.startswith(SERVICE_ACCOUNT) else ""


class Patterns:
    """Names, in which `*` and `?` match: compiled once, asked for every pod."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = tuple(texts)
        self._exact = frozenset(text for text in self.texts if not set("*?") & set(text))
        globs = "|".join(_regular(text) for text in self.texts if text not in self._exact)
        self._globs = re.compile(globs, re.DOTALL) if globs else None

    def __bool__(self) -> bool:
        """There are some; none at all usually means that anything matches."""
        return bool(self.texts)

    def match(self, name: str) -> bool:
        """Whether one of them is the name, all of it and in this case."""
        return name in self._exact or bool(self._globs and self._globs.fullmatch(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A field of which users may choose the value."""

    default: str = ""
    """What is asked for where the user says nothing; "" leaves it to Slurm. May always be asked for."""
    allowed: Patterns = field(default_factory=Patterns)
    """What else may be asked for; nothing, if it is empty."""

    @property
    def is_open(self) -> bool:
        """Anything may be asked for."""
        return "*" in self.allowed.texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A number that users may choose, both ends included."""

    least: int
    most: int


def _anything() -> Choice:
    return Choice(allowed=Patterns("*"))


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Whom it is for, whom their jobs run as in Slurm, and what they may ask of it."""

    name: str
    source: str
    """Where it stands, for people who are refused: `policy rule physics`."""

    namespaces: Patterns = field(default_factory=Patterns)
    """Where, if any are given; and"""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    """the pod's namespace has all of these; and"""
    users: Patterns = field(default_factory=Patterns)
    """who, if any of these three are given: one of these users,"""
    groups: Patterns = field(default_factory=Patterns)
    """or somebody in one of these groups,"""
    service_accounts: Patterns = field(default_factory=Patterns)
    """or one of these, `namespace/name`."""

    user: str
    """A template: `{namespace}`, `{user}` (the requester's name in Kubernetes)."""
    user_table: Mapping[str, str] = field(default_factory=dict)
    """If not empty, what `user` amounts to is looked up here."""
    group: str = "{slurm_user}"
    """A template too, with `{slurm_user}` besides."""
    group_table: Mapping[str, str] = field(default_factory=dict)

    account: Choice = field(default_factory=Choice)
    """Its default is a template, as `group` is."""
    partition: Choice = field(default_factory=_anything)
    qos: Choice = field(default_factory=Choice)
    reservation: Choice = field(default_factory=Choice)
    priority: Range | None = None
    """None: may not be asked for."""
    nice: Range | None = None
    time_limit_max_min: int | None = None
    """No job gets more minutes; None: no cap of ours."""
    exclusive: bool = True
    """Whether whole nodes may be asked for,"""
    node_choice: bool = True
    """nodes or features be chosen,"""
    licenses: Patterns = field(default_factory=lambda: Patterns("*"))
    """and which licences be asked for."""

    def is_for(self, requester: Requester) -> bool:
        """Whether the rule is for them, wherever their pod is."""
        if not (self.users or self.groups or self.service_accounts):
            return True
        return (
            self.users.match(requester.user)
            or any(map(self.groups.match, requester.groups or ()))
            or self.service_accounts.match(requester.service_account)
        )

    def is_in(self, namespace: str) -> bool:
        """Whether the rule holds there, going by the name alone."""
        return not self.namespaces or self.namespaces.match(namespace)

    def is_under(self, labels: Mapping[str, str]) -> bool:
        """Whether the rule holds in a namespace with these labels."""
        return all(labels.get(key) == value for key, value in self.namespace_labels.items())


@dataclass(frozen=True)
class Policy:
    """All rules in their order."""

    rules: tuple[Rule, ...] = ()
    creator_annotation: str = ""
    """The annotation in which this cluster records who has created an object; "": it does not."""
    controllers: Patterns = field(default_factory=Patterns)
    """Users that create pods on behalf of others: the recorded creator of the owner counts, not they."""
    absence: str = "policy.rules has none"
    """Why there is no rule to match, for people who are refused."""

    @cached_property
    def by_name(self) -> Mapping[str, Rule]:
        """The rules by their names."""
        return {rule.name: rule for rule in self.rules}

    @cached_property
    def asks_for_labels(self) -> bool:
        """Whether it matters which labels a namespace has."""
        return any(rule.namespace_labels for rule in self.rules)

    def acts_for_others(self, requester: Requester) -> bool:
        """Whether the pod's real author is to be looked for among the creators of its owners."""
        return bool(self.creator_annotation) and self.controllers.match(requester.user)

    def candidates(self, requester: Requester, namespace: str) -> tuple[Rule, ...]:
        """Name the rules of which one holds whatever labels the namespace has: the last of them, or none, needs no label."""
        found: list[Rule] = []
        for rule in self.rules:
            if rule.is_in(namespace) and rule.is_for(requester):
                found.append(rule)
                if not rule.namespace_labels:
                    break
        return tuple(found)

    def holding(
        self,
        requester: Requester,
        namespace: str,
        labels: Mapping[str, str],
        *,
        named: Sequence[str] | None = None,
    ) -> Rule | None:
        """Find the rule that holds for a pod that has been let in.

        Args:
            requester: who made it.
            namespace: where it is.
            labels: the namespace's.
            named: the candidates that the webhook has named, the only ones that are looked at then; as they are by now,
                except that somebody is believed to be still in a rule's group. None: nobody has named any.
        """
        rules = self.rules if named is None else filter(None, map(self.by_name.get, named))
        for rule in rules:
            if not (rule.is_in(namespace) and rule.is_under(labels)):
                continue
            if rule.is_for(requester) or (named is not None and rule.groups):
                return rule
            if rule.groups and requester.groups is None:
                return None  # it may be theirs: a later and wider one is not for them then
        return None

    def nobody(
        self, requester: Requester, namespace: str, *, named: Sequence[str] | None = None
    ) -> str:
        """Say why nothing is allowed to somebody for whom no rule holds."""
        if not self.rules:
            return (
                f"refused: the administrator has not said whose Slurm jobs pods are: {self.absence}"
            )
        if named and not any(name in self.by_name for name in named):
            return (
                f"refused: policy rule {', '.join(named)}, which let this pod in, is no longer there; "
                "create the pod anew"
            )
        who = f"user {requester.user!r}" if requester.user else "an unknown user"
        return (
            f"refused: no policy rule lets {who} have Slurm jobs in namespace {namespace}; "
            "ask the administrator of slurm-bridge (policy.rules)"
        )


def _regular(glob: str) -> str:
    return re.escape(glob).replace(r"\*", ".*").replace(r"\?", ".")
