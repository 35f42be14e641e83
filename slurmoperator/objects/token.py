"""Token: a user's token for Slurm, in a Secret."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from slurmoperator.objects import parts
from slurmoperator.objects.parts import ConditionsOnly, KeyOfObject
from slurmruntime.crd.fields import Moment, ObjectStruct, rule
from slurmruntime.crd.metadata import ObjectMetadata


class TokenSpec(ObjectStruct, frozen=True):
    """A token for one Slurm user."""

    username: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=256,
            pattern=r"^[A-Za-z0-9_][-A-Za-z0-9_.@]*[$]?$",
            description="The Slurm user it is for.",
        ),
    ]
    jwt_key_ref: Annotated[
        KeyOfObject | None, Meta(description="Secret with the key that signs it.")
    ] = None
    jwt_hs256_key_ref: Annotated[
        KeyOfObject | None, Meta(description="The same as jwtKeyRef, by its older name.")
    ] = msgspec.field(default=None, name="jwtHs256KeyRef")
    lifetime: Annotated[
        Annotated[str, Meta(max_length=64, pattern=parts.GO_DURATION)] | None,
        Meta(description="How long it is good for, such as 1h; by default 15m."),
    ] = None
    refresh: Annotated[bool, Meta(description="Whether it is replaced in time.")] = True
    secret_ref: Annotated[
        KeyOfObject | None, Meta(description="The Secret that gets it; by default one is named.")
    ] = None


TOKEN_RULES: Final = (
    rule(
        "has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)",
        "expected the Secret with the key that signs the token",
        path=".jwtKeyRef",
        reason="FieldValueRequired",
    ),
    rule(
        "!has(self.lifetime) || duration(self.lifetime) >= duration('10s')",
        "expected 10s or longer: a token must outlive the request that uses it",
        path=".lifetime",
    ),
    parts.JWT_KEY_STAYS,
)


class TokenStatus(ConditionsOnly, frozen=True):
    """Of the token; written by slurm-operator only."""

    issued_at: Annotated[Moment | None, Meta(description="When it was signed last.")] = None


class TokenObject(ObjectStruct, frozen=True):
    """A Slurm user's token, in a Secret."""

    metadata: ObjectMetadata
    spec: TokenSpec
    status: TokenStatus = TokenStatus()
