"""Accounting: slurmdbd."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from slurmoperator.objects import parts
from slurmoperator.objects.parts import (
    ConditionsOnly,
    ExternalAddress,
    Free,
    Host,
    JwksKey,
    JwtKey,
    KeyOfObject,
    OldJwtKey,
    PodTemplatePart,
    Port,
    ServicePart,
    SlurmKey,
    note,
)
from slurmruntime.crd.fields import ObjectStruct, rule, text
from slurmruntime.crd.metadata import ObjectMetadata


class DatabaseAccess(ObjectStruct, frozen=True):
    """The database that slurmdbd writes to."""

    host: Annotated[Host, note("Host name or address of the database.")]
    password_key_ref: Annotated[KeyOfObject, note("Secret with the password.")]
    port: Annotated[Port, note("Port of the database.")] = 3306
    database: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            pattern=r"^[A-Za-z0-9_$-]+$",
            description="Name of the database.",
        ),
    ] = "slurm_acct_db"
    username: Annotated[str, text(128, "Database user.", pattern=r"^\S*$")] = ""


class AccountingSpec(ObjectStruct, frozen=True):
    """The slurmdbd of one or more Slurm clusters."""

    slurm_key_ref: SlurmKey = None
    jwt_key_ref: JwtKey = None
    jwt_hs256_key_ref: OldJwtKey = msgspec.field(default=None, name="jwtHs256KeyRef")
    jwks_key_ref: JwksKey = None
    external: Annotated[
        bool, note("Whether slurmdbd runs outside Kubernetes or is managed elsewhere.")
    ] = False
    external_config: Annotated[ExternalAddress | None, note("Address of an external slurmdbd.")] = (
        None
    )
    slurmdbd: Annotated[Free | None, note("Overrides for the slurmdbd container.")] = None
    template: Annotated[PodTemplatePart | None, note("Overrides for the pod.")] = None
    storage_config: Annotated[DatabaseAccess | None, note("Database of slurmdbd.")] = None
    extra_conf: Annotated[str, parts.conf("Extra lines for slurmdbd.conf.")] = ""
    service: Annotated[ServicePart | None, note("Overrides for the Service.")] = None


ACCOUNTING_RULES: Final = (
    parts.HAS_ADDRESS,
    parts.HAS_SLURM_KEY,
    parts.HAS_JWT_KEY,
    rule(
        "(has(self.external) && self.external) || has(self.storageConfig)",
        "expected the database, unless external is true",
        path=".storageConfig",
        reason="FieldValueRequired",
    ),
    parts.JWT_KEY_STAYS,
)


class AccountingObject(ObjectStruct, frozen=True):
    """The slurmdbd of one or more Slurm clusters."""

    metadata: ObjectMetadata
    spec: AccountingSpec
    status: ConditionsOnly = ConditionsOnly()
