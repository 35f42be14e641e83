"""Renders a Token: the Secret that holds it."""

import re
from collections.abc import Iterator
from typing import Final

from slurmoperator.objects.parts import KeyOfObject
from slurmoperator.objects.token import TokenObject
from slurmoperator.rendering.body import BodyOwner, owned_secret
from slurmruntime.model.objects import JsonDict
from slurmruntime.values.faults import Fault

_KEY: Final = "SLURM_JWT"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 253


def token_secret(token: TokenObject) -> KeyOfObject:
    """Return the Secret that the token is written to, and its key there."""
    name = f"{token.metadata.name}-jwt-{token.spec.username}"
    return token.spec.secret_ref or KeyOfObject(name=name, key=_KEY)


def token_body(token: TokenObject, signed: str) -> JsonDict:
    """Return the Secret with a signed token."""
    secret = token_secret(token)
    owner = BodyOwner(kind="Token", metadata=token.metadata, app="token")
    return owned_secret(owner, secret.name, {secret.key: signed.encode()})


def token_faults(token: TokenObject) -> Iterator[Fault]:
    """Yield what keeps the token from being signed and written."""
    secret = token_secret(token)
    key = token.spec.signing_key
    if not _NAME.fullmatch(secret.name) or len(secret.name) > _LONGEST_NAME:
        text = (
            f"expected the name of a Secret, because the default {secret.name} is not a valid name"
        )
        yield Fault("spec.secretRef", text)
    if key is None:
        yield Fault("spec.jwtKeyRef", "expected the Secret with the key that signs the token")
    elif key.name == secret.name:
        yield Fault("spec.secretRef.name", "expected a different Secret than the one with the key")
