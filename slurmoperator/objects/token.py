"""Token: a user's token for Slurm, in a Secret."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from slurmoperator.objects import parts
from slurmoperator.objects.parts import ConditionsOnly, Duration, KeyOfObject, OldJwtKey, note
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
            description="The Slurm user.",
        ),
    ]
    jwt_key_ref: Annotated[KeyOfObject | None, note("Secret with the key that signs it.")] = None
    jwt_hs256_key_ref: OldJwtKey = msgspec.field(default=None, name="jwtHs256KeyRef")
    lifetime: Annotated[
        Duration | None, note("How long the token is valid, such as 1h; defaults to 15m.")
    ] = None
    refresh: Annotated[bool, note("Whether to replace the token before it expires.")] = True
    secret_ref: Annotated[
        KeyOfObject | None,
        note(
            "The Secret to write the token to; by default one named after the Token and its user."
        ),
    ] = None

    @property
    def signing_key(self) -> KeyOfObject | None:
        """The key that signs it, by its field's present or earlier name."""
        return self.jwt_key_ref or self.jwt_hs256_key_ref


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
    """Status of the token; only slurm-operator writes it."""

    issued_at: Annotated[Moment | None, note("When the token was last signed.")] = None


class TokenObject(ObjectStruct, frozen=True):
    """A Slurm user's token, in a Secret."""

    metadata: ObjectMetadata
    spec: TokenSpec
    status: TokenStatus = TokenStatus()
