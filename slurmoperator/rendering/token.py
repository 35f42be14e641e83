"""What a Token has in the API server: a Secret with it."""

import base64
import re
from collections.abc import Iterator
from typing import Final

from slurmoperator.objects.parts import KeyOfObject
from slurmoperator.objects.token import TokenObject
from slurmoperator.rendering.body import Body, BodyOwner, made
from slurmruntime.values.faults import Fault

_KEY: Final = "SLURM_JWT"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 253


def token_place(token: TokenObject) -> KeyOfObject:
    """Return the Secret that gets it, and its key there."""
    name = f"{token.metadata.name}-jwt-{token.spec.username}"
    return token.spec.secret_ref or KeyOfObject(name=name, key=_KEY)


def token_body(token: TokenObject, signed: str) -> Body:
    """Return the Secret.

    Args:
        token: with what its users want.
        signed: the token itself.
    """
    place = token_place(token)
    owner = BodyOwner(kind="Token", metadata=token.metadata, app="token")
    data = {place.key: base64.b64encode(signed.encode()).decode()}
    return made(owner, "Secret", place.name, parts={"type": "Opaque", "data": data})


def token_faults(token: TokenObject) -> Iterator[Fault]:
    """Find what keeps it from standing anywhere."""
    place = token_place(token)
    key = token.spec.jwt_key_ref or token.spec.jwt_hs256_key_ref
    if not _NAME.fullmatch(place.name) or len(place.name) > _LONGEST_NAME:
        text = f"expected the name of a Secret for it, because none can have the name {place.name}"
        yield Fault("spec.secretRef", text)
    if key is None:
        yield Fault("spec.jwtKeyRef", "expected the Secret with the key that signs the token")
    elif key.name == place.name:
        yield Fault("spec.secretRef.name", "expected another Secret than that with the key")
