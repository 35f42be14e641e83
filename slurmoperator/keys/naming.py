"""Which keys an object names, and what is to be done about their Secrets: pure."""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from slurmoperator.objects.accounting import AccountingSpec
from slurmoperator.objects.controller import ControllerSpec
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.values.faults import Fault


class KeyUse(enum.Enum):
    """What a key is for."""

    DAEMONS = "daemons"
    """auth/slurm: slurm.key."""
    TOKENS = "tokens"
    """auth/jwt with HS256: jwt.key."""


MADE_BYTES: Final[Mapping[KeyUse, int]] = {KeyUse.DAEMONS: 1024, KeyUse.TOKENS: 64}
"""The length of a key that we make. HS256 hashes a longer one than 64 bytes first (RFC 2104)."""
LEAST_BYTES: Final[Mapping[KeyUse, int]] = {KeyUse.DAEMONS: 16, KeyUse.TOKENS: 32}
"""What Slurm's auth/slurm takes (src/plugins/auth/slurm), and RFC 7518 asks for."""

_STEP_WITHOUT: Final = 2
"""When this step is in force, no pod has the first key from its own Secret any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedKey:
    """A key, where it is to stand."""

    use: KeyUse
    secret: str
    key: str
    path: str
    """The field that names it."""
    is_external: bool
    """The daemons run elsewhere and have it already: it cannot be made here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSecret:
    """What is read of a Secret: how long its parts are."""

    lengths: Mapping[str, int]
    """In bytes, by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretToMake:
    """A Secret that does not exist and is to be made."""

    name: str
    lengths: Mapping[str, int]
    """In bytes, by key."""


def named(spec: ControllerSpec | AccountingSpec) -> tuple[NamedKey, ...]:
    """Return the keys that an object names."""
    fields: tuple[tuple[KeyUse, str, KeyOfObject | None], ...] = (
        (KeyUse.DAEMONS, "spec.slurmKeyRef", spec.slurm_key_ref),
        (KeyUse.TOKENS, "spec.jwtKeyRef", spec.jwt_key_ref),
        (
            KeyUse.TOKENS,
            "spec.jwtHs256KeyRef",
            None if spec.jwt_key_ref else spec.jwt_hs256_key_ref,
        ),
    )
    return tuple(
        NamedKey(use=use, secret=ref.name, key=ref.key, path=path, is_external=spec.external)
        for use, path, ref in fields
        if ref is not None
    )


def still_needed(keys: Iterable[NamedKey], step: int) -> tuple[NamedKey, ...]:
    """Return the keys that daemons need as their Secrets have them.

    Args:
        keys: all that one object names.
        step: of the daemons' key. From the second one on, all have it from elsewhere; see `rings`.
    """
    return tuple(key for key in keys if step < _STEP_WITHOUT or key.use is not KeyUse.DAEMONS)


def decide(
    keys: Iterable[NamedKey], seen: Mapping[str, SeenSecret], *, has_run: bool
) -> tuple[tuple[SecretToMake, ...], tuple[Fault, ...]]:
    """Return the Secrets to make, and what is wrong with those that are there or must be.

    Args:
        keys: All that one object names.
        seen: The Secrets that exist, by name.
        has_run: Whether daemons may have a key already. A new one would then cut those that start
            off from those that run, so a lost Secret is told and not replaced.
    """
    missing: dict[str, dict[str, int]] = {}
    faults: list[Fault] = []
    for key in keys:
        secret = seen.get(key.secret)
        if secret is not None:
            faults += _wrong(key, secret)
        elif key.is_external:
            text = f"there is no Secret {key.secret}: create it with the key that the daemons elsewhere have"
            faults.append(Fault(f"{key.path}.name", text))
        elif has_run:
            text = (
                f"Secret {key.secret} is gone, and daemons run with its key: restore it. If it is lost, delete "
                "the StatefulSets and pods that had it; then a new one is made"
            )
            faults.append(Fault(f"{key.path}.name", text))
        else:
            lengths = missing.setdefault(key.secret, {})
            lengths[key.key] = max(lengths.get(key.key, 0), MADE_BYTES[key.use])
    broken = {fault.path for fault in faults}
    made = () if broken else tuple(_to_make(missing))
    return made, tuple(faults)


def different(controller: ControllerSpec, accounting: AccountingSpec) -> Iterator[Fault]:
    """Find the keys that a Controller and its Accounting must share, and do not."""
    theirs = {each.use: each for each in named(accounting)}
    for each in named(controller):
        other = theirs.get(each.use)
        if other is not None and (each.secret, each.key) != (other.secret, other.key):
            text = (
                f"expected the same as that of the Accounting, {other.secret} with key {other.key}: "
                "the daemons could not speak to each other"
            )
            yield Fault(each.path, text)


def _to_make(missing: Mapping[str, Mapping[str, int]]) -> Iterator[SecretToMake]:
    for name, lengths in sorted(missing.items()):
        yield SecretToMake(name=name, lengths=lengths)


def _wrong(key: NamedKey, secret: SeenSecret) -> Iterator[Fault]:
    length = secret.lengths.get(key.key)
    if length is None:
        there = ", ".join(sorted(secret.lengths)) or "nothing"
        text = f"Secret {key.secret} has no {key.key}: it has {there}"
        yield Fault(f"{key.path}.key", text)
    elif length < LEAST_BYTES[key.use]:
        text = (
            f"expected at least {LEAST_BYTES[key.use]} bytes in {key.key} of Secret {key.secret}, "
            f"found {length}"
        )
        yield Fault(f"{key.path}.key", text)
