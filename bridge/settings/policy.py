"""The schema of policy rules in the settings, and their translation to domain rules."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bridge.domain.request import notation, permit, rules
from bridge.domain.request.rules import Patterns

_Text = Annotated[str, Field(min_length=1, max_length=256)]
_Texts = tuple[_Text, ...]
_Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\s,]+$")]
"""A name, or a template of one."""

_ABOUT_USER = frozenset({"namespace", "user"})
_ABOUT_GROUP = _ABOUT_USER | {"slurm_user"}
_ABOUT_DIRECTORY = frozenset({"namespace", "slurm_user"})


def _is_account(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch("[^/:]+/[^/:]+", name) is not None


class EntrySection(BaseModel):
    """Base of all parts of a rule: unknown fields are forbidden, instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Match(EntrySection):
    """Whom a rule applies to; by default everyone's pods in all namespaces."""

    kinds: Annotated[
        tuple[Literal["Pod", "SlurmJob"], ...],
        Field(
            min_length=1,
            description="What the rule is for: Pod, SlurmJob or both. Anyone who may create SlurmJobs under "
            "a rule can run any program on the cluster as its user.",
        ),
    ] = ("Pod",)

    namespaces: _Texts = Field((), description="Names of namespaces; wildcards * and ?.")
    namespace_labels: dict[str, str] = Field(
        default_factory=dict, description="Labels the namespace must have, all of them."
    )
    users: _Texts = Field(
        (),
        description="Kubernetes users who created the pod, service accounts as "
        f"{rules.SERVICE_ACCOUNT}NAMESPACE:NAME; wildcards * and ?.",
    )
    groups: _Texts = Field((), description="Or their groups; wildcards * and ?.")

    @model_validator(mode="before")
    @classmethod
    def _service_accounts_are_users(cls, section: object) -> object:
        """Take service accounts as the release before had them, NAMESPACE/NAME, for the users that they are."""
        match section:
            case {"service_accounts": [*accounts], **others} if all(map(_is_account, accounts)):
                users = [f"{rules.SERVICE_ACCOUNT}{name.replace('/', ':')}" for name in accounts]
                match others.get("users", []):
                    case [*named]:
                        return {**others, "users": [*named, *users]}
                    case _:
                        pass
            case _:
                pass
        return section


class ChoiceSection(EntrySection):
    """A field that users may choose, within limits."""

    default: str = Field(
        "", description="Used if the user does not specify it; empty: Slurm's default."
    )
    allowed: _Texts = Field((), description="Other values users may request; wildcards * and ?.")


class OpenChoice(ChoiceSection):
    """A field that users may choose, without limits unless some are set."""

    allowed: _Texts = Field(
        ("*",), description="Other values users may request; wildcards * and ?."
    )


class RangeSection(EntrySection):
    """A number that users may choose, within limits."""

    min: Annotated[int, Field(ge=-notation.MAX_NUMBER, le=notation.MAX_NUMBER)] = Field(
        0, description="The smallest value."
    )
    max: Annotated[int, Field(ge=-notation.MAX_NUMBER, le=notation.MAX_NUMBER)] = Field(
        description="The largest value."
    )

    @model_validator(mode="after")
    def _is_no_smaller(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"max must be at least min, found {self.max} and {self.min}")
        return self


