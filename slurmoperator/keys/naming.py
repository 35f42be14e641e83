"""Which keys an object names, and what to do about their Secrets: pure."""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from slurmoperator.objects.accounting import AccountingSpec
from slurmoperator.objects.controller import ControllerSpec
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.values.faults import Fault, Refusal


class KeyUse(enum.Enum):
    """What a key is for."""

    DAEMONS = "daemons"
    """auth/slurm: slurm.key."""
    TOKENS = "tokens"
    """auth/jwt with HS256: jwt.key."""


MADE_BYTES: Final[Mapping[KeyUse, int]] = {KeyUse.DAEMONS: 1024, KeyUse.TOKENS: 64}
"""The length of the keys that we make. HS256 first hashes a key longer than 64 bytes (RFC 2104)."""
LEAST_BYTES: Final[Mapping[KeyUse, int]] = {KeyUse.DAEMONS: 16, KeyUse.TOKENS: 32}
"""What Slurm's auth/slurm accepts (src/plugins/auth/slurm), and what RFC 7518 requires."""

ValueLengths = Mapping[str, int]
"""The lengths of a Secret's values in bytes, by key."""

_FIRST_STEP_WITHOUT_SECRET: Final = 2
"""From this step on, no pod gets the first key from its own Secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReference:
    """A reference to a key in a Secret."""

    use: KeyUse
    secret: str
    key: str
    path: str
    """The field that names it."""
    is_external: bool
    """The daemons are external and already have the key: it cannot be made here."""


def key_references(spec: ControllerSpec | AccountingSpec) -> tuple[KeyReference, ...]:
    """Return the keys that an object names."""
    old = None if spec.jwt_key_ref else spec.jwt_hs256_key_ref
    fields: tuple[tuple[KeyUse, str, KeyOfObject | None], ...] = (
        (KeyUse.DAEMONS, "spec.slurmKeyRef", spec.slurm_key_ref),
        (KeyUse.TOKENS, "spec.jwtKeyRef", spec.jwt_key_ref),
        (KeyUse.TOKENS, "spec.jwtHs256KeyRef", old),
    )
    return tuple(
        KeyReference(use=use, secret=ref.name, key=ref.key, path=path, is_external=spec.external)
        for use, path, ref in fields
        if ref is not None
    )


def still_needed(keys: Iterable[KeyReference], step: int) -> tuple[KeyReference, ...]:
    """Return the keys that daemons still read from the Secrets that the object names; at later steps, theirs comes from the ring."""
    return tuple(
        key for key in keys if step < _FIRST_STEP_WITHOUT_SECRET or key.use is not KeyUse.DAEMONS
    )


def find_missing(
    keys: Iterable[KeyReference], seen: Mapping[str, ValueLengths], *, has_run: bool
) -> Mapping[str, ValueLengths]:
    """Return the Secrets to create, by name.

    If the object has run, daemons may have a key already. With a new one, daemons that start could not talk to those that run, so
    a lost Secret is reported and not replaced.

    Raises:
        Refusal: with what is wrong with those that exist or should exist.
    """
    missing: dict[str, dict[str, int]] = {}
    faults: list[Fault] = []
    for key in keys:
        secret = seen.get(key.secret)
        if secret is not None:
            faults += _secret_faults(key, secret)
        elif key.is_external:
            text = (
                f"there is no Secret {key.secret}: create it with the key of the external daemons"
            )
            faults.append(Fault(f"{key.path}.name", text))
        elif has_run:
            text = (
                f"Secret {key.secret} is missing, and daemons run with its key: restore it. If it is lost, delete "
                "the StatefulSets and pods that used it; a new key is then made"
            )
            faults.append(Fault(f"{key.path}.name", text))
        else:
            lengths = missing.setdefault(key.secret, {})
            lengths[key.key] = max(lengths.get(key.key, 0), MADE_BYTES[key.use])
    if faults:
        raise Refusal(*faults)
    return dict(sorted(missing.items()))


def mismatches(controller: ControllerSpec, accounting: AccountingSpec) -> Iterator[Fault]:
    """Find keys that a Controller and its Accounting must share but do not."""
    theirs = {key.use: key for key in key_references(accounting)}
    for key in key_references(controller):
        other = theirs.get(key.use)
        if other is not None and (key.secret, key.key) != (other.secret, other.key):
            text = (
                f"expected the key of the Accounting, {other.key} in Secret {other.secret}: "
                "with different keys the daemons cannot talk to each other"
            )
            yield Fault(key.path, text)


def _secret_faults(key: KeyReference, secret: ValueLengths) -> Iterator[Fault]:
    length = secret.get(key.key)
    if length is None:
        names = ", ".join(sorted(secret)) or "nothing"
        text = f"Secret {key.secret} has no {key.key}: it has {names}"
        yield Fault(f"{key.path}.key", text)
    elif length < LEAST_BYTES[key.use]:
        text = f"expected at least {LEAST_BYTES[key.use]} bytes in {key.key} of Secret {key.secret}, found {length}"
        yield Fault(f"{key.path}.key", text)
