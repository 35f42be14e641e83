"""Who may have a token for which Slurm user: pure.

A token lets its holder act as its user, so what a namespace gets is the administrator's word, in the settings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from slurmoperator.objects.parts import seconds_of
from slurmruntime.values.faults import Fault

ANYBODY: Final = "*"
"""In the settings, all namespaces, or all users but those who may do anything."""
_MASTERS: Final = frozenset({"root", "slurm"})
"""root, and SlurmUser of every cluster that we make: they may do anything in Slurm."""
SHORTEST_S: Final = 10
"""As the definition of Token has it: one that ends at once would be signed again and again."""
DEFAULT_LIFETIME_S: Final = 900
"""As in SchedMD's slurm-operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPolicy:
    """What the administrator allows."""

    users: Mapping[str, str]
    """Slurm users, with commas between them, by namespace; either may be `ANYBODY`."""
    longest_s: int
    """The longest lifetime."""


def faults(
    policy: TokenPolicy, *, namespace: str, username: str, lifetime_s: int
) -> Iterator[Fault]:
    """Find what the administrator does not allow."""
    if not _may_have(policy, namespace, username):
        text = (
            f"nobody in namespace {namespace} may have a token of user {username}: the administrator of slurm-operator"
            " allows it in its setting operator.token_users"
        )
        yield Fault("spec.username", text)
    if lifetime_s < SHORTEST_S:
        yield Fault("spec.lifetime", f"expected {SHORTEST_S}s or longer, found {lifetime_s} s")
    if lifetime_s > policy.longest_s:
        text = f"expected at most {policy.longest_s} s, which is the setting operator.token_longest_s; found {lifetime_s} s"
        yield Fault("spec.lifetime", text)


def is_master(username: str) -> bool:
    """Check whether a user may do anything in Slurm, whatever the name is written like.

    Slurm takes a number for the user who has it (src/common/uid.c), and a directory of users may
    not care about case.
    """
    return username.isdecimal() or username.casefold() in _MASTERS


def lifetime_s(text: str | None) -> int:
    """Return whole seconds from a duration such as 1h30m, as Go writes it; without one, the default."""
    if text is None:
        return DEFAULT_LIFETIME_S
    return int(seconds_of(text))


def _may_have(policy: TokenPolicy, namespace: str, username: str) -> bool:
    said = (policy.users.get(each, "") for each in (namespace, ANYBODY))
    allowed = {each.strip() for users in said for each in users.split(",")}
    return username in allowed or (ANYBODY in allowed and not is_master(username))
