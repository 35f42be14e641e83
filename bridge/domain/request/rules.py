"""Who may ask Slurm for what: the administrator's rules; the first that matches applies.

A rule matches by what an object is, where it is and who created it. The webhook knows the creator,
but not the labels of the pod's namespace; the extender knows the labels, but not the creator's
groups. So the webhook names the rules that match as far as it can see (`candidates`), and the
extender takes the first of them that applies (`holding`). `bridge.domain.request.permit` decides
what a rule allows.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

SERVICE_ACCOUNT = "system:serviceaccount:"
"""The prefix that the API server puts before `namespace:name`,
<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#service-account-tokens>."""


POD: Final = "Pod"
SLURM_JOB: Final = "SlurmJob"
KINDS: Final = (POD, SLURM_JOB)
"""The kinds of object that a rule may apply to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """Who created an object, as authenticated by the API server."""

    user: str = ""
    """"" if it was not recorded."""
    groups: Sequence[str] | None = None
    """None if they are no longer known."""


class Patterns:
    """Names in which `*` and `?` match.

    They are compiled once, because they are matched for every pod.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = tuple(texts)
        self._exact = frozenset(text for text in self.texts if not set("*?") & set(text))
        globs = "|".join(re.escape(text) for text in self.texts if text not in self._exact)
        regular = globs.replace(r"\*", ".*").replace(r"\?", ".")
        self._globs = re.compile(regular, re.DOTALL) if globs else None

    def __bool__(self) -> bool:
        """Check whether there are any; none at all usually means that anything matches."""
        return bool(self.texts)

    def match(self, name: str) -> bool:
        """Check whether one of them matches the whole name, case included."""
        return name in self._exact or bool(self._globs and self._globs.fullmatch(name))


RESERVED: Final = (
    *("root", "slurm", "slurmrestd", "munge", "daemon", "bin", "sys", "sync", "games", "man"),
    *("lp", "mail", "news", "uucp", "proxy", "www-data", "backup", "list", "irc", "gnats"),
    *("adm", "shutdown", "halt", "operator", "ftp", "dbus", "polkitd", "sshd", "chrony"),
    *("mysql", "postgres", "apache", "nginx", "ntp", "rpc", "rpcuser", "sssd", "tcpdump"),
    *("messagebus", "libvirt*", "systemd-*", "_*", "nobody", "nogroup", "wheel", "sudo"),
    *("shadow", "disk", "kmem", "tty", "docker"),
)
"""Accounts of machines and daemons, SlurmUser's usual name among them. A template must not make one
of what users write: updates of a SlurmUser's job, for example, are an operator's.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A field whose value users may choose."""

    default: str = ""
    """What is requested if the user asks for nothing; "" leaves it to Slurm. Users may always ask
    for it."""
    allowed: Patterns = field(default_factory=Patterns)
    """What else may be asked for; if empty, nothing."""

    @property
    def is_open(self) -> bool:
        """Check whether anything may be asked for."""
        return "*" in self.allowed.texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A number that users may choose, both bounds included."""

    least: int
    most: int


_CALLED: Final = {POD: "pod", SLURM_JOB: "SlurmJob"}
_CREATED: Final = {POD: "Slurm jobs", SLURM_JOB: "SlurmJobs"}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Whom it applies to, which Slurm user their jobs run as, and what they may ask for."""

    name: str
    source: str
    """Where it is defined, for users who are refused: `policy rule physics`."""

    kinds: frozenset[str] = frozenset({POD})
    """What it applies to, some of `KINDS`."""
    namespaces: Patterns = field(default_factory=Patterns)
    """Where it applies: in one of these namespaces, if any are given; and"""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    """only if the pod's namespace has all of these labels; and"""
    users: Patterns = field(default_factory=Patterns)
    """whom it applies to, if any of these two are given: one of these users,"""
    groups: Patterns = field(default_factory=Patterns)
    """or a member of one of these groups."""

    user: str
    """A template: `{namespace}`, `{user}` (the requester's name in Kubernetes)."""
    user_table: Mapping[str, str] = field(default_factory=dict)
    """If not empty, the expanded `user` is looked up here."""
    group: str = "{slurm_user}"
    """Also a template, with `{slurm_user}` in addition."""
    group_table: Mapping[str, str] = field(default_factory=dict)
    reserved: Patterns = field(default_factory=lambda: Patterns(RESERVED))
    """Users and groups that a template must not make."""

    account: Choice = field(default_factory=Choice)
    """Its default is a template, like `group`."""
    partition: Choice = field(default_factory=lambda: Choice(allowed=Patterns("*")))
    qos: Choice = field(default_factory=Choice)
    reservation: Choice = field(default_factory=Choice)
    priority: Range | None = None
    """None: may not be asked for."""
    nice: Range | None = None
    time_limit_max_min: int | None = None
    """No job gets more minutes; None: no cap of ours."""
    exclusive: bool = True
    """Whether whole nodes may be asked for."""
    node_choice: bool = True
    """Whether nodes or features may be chosen."""
    licenses: Patterns = field(default_factory=lambda: Patterns("*"))
    """The licences that may be asked for."""
    working_directory: str = "/home/{slurm_user}"
    """Where a batch job starts that names no directory: a template, with `{namespace}` too."""

    def is_for(self, requester: Requester) -> bool:
        """Check whether the rule applies to the requester, wherever the pod is."""
        if not (self.users or self.groups):
            return True
        return self.users.match(requester.user) or any(
            map(self.groups.match, requester.groups or ())
        )

    def is_in(self, namespace: str) -> bool:
        """Check whether the rule applies in the namespace, by its name alone."""
        return not self.namespaces or self.namespaces.match(namespace)

    def is_under(self, labels: Mapping[str, str]) -> bool:
        """Check whether the rule applies in a namespace with these labels."""
        return all(labels.get(key) == value for key, value in self.namespace_labels.items())


