"""Who may have a token for which Slurm user: pure.

A token lets its holder act as its user, so the administrator decides in the settings what each namespace may have.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from slurmoperator.objects.parts import seconds_of
from slurmruntime.values.faults import Fault

ANY: Final = "*"
"""In the settings: all namespaces, or all users without full rights."""
_MASTERS: Final = frozenset({"root", "slurm"})
"""Users with full rights in Slurm: root, and SlurmUser of every cluster that we create."""
SHORTEST_S: Final = 10
"""As in the definition of Token: a token that expires at once would be signed again and again."""
DEFAULT_LIFETIME_S: Final = 900
"""As in SchedMD's slurm-operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPolicy:
    """What the administrator allows."""

    users: Mapping[str, str]
    """Slurm users, separated by commas, by namespace; either may be `ANY`."""
    longest_s: int


def faults(
    policy: TokenPolicy, *, namespace: str, username: str, lifetime_s: int
) -> Iterator[Fault]:
    """Find what the administrator does not allow."""
    if not _may_have(policy, namespace, username):
        text = (
            f"namespace {namespace} may not have a token of user {username}: the administrator of slurm-operator can allow"
            " it with the setting operator.token_users"
        )
        yield Fault("spec.username", text)
    if lifetime_s < SHORTEST_S:
        yield Fault("spec.lifetime", f"expected {SHORTEST_S}s or longer, found {lifetime_s} s")
    if lifetime_s > policy.longest_s:
        text = f"expected at most {policy.longest_s} s, the setting operator.token_longest_s, found {lifetime_s} s"
        yield Fault("spec.lifetime", text)


def is_master(username: str) -> bool:
    """Check whether a user may do anything in Slurm: it takes a number as a uid (src/common/uid.c), and a user directory may ignore case."""
    return username.isdecimal() or username.casefold() in _MASTERS


def lifetime_s(text: str | None) -> int:
    """Return whole seconds from a Go duration such as 1h30m; the default without one."""
    if text is None:
        return DEFAULT_LIFETIME_S
    return int(seconds_of(text))


def _may_have(policy: TokenPolicy, namespace: str, username: str) -> bool:
    lists = (policy.users.get(key, "") for key in (namespace, ANY))
    allowed = {user.strip() for users in lists for user in users.split(",")}
    return username in allowed or (ANY in allowed and not is_master(username))
