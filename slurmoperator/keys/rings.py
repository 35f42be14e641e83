"""The rings by which the key of Slurm's daemons is replaced while they run: pure.

Slurm's slurm.jwks holds several keys, each with a name. A daemon reads it at its start, signs with the default one and accepts all of
them. What has no name counts as signed with the default one, and whoever has only slurm.key looks at no name (src/plugins/auth/slurm/internal.c).

So three steps lead from one key to the next: both are known and the old one signs; the new one signs; the old one is gone. Daemons at
neighbouring steps accept each other, at others they may not. Steps are counted on: 0 is the key itself, as slurm.key; 1 to 3 bring the
second key, 4 to 6 the third. What a step says is written once: in one Secret beside that of the key, each step by a name of its own.
A pod names its step, so its volume proves which one it has: its kubelet mounts that or nothing.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from slurmruntime.values import numbers

STEPS_PER_KEY: Final = 3
MOST_STEPS: Final = 10**6
"""More than anybody takes."""

_SUFFIX: Final = ".jwks"
_NAME: Final = "key-"


class _Key(msgspec.Struct, frozen=True, omit_defaults=True):
    kid: str
    k: str
    """Base64 for URLs, without padding."""
    alg: str = ""
    kty: str = ""
    use: str = ""


class _Ring(msgspec.Struct, frozen=True):
    keys: tuple[_Key, ...]


_ring = msgspec.json.Decoder(_Ring)


def ring_secret(secret: str) -> str:
    """Return the name of the Secret with the steps of a key.

    secret: the one that holds the key itself.
    """
    return f"{secret}-ring"


def ring_item(key: str, step: int) -> str:
    """Return under which key of its data a step stands.

    Args:
        key: under which the key itself stands in its Secret.
        step: from 1.
    """
    return f"{key}.{step}{_SUFFIX}"


def step_of(key: str, item: str) -> int | None:
    """Return which step stands there; None if it is none of this key."""
    prefix = f"{key}."
    if not (item.startswith(prefix) and item.endswith(_SUFFIX)):
        return None
    step = numbers.whole(item[len(prefix) : -len(_SUFFIX)], most=MOST_STEPS)
    return step if step and ring_item(key, step) == item else None


def last_step(key: str, items: Iterable[str]) -> int:
    """Return the last step that there is; 0 without any."""
    return max((step_of(key, item) or 0 for item in items), default=0)


def signer(step: int) -> int:
    """Return the number of the key with which daemons of this step sign; the first one is 1."""
    return 1 + (step + 1) // STEPS_PER_KEY


def known(step: int) -> frozenset[int]:
    """Return the numbers of the keys that daemons of this step accept."""
    first = 1 + step // STEPS_PER_KEY
    return frozenset({first} if is_rest(step) else {first, first + 1})


def is_rest(step: int) -> bool:
    """Check whether there is one key only, so that nothing has to follow."""
    return step % STEPS_PER_KEY == 0


def step_text(step: int, keys: Mapping[int, bytes]) -> bytes:
    """Return what slurm.jwks says at a step; the same for the same keys.

    Args:
        step: from 1.
        keys: by their numbers; all that the step knows.
    """
    ring = _Ring(
        keys=tuple(
            _Key(
                kid=f"{_NAME}{number}",
                k=base64.urlsafe_b64encode(keys[number]).rstrip(b"=").decode(),
                alg="HS256",
                kty="oct",
                use="default" if number == signer(step) else "",
            )
            for number in sorted(known(step))
        )
    )
    return msgspec.json.encode(ring)


def keys_of(step: int, text: bytes) -> dict[int, bytes] | None:
    """Return the keys that a step has, by their numbers; None if it does not say what this step must say."""
    try:
        found = {
            int(key.kid.removeprefix(_NAME)): base64.urlsafe_b64decode(f"{key.k}==")
            for key in _ring.decode(text).keys
        }
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, binascii.Error, ValueError):
        return None
    return found if found.keys() == known(step) and step_text(step, found) == text else None