@dataclass(frozen=True)
class Policy:
    """All rules, in order."""

    rules: tuple[Rule, ...] = ()
    creator_annotation: str = ""
    """The annotation in which this cluster records who created an object; "" if it does not."""
    controllers: Patterns = field(default_factory=Patterns)
    """Users that create pods on behalf of others: the owner's recorded creator counts instead of
    them."""
    absence: str = "policy.rules has none"
    """Why there is no rule to match, for users who are refused."""

    @property
    def owner_annotation(self) -> str:
        """Return where the cluster records the uid of an object's controller at CREATE."""
        return f"{self.creator_annotation}.owner"

    @cached_property
    def by_name(self) -> Mapping[str, Rule]:
        """Return the rules by name."""
        return {rule.name: rule for rule in self.rules}

    @cached_property
    def asks_for_labels(self) -> bool:
        """Check whether a namespace's labels matter to any rule."""
        return any(rule.namespace_labels for rule in self.rules)

    def acts_for_others(self, requester: Requester) -> bool:
        """Check whether to look for the pod's real author among the creators of its owners."""
        return bool(self.creator_annotation) and self.controllers.match(requester.user)

    def candidates(
        self, requester: Requester, namespace: str, *, kind: str = POD
    ) -> tuple[Rule, ...]:
        """Return the rules that may apply to an object, depending on the namespace's labels.

        The list ends with the first rule that needs no label, if there is one.
        """
        matching: list[Rule] = []
        for rule in self.rules:
            if kind in rule.kinds and rule.is_in(namespace) and rule.is_for(requester):
                matching.append(rule)
                if not rule.namespace_labels:
                    break
        return tuple(matching)

    def holding(
        self,
        requester: Requester,
        namespace: str,
        labels: Mapping[str, str],
        *,
        named: Sequence[str] | None = None,
        kind: str = POD,
    ) -> Rule | None:
        """Return the rule that applies to an admitted object, or None.

        Args:
            labels: the namespace's labels.
            named: the candidates that the webhook named; no others are considered then. They are
                evaluated as they are now, but the requester is assumed to be still in a rule's
                group. None: no webhook has named any.
        """
        rules = self.rules if named is None else filter(None, map(self.by_name.get, named))
        for rule in rules:
            if kind not in rule.kinds or not (rule.is_in(namespace) and rule.is_under(labels)):
                continue
            if rule.is_for(requester) or (named is not None and rule.groups):
                return rule
            if rule.groups and requester.groups is None:
                return None  # it may apply to them, and then no later, wider rule does
        return None

    def why_no_rule(
        self,
        requester: Requester,
        namespace: str,
        *,
        named: Sequence[str] | None = None,
        kind: str = POD,
    ) -> str:
        """Explain why a requester to whom no rule applies may have nothing."""
        if not self.rules:
            return (
                "refused: the administrator has not set which Slurm users own pods' jobs: "
                f"{self.absence}"
            )
        if named and not any(name in self.by_name for name in named):
            return (
                f"refused: policy rule {', '.join(named)}, which admitted this {_CALLED[kind]}, "
                f"no longer exists; create the {_CALLED[kind]} again"
            )
        if kind != POD and not any(kind in rule.kinds for rule in self.rules):
            return (
                f"refused: no policy rule is for {_CALLED[kind]}s, so they are not allowed; "
                "ask the administrator of slurm-bridge (policy.rules, match.kinds)"
            )
        who = f"user {requester.user!r}" if requester.user else "an unknown user"
        return (
            f"refused: no policy rule allows {who} to have {_CREATED[kind]} in namespace {namespace}; "
            "ask the administrator of slurm-bridge (policy.rules)"
        )
