"""The key rings with which the key of Slurm's daemons is replaced while they run: pure.

Slurm's slurm.jwks holds several keys, each with a name. A daemon reads it at its start, signs with the default key and accepts
all of them. A message without a key name counts as signed with the default key, and a daemon that has only slurm.key ignores
the name (src/plugins/auth/slurm/internal.c).

So three steps lead from one key to the next: both are accepted and the old one signs; the new one signs; the old one is gone.
Daemons at neighbouring steps accept each other, at other distances they may not. Steps are numbered on: 0 is the key itself, as
slurm.key; 1 to 3 bring the second key, 4 to 6 the third. The content of a step is written once, under a name of its own, in a
Secret beside that of the key. A pod names its step, so its volume proves which one it has: its kubelet mounts that or nothing.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from slurmruntime.values import numbers

STEPS_PER_KEY: Final = 3
MOST_STEPS: Final = 10**6
"""The highest step that is read: no cluster will reach it."""

_LONGEST: Final = 4096
"""Bytes of a step, which has two keys at most."""
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
    """Return the name of the Secret with the steps of a key, from that of the Secret with the key itself."""
    return f"{secret}-ring"


def ring_item(key: str, step: int) -> str:
    """Return the name of a step, from 1, in the data of its Secret; `key` is the name of the key in its own Secret."""
    return f"{key}.{step}{_SUFFIX}"


def step_of(key: str, item: str) -> int | None:
    """Return the step with this name; None if it is not a step of this key."""
    prefix = f"{key}."
    if not (item.startswith(prefix) and item.endswith(_SUFFIX)):
        return None
    step = numbers.integer(item[len(prefix) : -len(_SUFFIX)], most=MOST_STEPS)
    return step if step and ring_item(key, step) == item else None


def last_step(key: str, items: Iterable[str]) -> int:
    """Return the last step among these names; 0 if there is none."""
    return max((step_of(key, item) or 0 for item in items), default=0)


def signing_key(step: int) -> int:
    """Return the number of the key with which daemons at this step sign; the first key is 1."""
    return 1 + (step + 1) // STEPS_PER_KEY


def accepted_keys(step: int) -> frozenset[int]:
    """Return the numbers of the keys that daemons at this step accept."""
    first = 1 + step // STEPS_PER_KEY
    return frozenset({first} if is_complete(step) else {first, first + 1})


def is_complete(step: int) -> bool:
    """Check whether no rotation is under way at this step: there is only one key."""
    return step % STEPS_PER_KEY == 0


def step_text(step: int, keys: Mapping[int, bytes]) -> bytes:
    """Return slurm.jwks for a step, from 1, with the keys that daemons at this step accept; it depends on nothing else."""
    ring = _Ring(
        keys=tuple(
            _Key(
                kid=f"{_NAME}{number}",
                k=base64.urlsafe_b64encode(keys[number]).rstrip(b"=").decode(),
                alg="HS256",
                kty="oct",
                use="default" if number == signing_key(step) else "",
            )
            for number in sorted(accepted_keys(step))
        )
    )
    return msgspec.json.encode(ring)


def keys_of(step: int, text: bytes) -> dict[int, bytes] | None:
    """Return the keys in the text of a step, by number; None if it is not exactly what this step must contain."""
    if len(text) > _LONGEST:
        return None
    try:
        keys = {
            int(key.kid.removeprefix(_NAME)): base64.urlsafe_b64decode(f"{key.k}==")
            for key in _ring.decode(text).keys
        }
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, binascii.Error, ValueError):
        return None
    return keys if keys.keys() == accepted_keys(step) and step_text(step, keys) == text else None
