"""Settings of the HTTPS servers."""

from pydantic import Field

from slurmruntime.settings.values import Address, Section


class ServerSection(Section):
    """The HTTPS server of the webhook, and that of the scheduler extender."""

    listen: Address = Field("0.0.0.0:8443", description="Address and port.")
    cert_file: str = Field(
        "/etc/slurm-bridge/tls/tls.crt", min_length=1, description="Certificate chain, PEM."
    )
    key_file: str = Field(
        "/etc/slurm-bridge/tls/tls.key", min_length=1, description="Its private key, PEM."
    )


class Webhook(Section):
    """The admission webhook."""

    track_fields: bool = Field(
        default=False,
        description="Keep metadata.managedFields, which record who wrote which field, on pods handed to Slurm; pods created by server-side apply always keep theirs. Without them, each write of a pod costs the API server "
        "half as much. A later server-side apply then finds one manager, before-first-apply, of all existing fields: changing them needs force, leaving them out keeps them, and fields are tracked from then on.",
    )


class Extender(Section):
    """The scheduler extender."""

    client_ca_file: str = Field(
        "", description="CA of client certificates, PEM; empty: clients need no certificate."
    )


class EscrowSection(ServerSection):
    """The HTTPS server for slurmctld's scripts, in extender and controllers, with nodes.hybrid=escrow: docs/escrow.md."""

    listen: Address = Field("0.0.0.0:9443", description="Address and port.")
    token_file: str = Field(
        "/etc/slurm-bridge/escrow/token",
        min_length=1,
        description="File with the token that the scripts send, one per line while it is replaced.",
    )