class RuleSection(EntrySection):
    """One rule: whom it applies to, their Slurm identity, and what they may request."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][-A-Za-z0-9_.]{0,62}$",
        description="Shown in rejections and on the pod; unique among the rules.",
    )
    match: Match = Field(Match(), description="")
    user: _Name = Field(
        description="Slurm user or uid of the jobs: fixed, or a template with {namespace} or "
        "{user} (the Kubernetes user)."
    )
    user_table: dict[str, _Name] = Field(
        default_factory=dict,
        description="If set, the value of user is looked up here; a value that is missing is "
        "rejected.",
    )
    group: _Name = Field(
        "{slurm_user}",
        description="Group or gid of the jobs, always sent with the user; a template may also use "
        "{slurm_user}.",
    )
    group_table: dict[str, _Name] = Field(
        default_factory=dict, description="The same for the value of group."
    )
    account: ChoiceSection = Field(
        ChoiceSection(), description="Account to charge; the default may be a template."
    )
    partition: OpenChoice = Field(OpenChoice(), description="Partitions.")
    qos: ChoiceSection = Field(ChoiceSection(), description="Quality of service.")
    reservation: ChoiceSection = Field(ChoiceSection(), description="Reservations.")
    priority: RangeSection | None = Field(
        None,
        description="Priorities users may set, from min, 0 by default, to max; null: none, Slurm computes it.",
    )
    nice: RangeSection | None = Field(
        None,
        description="Nice values users may set, from min, 0 by default, to max; below 0 raises the priority; null: none.",
    )
    time_limit_max_min: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Longest time limit; null: what Slurm allows."
    )
    exclusive: bool = Field(default=True, description="Whether users may request whole nodes.")
    node_choice: bool = Field(
        default=True,
        description="Whether users may choose nodes: constraints, nodeSelector, required "
        "nodeAffinity.",
    )
    licenses: _Texts = Field(("*",), description="Licences users may request; wildcards * and ?.")
    working_directory: Annotated[str, Field(pattern="^/", max_length=1024)] = Field(
        "/home/{slurm_user}",
        description="Working directory of a SlurmJob that names none (--chdir); {slurm_user} and "
        "{namespace} are filled in.",
    )

    @model_validator(mode="after")
    def _templates_can_be_filled(self) -> Self:
        for name, template, known in (
            ("user", self.user, _ABOUT_USER),
            ("group", self.group, _ABOUT_GROUP),
            ("account.default", self.account.default, _ABOUT_GROUP),
            ("working_directory", self.working_directory, _ABOUT_DIRECTORY),
        ):
            if unknown := permit.unknown_placeholders(template, known):
                accepted = ", ".join(f"{{{key}}}" for key in sorted(known))
                rejected = ", ".join(f"{{{key}}}" for key in unknown)
                raise ValueError(f"{name} may contain {accepted}, found {rejected}")
        return self

    def compiled(self, *, default_partition: str, reserved: Patterns) -> rules.Rule:
        """Return the domain's form of the rule."""
        match, partition = self.match, self.partition
        return rules.Rule(
            name=self.name,
            source=f"policy rule {self.name}",
            kinds=frozenset(match.kinds),
            namespaces=Patterns(match.namespaces),
            namespace_labels=match.namespace_labels,
            users=Patterns(match.users),
            groups=Patterns(match.groups),
            user=self.user,
            user_table=self.user_table,
            group=self.group,
            group_table=self.group_table,
            reserved=reserved,
            account=_choice(self.account),
            partition=rules.Choice(
                default=partition.default or default_partition, allowed=Patterns(partition.allowed)
            ),
            qos=_choice(self.qos),
            reservation=_choice(self.reservation),
            priority=_range(self.priority),
            nice=_range(self.nice),
            time_limit_max_min=self.time_limit_max_min,
            exclusive=self.exclusive,
            node_choice=self.node_choice,
            licenses=Patterns(self.licenses),
            working_directory=self.working_directory,
        )


def problems(rules: tuple[RuleSection, ...], *, default_partition: str) -> list[str]:
    """Return what is wrong with the rules in combination, or with the other settings."""
    faults: list[str] = []
    seen: Mapping[str, int] = {}
    for number, rule in enumerate(rules):
        where = f"rules[{number}] ({rule.name})"
        if rule.name in seen:
            faults.append(f"{where}: rules[{seen[rule.name]}] has the same name")
        seen = {rule.name: number} | dict(seen)
        if _hides_others(rule, rules[number + 1 :]):
            faults.append(f"{where}: it matches everyone, so no rule after it ever applies")
        if "*" not in rule.partition.allowed and not (rule.partition.default or default_partition):
            faults.append(
                f"{where}: partitions are limited, so partition.default or slurm.partition is"
                " required: Slurm's own default might not be allowed"
            )
    return faults


def _hides_others(rule: RuleSection, later: tuple[RuleSection, ...]) -> bool:
    """Check whether the rule matches everyone, so that one of the later rules never applies."""
    kinds = rule.match.kinds
    matches_everyone = rule.match == Match(kinds=kinds)
    return matches_everyone and any(set(other.match.kinds) <= set(kinds) for other in later)


def _choice(section: ChoiceSection) -> rules.Choice:
    return rules.Choice(default=section.default, allowed=Patterns(section.allowed))


def _range(section: RangeSection | None) -> rules.Range | None:
    return None if section is None else rules.Range(least=section.min, most=section.max)
